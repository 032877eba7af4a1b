//! A local server that takes a provider's place, so that an example needs no key and no network.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// A server on a free port that stops after its last response.
#[derive(Debug)]
pub struct Loopback {
    url: String,
}

impl Loopback {
    /// Starts a server that sends one body per request, in order. All bodies have this MIME type.
    ///
    /// # Errors
    /// There is no free port.
    pub fn new<B>(mime_type: &'static str, bodies: impl IntoIterator<Item = B>) -> io::Result<Self>
    where
        B: Into<String>,
    {
        let bodies: Vec<String> = bodies.into_iter().map(Into::into).collect();
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        thread::spawn(move || {
            for (body, stream) in bodies.iter().zip(listener.incoming()) {
                // An error is ignored here, because the client that made the request reports it.
                let _ = stream.and_then(|stream| answer(&stream, mime_type, body));
            }
        });
        Ok(Self { url })
    }

    /// Returns the base URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn answer(mut stream: &TcpStream, mime_type: &str, body: &str) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    io::copy(&mut reader.take(length), &mut io::sink())?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {mime_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}

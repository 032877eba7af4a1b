//! Two servers with the same tool, asked in turns by the same client. See `run.sh`.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

// Not `Result`: what rmcp's macros write would mean this one.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Connections that ask at once.
const CONNECTIONS: usize = 16;
/// Short rounds, many of them: what else the machine does falls on both sides.
const CALLS: usize = 4_000;
const ROUNDS: usize = 31;
const MANY: usize = 100_000;

mod ours {
    use agent::tool;

    /// Does nothing.
    #[tool(inline)]
    pub fn noop(text: String, times: u32) -> String {
        let _ = times;
        text
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    text: String,
    times: u32,
}

/// The router is made once, and shared by the handlers of all requests.
#[derive(Clone)]
struct Plain {
    tools: Arc<ToolRouter<Self>>,
}

#[rmcp::tool_router]
impl Plain {
    fn new() -> Self {
        Self { tools: Arc::new(Self::tool_router()) }
    }


    /// Does nothing.
    #[rmcp::tool]
    async fn noop(&self, Parameters(Arguments { text, times }): Parameters<Arguments>) -> String {
        let _ = times;
        text
    }
}

#[rmcp::tool_handler(router = self.tools)]
impl rmcp::ServerHandler for Plain {}

fn plain() -> StreamableHttpService<Plain, NeverSessionManager> {
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let plain = Plain::new();
    StreamableHttpService::new(move || Ok(plain.clone()), Arc::new(NeverSessionManager::default()), config)
}

async fn serve(app: axum::Router) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop","arguments":{"text":"hello","times":3},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn request() -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: noop\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    )
    .into_bytes()
}

/// One connection asks so often, and how long each answer took.
async fn ask(address: SocketAddr, times: usize) -> Outcome<Vec<Duration>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = request();
    let (mut took, mut answer) = (Vec::with_capacity(times), vec![0; 16 << 10]);
    for _ in 0..times {
        let begun = Instant::now();
        stream.write_all(&request).await?;
        let mut length = 0;
        loop {
            let read = stream.read(&mut answer[length..]).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            length += read;
            if is_whole(&answer[..length]) {
                break;
            }
        }
        took.push(begun.elapsed());
        let text = String::from_utf8_lossy(&answer[..length]);
        if !text.contains("\"text\":\"hello\"") {
            return Err(format!("not the answer: {text}").into());
        }
    }
    Ok(took)
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}

/// Calls a second, and the time that 99 of 100 stay below.
async fn measure(address: SocketAddr, calls: usize) -> Outcome<(f64, Duration)> {
    let begun = Instant::now();
    let asking: Vec<_> = (0..CONNECTIONS).map(|_| tokio::spawn(ask(address, calls / CONNECTIONS))).collect();
    let mut took = Vec::new();
    for connection in asking {
        took.extend(connection.await??);
    }
    let seconds = begun.elapsed().as_secs_f64();
    took.sort_unstable();
    Ok((took.len() as f64 / seconds, took[took.len() * 99 / 100]))
}

/// Resident memory in KiB, where the system tells it.
fn memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().trim_end_matches(" kB").parse().ok())
}

/// So many requests, answered one after the other without a socket: for counting instructions.
async fn direct<S, B>(service: S, calls: usize) -> Outcome<()>
where
    S: tower_service::Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    S::Error: std::fmt::Debug,
    B: http_body::Body<Data: std::fmt::Debug, Error: std::fmt::Debug>,
{
    let head = |request: http::request::Builder| {
        request
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "noop")
    };
    for _ in 0..calls {
        let body = Full::new(Bytes::from_static(BODY.as_bytes()));
        let request = head(http::Request::post("/mcp")).body(body)?;
        let Ok(answer) = service.clone().call(request).await else { return Err("no answer".into()) };
        let Ok(body) = answer.into_body().collect().await else { return Err("no body".into()) };
        if !String::from_utf8_lossy(&body.to_bytes()).contains("\"text\":\"hello\"") {
            return Err("not the answer".into());
        }
    }
    Ok(())
}

/// The time of both, in short turns.
fn turns(calls: usize) -> Outcome<()> {
    const TURN: usize = 200;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let own = agent::mcp::McpServer::new(agent::tools![ours::noop]).into_service()?;
        let plain = plain();
        let mut ratios = Vec::new();
        for _ in 0..calls / TURN {
            let begun = Instant::now();
            direct(plain.clone(), TURN).await?;
            let theirs = begun.elapsed();
            let begun = Instant::now();
            direct(own.clone(), TURN).await?;
            ratios.push(theirs.as_secs_f64() / begun.elapsed().as_secs_f64());
        }
        ratios.sort_by(f64::total_cmp);
        println!("without sockets, one thread: median ratio {:.3} (must: 0.95)", ratios[ratios.len() / 2]);
        Ok(())
    })
}

/// `direct (agent|rmcp) CALLS`
fn count(server: &str, calls: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match server {
            "agent" => {
                let own = agent::mcp::McpServer::new(agent::tools![ours::noop]).into_service()?;
                direct(own, calls).await
            }
            _ => direct(plain(), calls).await,
        }
    })
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["direct", calls] => turns(calls.parse()?),
        ["direct", server, calls] => count(server, calls.parse()?),
        [rounds] => beside(rounds.parse()?),
        _ => beside(ROUNDS),
    }
}

#[tokio::main]
async fn beside(rounds: usize) -> Outcome<()> {
    let own = agent::mcp::McpServer::new(agent::tools![ours::noop]).into_service()?;
    let own = serve(axum::Router::new().nest_service("/mcp", own)).await?;
    let plain = serve(axum::Router::new().nest_service("/mcp", plain())).await?;
    for address in [own, plain] {
        measure(address, 2_000).await?;
    }
    println!(
        "{:>5} {:>12} {:>12} {:>6} {:>10} {:>10}",
        "round", "agent/s", "rmcp/s", "ratio", "agent p99", "rmcp p99"
    );
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        // Who goes first changes.
        let (ours, theirs) = if round % 2 == 0 {
            let theirs = measure(plain, CALLS).await?;
            (measure(own, CALLS).await?, theirs)
        } else {
            (measure(own, CALLS).await?, measure(plain, CALLS).await?)
        };
        ratios.push(ours.0 / theirs.0);
        println!(
            "{round:>5} {:>12.0} {:>12.0} {:>6.2} {:>10.2?} {:>10.2?}",
            ours.0,
            theirs.0,
            ours.0 / theirs.0,
            ours.1,
            theirs.1
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2} (must: 0.95)", ratios[ratios.len() / 2]);
    let before = memory();
    measure(own, MANY).await?;
    if let (Some(before), Some(after)) = (before, memory()) {
        println!("memory before {MANY} calls {before} KiB, after {after} KiB");
    }
    Ok(())
}

//! What the programs of both servers share: the request, and how they are run.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use tokio::runtime::Runtime;

// Not `Result`: what the macros of rmcp write would mean this one.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The forms of a call: the headers of its version, and its metadata.
const FORMS: [(&str, &[(&str, &str)], &str); 3] = [
    (
        "newest",
        MODERN,
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#,
    ),
    (
        "progress",
        MODERN,
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}"#,
    ),
    ("older", &[("mcp-protocol-version", "2025-11-25")], ""),
];
const MODERN: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "noop")];
/// The calls before a measurement.
const WARM_UP: usize = 500;

pub enum Mode {
    /// So many calls of a form without a socket, one after the other.
    Direct(usize, String),
    Http,
    Stdio,
}

pub fn mode() -> Outcome<Mode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        ["direct", form, calls] => Ok(Mode::Direct(calls.parse()?, (*form).to_owned())),
        ["http"] => Ok(Mode::Http),
        ["stdio"] => Ok(Mode::Stdio),
        _ => Err("usage: direct newest|progress|older CALLS|http|stdio".into()),
    }
}

/// The processor time of this process in nanoseconds, and its resident memory in KiB: `used NANOSECONDS KIB`.
pub fn usage() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    format!("used {} {}", processor_time(), resident.unwrap_or("0"))
}

fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

pub fn runtime() -> Outcome<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// Serves over HTTP until the process ends, and prints the port.
pub fn http(app: impl FnOnce() -> Outcome<axum::Router>) -> Outcome<()> {
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?.port());
        Ok(axum::serve(listener, app()?).await?)
    })
}

/// Makes so many calls, on one thread and without a socket, and prints the processor time of each in nanoseconds.
pub fn direct<S, B>(service: impl FnOnce() -> Outcome<S>, calls: usize, form: &str) -> Outcome<()>
where
    S: tower_service::Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    B: http_body::Body,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = service()?;
        ask(&service, form, WARM_UP).await?;
        let begun = processor_time();
        ask(&service, form, calls).await?;
        println!("{}", (processor_time() - begun) / calls.max(1) as u64);
        Ok(())
    })
}

async fn ask<S, B>(service: &S, form: &str, calls: usize) -> Outcome<()>
where
    S: tower_service::Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    B: http_body::Body,
{
    let Some((_, headers, meta)) = FORMS.iter().find(|(name, ..)| *name == form) else {
        return Err("no form".into());
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"noop","arguments":{{"text":"hello","times":3}}{meta}}}}}"#
    );
    let body = Bytes::from(body);
    for _ in 0..calls {
        let mut request = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.clone()))?;
        let Ok(answer) = service.clone().call(request).await else { return Err("no answer".into()) };
        let Ok(body) = answer.into_body().collect().await else { return Err("no body".into()) };
        if !String::from_utf8_lossy(&body.to_bytes()).contains("\"text\":\"hello\"") {
            return Err("not the answer".into());
        }
    }
    Ok(())
}

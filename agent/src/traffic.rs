//! The traffic over the wire, for debugging: the requests and responses of models, and the messages to and from MCP servers.
//!
//! [`HttpOptions::on_traffic`](crate::provider::http::HttpOptions::on_traffic) listens to the traffic of models, and
//! `ClientConfig::on_traffic` (feature `mcp-client`) to that of an MCP server. One function can listen to both.
//!
//! ```
//! use agent::traffic::Traffic;
//!
//! fn log(traffic: &Traffic<'_>) {
//!     eprintln!("{} {}: {:?}", traffic.server, traffic.exchange, traffic.kind);
//! }
//! # let listener: fn(&Traffic<'_>) = log;
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::ModelError;
use crate::panics::Observer;

/// An event of an HTTP exchange with a provider, or of a connection to an MCP server.
///
/// Keys and the secrets of a configuration are masked everywhere. The texts of people and models, and the arguments and results of tools,
/// are not masked.
///
/// ```
/// # #[cfg(feature = "openai")]
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use agent::model::{Model as _, ModelRequest, StepCx};
/// use agent::provider::http::{HttpModel, HttpOptions};
/// use agent::traffic::Traffic;
/// use std::sync::{Arc, Mutex};
///
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let lines = log.clone();
/// let options = HttpOptions::default().without_proxy().with_max_retries(0).on_traffic(move |traffic: &Traffic<'_>| {
///     lines.lock().unwrap().push((traffic.exchange, format!("{} {:?}", traffic.server, traffic.kind)));
/// });
/// let model = HttpModel::builder("openai/gpt-5").key("s3cret").base_url("http://127.0.0.1:9/v1").options(options).build()?;
/// assert!(model.call(&StepCx::new(), &ModelRequest::default()).await.is_err());           // no server listens there
///
/// let log = log.lock().unwrap();
/// let ((first, request), (last, end)) = (log.first().unwrap(), log.last().unwrap());
/// assert!(request.starts_with("http://127.0.0.1:9 Request") && !request.contains("s3cret"));
/// assert!(end.contains("connection"));
/// assert_eq!(first, last);                             // of one exchange
/// # Ok(()) }
/// # #[cfg(not(feature = "openai"))] fn main() {}
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Traffic<'a> {
    /// The name that this program gives to an MCP server, or the scheme, host and port of a provider.
    pub server: &'a str,
    /// The number of the exchange, counted from 1 in this process. Each attempt of each HTTP request to a provider has its own number, and
    /// each connection to an MCP server has one number.
    pub exchange: u64,
    /// The event, with its data.
    pub kind: TrafficKind<'a>,
}

/// The kinds of [`Traffic`].
///
/// An exchange with a provider consists of a request, a response, the pieces of its body, and the end. If there is no response, the end
/// follows the request. A connection to an MCP server consists of messages in both directions, and the end of the connection.
///
/// ```
/// use agent::traffic::TrafficKind;
///
/// fn line(kind: &TrafficKind<'_>) -> String {
///     match kind {
///         TrafficKind::Request { method, url, .. } => format!("> {method} {url}"),
///         TrafficKind::Response { status, .. } => format!("< {status}"),
///         TrafficKind::Body { text, .. } => format!("< {text}"),
///         TrafficKind::End { error: Some(error), .. } => format!("! {error}"),
///         TrafficKind::Sent { message, .. } => format!("> {message}"),
///         TrafficKind::Received { message, .. } => format!("< {message}"),
///         other => format!("! {other:?}"),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TrafficKind<'a> {
    /// A request is sent to a provider.
    #[non_exhaustive]
    Request {
        /// The method, usually `POST`.
        method: &'a str,
        /// The URL, without user, password and query, and without parts of the path that may be secrets.
        url: &'a str,
        /// The headers of the request; the values of keys are masked.
        headers: &'a [(String, String)],
        /// The whole body.
        body: &'a str,
    },
    /// A provider's response begins.
    #[non_exhaustive]
    Response {
        /// The HTTP status.
        status: u16,
        /// The headers of the response, with names in lower case.
        headers: &'a [(String, String)],
    },
    /// A piece of the response's body. If a piece ends with the possible start of an API key, or with an incomplete character, this end is
    /// shown with the next piece.
    #[non_exhaustive]
    Body {
        /// The text; bytes that are not UTF-8 are replaced.
        text: &'a str,
    },
    /// The response has ended, or is not read any further. This event is missing if the thread unwinds after a panic.
    #[non_exhaustive]
    End {
        /// The error, if there was one.
        error: Option<&'a ModelError>,
    },
    /// A message is sent to an MCP server.
    #[non_exhaustive]
    Sent {
        /// The JSON-RPC message.
        message: &'a str,
    },
    /// A message was received from an MCP server.
    #[non_exhaustive]
    Received {
        /// The JSON-RPC message, serialized again after parsing. Fields that the parser does not know may be missing.
        message: &'a str,
    },
    /// The program of an MCP server wrote a line to its error output.
    #[non_exhaustive]
    ErrorOutput {
        /// The line, cut at 4 KiB.
        line: &'a str,
    },
    /// A message could not be sent to an MCP server.
    #[non_exhaustive]
    Failed {
        /// The reason.
        reason: &'a str,
    },
    /// The connection to an MCP server is closed. No further messages arrive.
    Closed,
}

pub(crate) type OnTraffic = Observer<dyn Fn(&Traffic<'_>) + Send + Sync>;

pub(crate) fn next_exchange() -> u64 {
    static EXCHANGES: AtomicU64 = AtomicU64::new(0);
    EXCHANGES.fetch_add(1, Ordering::Relaxed) + 1
}

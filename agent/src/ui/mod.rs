//! Two protocols of front ends: the UI message stream of the AI SDK, and AG-UI.
//!
//! [`UiEncoder`] writes the events of a run as chunks of a protocol. The encoder uses no clock and no IO: the same events give the same
//! chunks. [`UiRequest`] reads the body of a front end's request, and turns it into a prompt, decisions or results. With the feature
//! `runtime`, `UiServer` serves the runs of an assistant with both types.
//!
//! ```
//! use agent::ui::{UiEncoder, UiOptions, UiProtocol, UiRequest};
//! use agent::{Assistant, ScriptedModel};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let body = br#"{"id": "chat-1", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}"#;
//! let request = UiRequest::decode(UiProtocol::AiSdk, body)?;
//! let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
//!
//! let mut encoder = UiEncoder::new(UiProtocol::AiSdk, assistant.registry(), &UiOptions::default(), &request);
//! let mut run = assistant.prompt(request.prompt.clone().expect("it begins with a message of the user")).stream();
//! let mut chunks = Vec::new();
//! while let Some(event) = run.next().await {
//!     encoder.encode(&event, &mut chunks);
//! }
//! encoder.end(&mut chunks);
//! assert!(chunks.iter().any(|chunk| chunk.json == r#"{"type":"text-delta","id":"1.0","delta":"Hello!"}"#));
//! # Ok(()) }
//! ```
//!
//! Front ends never receive secret arguments, inputs to questions, metadata of tools, provider data, system texts, the handles (ids) under
//! which results of deferred calls are delivered, or the texts of errors of a run. [`UiOptions`] decides about everything else.

mod chunk;
mod encode;
mod options;
mod request;
#[cfg(feature = "runtime")]
mod server;
mod view;

pub use chunk::UiChunk;
pub use encode::UiEncoder;
use options::ResultView;
pub use options::{UiData, UiOptions, UiProtocol};
pub use request::{UiRequest, UiRequestError};
#[cfg(feature = "runtime")]
pub use server::{UiBody, UiServer};

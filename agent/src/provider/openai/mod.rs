//! The protocols of OpenAI, which many other servers support, too.
//! ```no_run
//! # #[cfg(feature = "runtime")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use agent::Assistant;
//!
//! // `openai/…` uses Chat Completions, `openai-responses/…` the Responses API. Both read OPENAI_API_KEY.
//! let assistant = Assistant::builder(agent::model("openai-responses/gpt-5")?).build()?;
//! println!("{}", assistant.prompt("Say hello.").await?.text());
//! # Ok(()) }
//! ```

mod chat;
mod content;
mod errors;
mod managed;
mod models;
#[cfg(any(test, feature = "testing"))]
mod read;
mod responses;
mod servers;

pub use chat::{Compat, OpenAiChat};
pub use responses::OpenAiResponses;
pub(super) use servers::SERVERS;

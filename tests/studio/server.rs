//! What `.ci/studio` runs the page of the studio against: an assistant that does what the message of the user names, and a store that hangs
//! for sessions whose name contains `hang`; for `remote`, a sub-agent whose provider fails twice. Arguments: the port, the token, and the
//! file of the store.

use std::error::Error;
use std::time::Duration;

use agent::message::{Message, UserMessage};
use agent::model::{ModelRequest, ScriptedReply, reply};
use agent::provider::http::{HttpModel, HttpOptions};
use agent::provider::openai::OpenAiChat;
use agent::steps::StepKey;
use agent::store::{
    InvocationEnd, InvocationQuery, InvocationRecord, SessionEntry, SessionSummary, SqlStore, Store,
    StoreError,
};
use agent::studio::Studio;
use agent::{Assistant, BoxFuture, RunTool, ScriptedModel, ToolContext, json, tool, tools};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Markup, control characters, marks of direction, and a link.
const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}\u{7}\u{1b}[31m javascript:alert(3) ${7*7} \u{0}";

/// The number of calls of `calls`.
const CALLS: usize = 500;
/// The number of deltas of `deltas`; a delta has one character.
const DELTAS: usize = 100_000;

/// Returns a text. <img src=x onerror=alert(4)>
#[tool(read_only)]
fn echo(
    /// The text. <script>alert(5)</script>
    text: String,
) -> String {
    text
}

/// Returns 10 MB.
#[tool(read_only)]
fn large() -> String {
    "0123456789\n".repeat((10 << 20) / 11)
}

/// Waits for a minute.
#[tool(read_only)]
async fn sleep() -> &'static str {
    tokio::time::sleep(Duration::from_secs(60)).await;
    "awake"
}

/// Changes something.
#[tool(approval = "always")]
fn change(what: String, #[arg(secret)] pin: String) -> String {
    format!("{what} is changed ({} digits)", pin.len())
}

/// Manages notes.
#[tool(read_only)]
enum Notes {
    /// Adds a note.
    Add { text: String },
    /// Removes a note.
    Remove { id: u32 },
}

impl RunTool for Notes {
    type Output = String;

    async fn run(self, _: &ToolContext) -> String {
        match self {
            Self::Add { text } => format!("added {text}"),
            Self::Remove { id } => format!("removed {id}"),
        }
    }
}

fn answer(request: &ModelRequest) -> ScriptedReply {
    let said = match request.messages.last().map(|message| &**message) {
        Some(Message::ToolResult(_)) => return reply().text("Done."),
        Some(message) => message.text(),
        None => String::new(),
    };
    match said.split_whitespace().next().unwrap_or_default() {
        "calls" => (0..CALLS).fold(reply().text("Many."), |reply, at| {
            reply.tool_call("echo", json!({"text": format!("call {at}")}).to_string())
        }),
        "deltas" => reply().text("lorem ipsum ".repeat(DELTAS / 12)),
        "large" => reply().tool_call("large", "{}"),
        "hostile" => reply()
            .thinking(HOSTILE)
            .text(HOSTILE)
            .tool_call("echo", json!({"text": HOSTILE}).to_string())
            .tool_call("echo", format!("{{\"{}\": 1", HOSTILE.replace('\u{0}', ""))),
        "sleep" => reply().tool_call("sleep", "{}"),
        "remote" => reply().tool_call("remote", r#"{"task": "Say something."}"#),
        "change" => reply().tool_call("change", r#"{"what": "x", "pin": "hunter2"}"#),
        _ => reply().text(format!("I heard {} messages.", request.messages.len())),
    }
}

/// Returns a sub-agent whose provider is busy twice before each reply.
async fn remote() -> Result<Assistant, Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        let busy =
            "HTTP/1.1 503 Busy\r\nretry-after-ms: 200\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": format!("From afar. {HOSTILE}")}, "finish_reason": "stop"}]});
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let whole = format!("{head}data: {chunk}\n\ndata: [DONE]\n\n");
        for at in 1_u32.. {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let mut request = vec![0; 64 << 10];
            let _ = stream.read(&mut request).await;
            let response = if at % 3 == 0 { whole.as_str() } else { busy };
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    let model = HttpModel::builder("openai/gpt-5").protocol(OpenAiChat::default()).key("sk-0123456789");
    let options = HttpOptions::default().without_proxy();
    Ok(Assistant::builder(model.base_url(url).options(options).build()?).tools(tools![echo]).build()?)
}

/// A store that never answers about some sessions.
struct Hanging(SqlStore);

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

fn unless_hanging<'a, T: Send + 'a>(name: &str, answer: Answer<'a, T>) -> Answer<'a, T> {
    if name.contains("hang") { Box::pin(std::future::pending()) } else { answer }
}

impl Store for Hanging {
    fn begin(&self, new: InvocationRecord) -> Answer<'_, Option<InvocationRecord>> {
        self.0.begin(new)
    }

    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> Answer<'a, bool> {
        self.0.finish(key, end)
    }

    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> Answer<'a, bool> {
        self.0.defer(key, handle)
    }

    fn get<'a>(&'a self, key: &'a StepKey) -> Answer<'a, Option<InvocationRecord>> {
        self.0.get(key)
    }

    fn list(&self, query: InvocationQuery) -> Answer<'_, Vec<InvocationRecord>> {
        self.0.list(query)
    }

    fn pending_before(&self, at: i64, limit: usize) -> Answer<'_, Vec<InvocationRecord>> {
        self.0.pending_before(at, limit)
    }

    fn delete_finished_before(&self, at: i64) -> Answer<'_, u64> {
        self.0.delete_finished_before(at)
    }

    fn append<'a>(&'a self, session: &'a str, expected: u64, entries: Vec<SessionEntry>) -> Answer<'a, u64> {
        self.0.append(session, expected, entries)
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> Answer<'a, Vec<(u64, SessionEntry)>> {
        unless_hanging(session, self.0.load(session, after, limit))
    }

    fn list_sessions<'a>(
        &'a self,
        containing: &'a str,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> Answer<'a, Vec<SessionSummary>> {
        unless_hanging(containing, self.0.list_sessions(containing, after, limit))
    }

    fn push_steering<'a>(&'a self, session: &'a str, message: UserMessage) -> Answer<'a, bool> {
        self.0.push_steering(session, message)
    }

    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> Answer<'a, Vec<UserMessage>> {
        self.0.take_steering(session, key, limit)
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> Answer<'a, u64> {
        self.0.delete_session(session)
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [port, token, file] = &args[..] else { return Err("arguments: PORT TOKEN FILE".into()) };
    let port: u16 = port.parse()?;
    let assistant = Assistant::builder(ScriptedModel::from_fn(answer).with_chunk_size(1).without_record())
        .tools(tools![echo, large, sleep, change, Notes])
        .tools(remote().await?.as_tool("remote", "Asks a model that is far away."))
        .store(Hanging(SqlStore::sqlite(file).await?))
        .store_timeout(Duration::from_secs(2))
        .max_concurrency(16)
        .max_result_bytes(20 << 20)
        .build()?;
    // The same token each time, so that a page that was open goes on with it.
    let studio = Studio::new(assistant).allow_remote([format!("127.0.0.1:{port}")], token);
    Ok(studio.serve(([127, 0, 0, 1], port)).await?)
}

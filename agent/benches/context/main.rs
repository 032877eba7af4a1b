//! The cost of what keeps a conversation within its limits. `context <what> <times>` does it so many times; `context.sh` counts the
//! instructions of one. Without arguments everything is done a few times, to show that it still works.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use agent::message::{
    AssistantMessage, Conversation, Message, MessageList, OutcomeKind, Part, StopReason, ToolResultMessage,
    Usage,
};
use agent::model::{
    ContextReport, ContextRules, Fallback, Model, ModelEvent, ModelInfo, ModelRequest, ModelStream,
    RateLimits, StepCx,
};
use agent::store::{BudgetHold, MemoryStore, Store};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn info() -> ModelInfo {
    ModelInfo::new("acme", "acme-chat", "large-1")
}

/// A reply of the model, to a request of so many tokens.
fn named(mut reply: AssistantMessage, input: u64) -> Message {
    (reply.provider, reply.api, reply.model) = ("acme".into(), "acme-chat".into(), "large-1".into());
    reply.usage = Usage::new(input, 50);
    Message::from(reply)
}

/// A prompt, a call, its result and a reply with its usage, again and again.
fn message(at: usize, bytes: usize) -> Message {
    let (id, text) = (format!("call_{}", at / 4), "word ".repeat(bytes / 5));
    let named = |reply| named(reply, 50 * at as u64 + 100);
    match at % 4 {
        0 => Message::user(text),
        1 => named(AssistantMessage::new([Part::tool_call(id, "read", r#"{"page": 7}"#)])),
        2 => ToolResultMessage::new(id, "read", OutcomeKind::Completed).with_content(text).into(),
        _ => named(AssistantMessage::from(text)),
    }
}

/// A model whose reply has so many pieces.
#[derive(Clone, Debug)]
struct Writer(ModelInfo, usize);

impl Model for Writer {
    fn stream(&self, cx: &StepCx, _: &ModelRequest) -> ModelStream {
        let delta = || ModelEvent::TextDelta { content_index: 0, delta: "word ".to_owned() };
        let stop = ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: None };
        ModelStream::from_events(cx, &self.0, (0..self.1).map(move |_| delta()).chain([stop]).map(Ok))
    }

    fn info(&self) -> &ModelInfo {
        &self.0
    }
}

/// Reports what fills the window after each message, of a conversation that begins with so many messages.
fn reports(messages: usize, times: usize) {
    let info = info();
    let mut request = ModelRequest::default();
    request.messages = (0..messages).map(|at| message(at, 200)).collect::<MessageList>();
    for turn in 0..times {
        request.messages.extend([message(messages + turn, 200)]);
        black_box(ContextReport::of(black_box(&request), &info));
    }
}

/// Encodes a history of so many messages, without management: one request for each message that is added.
#[cfg(feature = "openai")]
fn histories(messages: usize) -> Result<(), Failure> {
    let protocol = agent::provider::protocol("openai-chat").ok_or("there is no such protocol")?;
    let info = ModelInfo::new("openai", protocol.api(), "gpt-5");
    let mut request = ModelRequest::default();
    request.messages = info.hand_off(&Conversation::from_iter([message(0, 200)]));
    for at in 1..messages {
        request.messages.extend([message(at, 200)]);
        black_box(protocol.encode(&info, black_box(&request))?);
    }
    Ok(())
}

/// Reports what fills the window of a conversation of 1 MB.
fn first_reports(times: usize) {
    let mut request = ModelRequest::default();
    request.messages = (0..500).map(|at| message(at, 2_660)).collect::<MessageList>();
    for _ in 0..times {
        black_box(ContextReport::of(black_box(&request), &info()));
    }
}

/// Clears 300 results of 2 KiB, so many times.
fn clears(times: usize) -> Result<(), Failure> {
    let result = |at: usize| {
        let (id, call) = (format!("call_{at}"), Part::tool_call(format!("call_{at}"), "read", "{}"));
        let result =
            ToolResultMessage::new(id, "read", OutcomeKind::Completed).with_content("word ".repeat(410));
        [named(AssistantMessage::new([call]), 100 + 540 * at as u64), result.into()]
    };
    let start = [Message::user("Read it.")].into_iter();
    let conversation: Conversation = start.chain((0..620).flat_map(result)).collect();
    // A clear frees a fifth of 760,000 tokens at least, and a result has 512 less the line that replaces it.
    let (rules, model) = (ContextRules::new().window(760_000).clear_at(0.45).target(0.2), Writer(info(), 0));
    let request = ModelRequest::default().with_max_tokens(8_000);
    for _ in 0..times {
        let mut conversation = conversation.clone();
        rules.fit(&mut conversation, &request, &model)?;
        black_box(conversation.view_changes().len());
    }
    Ok(())
}

/// Asks a model: alone, within limits, or as the first of a fallback.
async fn requests(how: &str, times: usize) -> Result<(), Failure> {
    let (how, pieces) = match how.split_once('-') {
        Some((how, "short")) => (how, 0),
        Some((how, _)) => (how, 1_100),
        None => (how, 100),
    };
    let writer = Writer(info(), pieces);
    let model: Box<dyn Model> = match how {
        "limits" => {
            let limits = RateLimits::new().requests_per_minute(u32::MAX).tokens_per_minute(u64::MAX);
            Box::new(writer.limited(limits.concurrency(64)))
        }
        "fallback" => Box::new(Fallback::new([writer.clone(), writer])),
        _ => Box::new(writer),
    };
    let (cx, request) = (StepCx::new(), ModelRequest::new([Message::user("Hi")]));
    for _ in 0..times {
        let mut stream = model.stream(&cx, &request);
        while let Some(event) = stream.next().await {
            black_box(event?);
        }
    }
    Ok(())
}

/// Reserves and settles amounts of a budget, by so many writers at the same time.
async fn budget(store: Arc<dyn Store>, writers: usize, times: usize) -> Result<(), Failure> {
    let work = (0..writers).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for request in 0..times {
                let id = format!("run-{writer}/{request}/model/0");
                let holds = vec![BudgetHold::new("team", 5_000, 1 << 60)];
                store.reserve(&id, holds, 1_000, 2_000).await?;
                store.settle(&id, vec![("team".to_owned(), 4_000)]).await?;
            }
            Ok::<_, Failure>(())
        })
    });
    let work: Vec<_> = work.collect();
    for writer in work {
        writer.await??;
    }
    Ok(())
}

#[cfg(feature = "store-sql")]
async fn sqlite(times: usize) -> Result<(), Failure> {
    let path = std::env::temp_dir().join(format!("agent-bench-context-{}.sqlite", std::process::id()));
    let store = agent::store::SqlStore::sqlite(&path).await?;
    let done = budget(Arc::new(store), 8, times).await;
    for end in ["", "-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        drop(std::fs::remove_file(name));
    }
    done
}

async fn run(what: &str, times: usize) -> Result<(), Failure> {
    match what {
        "report" => reports(1_000, times),
        "first" => first_reports(times),
        "clear" => clears(times)?,
        #[cfg(feature = "openai")]
        "history" => histories(times)?,
        "plain" | "limits" | "fallback" | "plain-short" | "limits-short" | "fallback-short"
        | "plain-long" | "fallback-long" => {
            requests(what, times).await?;
        }
        "budget" => budget(Arc::new(MemoryStore::new()), 1, times).await?,
        #[cfg(feature = "store-sql")]
        "sqlite" => sqlite(times).await?,
        _ => return Err(format!("nothing is named `{what}`").into()),
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    if let [what, times] = &args[..] {
        let (times, began) = (times.parse()?, Instant::now());
        runtime.block_on(run(what, times))?;
        println!("{:.3} ms", began.elapsed().as_secs_f64() * 1e3);
        return Ok(());
    }
    for what in ["report", "first", "clear", "plain", "limits", "fallback", "budget"] {
        runtime.block_on(run(what, 2))?;
    }
    Ok(())
}

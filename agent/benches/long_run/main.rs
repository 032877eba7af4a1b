//! The cost of a turn in a long conversation. `long_run <how> <turns> <from>` prompts an assistant so many times; each turn is a call with a
//! result of 2 KiB and a reply of 200 bytes, and the model encodes each request. It prints the bytes of the requests from turn `from` on, and before which
//! turns a summary was written.
//! `how` is `managed`, with a window of 32,000 tokens, or `whole`; `managed-priced` and `whole-priced` estimate the cost of the input, too. `long_run.sh` counts the instructions of turns, early and late ones.
//! Without arguments a few turns are made, to show that it still works.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

#[cfg(feature = "openai")]
mod work {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use agent::message::{AssistantMessage, Part, Usage};
    use agent::model::{ContextRules, Model, ModelInfo, ModelRequest, ModelStream, StepCx};
    use agent::provider::{Protocol, protocol};
    use agent::{Assistant, ToolBuilder, ToolContext, Value, tools};

    const RECORD: &str = r#"{"goal": "Measure", "decisions": ["Go on"], "facts": [{"text": "It is long."}]}"#;

    /// The bytes of all requests. If they are priced, those that begin as the request before are counted, too.
    #[derive(Default)]
    struct SentBytes {
        all: AtomicU64,
        repeated: AtomicU64,
        last: Option<Mutex<String>>,
    }

    impl SentBytes {
        fn add(&self, body: String) -> u64 {
            let length = body.len() as u64;
            self.all.fetch_add(length, Ordering::Relaxed);
            if let Some(mut last) = self.last.as_ref().and_then(|last| last.lock().ok()) {
                let same = body.bytes().zip(last.bytes()).take_while(|(one, other)| one == other).count();
                self.repeated.fetch_add(same as u64, Ordering::Relaxed);
                *last = body;
            }
            length
        }

        /// Returns dollars: 4 bytes are a token; a million of them cost 3.75 when they are written to the provider's cache, and 0.3 when they
        /// are read from it.
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        fn cost(&self) -> f64 {
            let (all, repeated) = (self.all.load(Ordering::Relaxed), self.repeated.load(Ordering::Relaxed));
            ((all - repeated) as f64 * 3.75 + repeated as f64 * 0.3) / 4e6
        }
    }

    /// Encodes each request, and calls a tool after each prompt.
    struct Caller {
        info: ModelInfo,
        protocol: Arc<dyn Protocol>,
        bytes: Arc<SentBytes>,
        calls: AtomicU64,
        /// The number of turns before each summary.
        summaries: Arc<Mutex<Vec<u64>>>,
    }

    impl Model for Caller {
        fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
            let encoded = self.protocol.encode(&self.info, request);
            let length = self.bytes.add(encoded.map(|http| black_box(http.text())).unwrap_or_default());
            let mut reply = match request.messages.last().map(|message| message.role()) {
                Some("user") if request.tools.is_empty() => {
                    if let Ok(mut summaries) = self.summaries.lock() {
                        summaries.push(self.calls.load(Ordering::Relaxed));
                    }
                    AssistantMessage::from(RECORD)
                }
                Some("user") => {
                    let id = format!("call_{}", self.calls.fetch_add(1, Ordering::Relaxed));
                    AssistantMessage::new([Part::tool_call(id, "read", "{}")])
                }
                _ => AssistantMessage::from("It was read. ".repeat(16)),
            };
            (reply.provider, reply.api, reply.model) =
                (self.info.provider.clone(), self.info.api.clone(), self.info.model.clone());
            reply.usage = Usage::new(length / 4, 60);
            ModelStream::from_reply(cx, &self.info, std::future::ready(Ok(reply)))
        }

        fn info(&self) -> &ModelInfo {
            &self.info
        }
    }

    fn run(how: &str, turns: u64, from: u64) -> Result<String, String> {
        let protocol = protocol("openai-chat").ok_or("there is no such protocol")?;
        let (how, is_priced) = how.strip_suffix("-priced").map_or((how, false), |how| (how, true));
        let bytes = Arc::new(SentBytes { last: is_priced.then(Mutex::default), ..SentBytes::default() });
        let info = ModelInfo::new("openai", protocol.api(), "gpt-5");
        let (summaries, calls) = (Arc::<Mutex<Vec<u64>>>::default(), AtomicU64::new(0));
        let model = Caller { info, protocol, bytes: bytes.clone(), calls, summaries: summaries.clone() };
        let read = ToolBuilder::new("read")
            .description("Reads a page.")
            .build(|_: Value, _: ToolContext| async { "word ".repeat(410) })
            .map_err(|error| error.to_string())?;
        let mut builder = Assistant::builder(model).tools(tools![{ read }]);
        if how == "managed" {
            builder = builder.manage_context(ContextRules::new().window(32_000));
        }
        let assistant = builder.build().map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let mut before = 0;
        for turn in 0..turns {
            if turn == from {
                before = bytes.all.load(Ordering::Relaxed);
            }
            let prompt = async { assistant.prompt("Read the next page.").await };
            runtime.block_on(prompt).map_err(|error| error.to_string())?;
        }
        let changes = assistant.messages().view_changes().len();
        let sent = bytes.all.load(Ordering::Relaxed) - before;
        let summaries = summaries.lock().map_err(|error| error.to_string())?;
        let summaries: Vec<_> = summaries.iter().map(u64::to_string).collect();
        let (cost, summaries) = (bytes.cost(), summaries.join(" "));
        Ok(format!(
            "{sent} bytes, {changes} changes, {cost:.2} dollars if it is priced, summaries behind turns {summaries}"
        ))
    }

    pub(super) fn main() -> Result<(), String> {
        let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
        let number = |text: &String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        let (how, turns, from) = match &args[..] {
            [how, turns, from] => (&**how, number(turns)?, number(from)?),
            _ => ("managed", 12, 0),
        };
        println!("{}", run(how, turns, from)?);
        Ok(())
    }
}

fn main() -> Result<(), String> {
    #[cfg(feature = "openai")]
    work::main()?;
    Ok(())
}

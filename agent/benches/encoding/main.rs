//! The cost of encoding a request as text. `encoding <protocol> <messages> <tools> <n>` encodes `n` requests of one conversation, to which
//! each adds a call and its result; `encoding.sh` counts the instructions of the first and of the next. Without arguments every protocol
//! encodes short requests, to show that it still works. `encoding fork <messages> 0 <n>` prompts `n` forks of an assistant with a
//! conversation, and `encoding loaded <messages> 0 <n>` `n` assistants that load it. `encoding live <conversations> <tools> <n>` prompts each of
//! some conversations of one assistant `n` times in turn; each prompt is a call, its result and a reply, and each request is encoded.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

#[cfg(all(feature = "anthropic", feature = "gemini", feature = "openai"))]
mod work {
    use agent::args::{Plan, PlanOptions};
    use agent::message::{
        AssistantMessage, Conversation, Message, OutcomeKind, Part, StopReason, ToolResultMessage,
    };
    use agent::model::{Model, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};
    use agent::provider::{Protocol, protocol};
    use agent::{Assistant, Tool, ToolContext, ToolDefinition, Value, json};
    use std::hint::black_box;
    use std::sync::Arc;

    const PROTOCOLS: [&str; 4] =
        ["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate-content"];

    /// A message of a conversation of prompts, calls, results and replies: about 213 bytes.
    fn message(at: usize) -> Message {
        let text =
            "The quick brown fox jumps over the lazy dog, and \"says\" so in one line of text. ".repeat(2);
        let id = format!("call_{}", at / 4);
        match at % 4 {
                0 => Message::user(format!("{at}: {text}")),
                1 => AssistantMessage::new([Part::tool_call(
                    id,
                    "tool_1",
                    r#"{"city": "Paris", "days": 3, "units": "metric", "detail": "wind, rain and temperature by the hour"}"#,
                )])
                .into(),
                2 => ToolResultMessage::new(id, "tool_1", OutcomeKind::Completed)
                    .with_content([Part::text(format!("{at}: {text}"))])
                    .into(),
                _ => Message::assistant(format!("{at}: {text}")),
            }
    }

    const DESCRIPTION: &str = "Forecasts the weather of a city for some days.";

    fn schema() -> Value {
        json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "The city, by its English name."},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "description": "How many days."},
            "units": {"type": "string", "enum": ["metric", "imperial"]},
            "detail": {"type": "string", "description": "What to look at."},
        }})
    }

    fn tools(count: usize) -> Result<Arc<[ToolDefinition]>, String> {
        let schema = schema();
        let tool = |at: usize| {
            let plan = Plan::compile(&format!("tool_{at}"), &schema, PlanOptions::default());
            let plan = plan.map_err(|error| error.to_string())?;
            ToolDefinition::new(plan, DESCRIPTION).map_err(|error| error.to_string())
        };
        (0..count).map(tool).collect()
    }

    /// Encodes, and returns the length of the last body.
    pub(super) fn run(api: &str, messages: usize, count: usize, times: usize) -> Result<usize, String> {
        let protocol = protocol(api).ok_or_else(|| format!("no protocol {api}: {}", PROTOCOLS.join(", ")))?;
        let (provider, model) = match api {
            "anthropic-messages" => ("anthropic", "claude-sonnet-5"),
            "gemini-generate-content" => ("gemini", "gemini-3-flash-preview"),
            _ => ("openai", "gpt-5"),
        };
        let info = ModelInfo::new(provider, protocol.api(), model);
        let mut request = ModelRequest::default();
        request.messages = info.hand_off(&(0..messages).map(message).collect::<Conversation>());
        request.tools = tools(count)?;
        let mut length = 0;
        for turn in 0..times {
            let http = protocol.encode(&info, black_box(&request)).map_err(|error| error.to_string())?;
            length = black_box(http.text()).len();
            request.messages.extend([4 * (messages + turn) + 1, 4 * (messages + turn) + 2].map(message));
        }
        Ok(length)
    }

    /// Replies with one text.
    struct Echo(ModelInfo);

    impl Model for Echo {
        fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
            let delta = ModelEvent::TextDelta {
                content_index: 0,
                delta: black_box(request).messages.len().to_string(),
            };
            let stop = ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: None };
            ModelStream::from_events(cx, &self.0, [delta, stop].map(Ok))
        }

        fn info(&self) -> &ModelInfo {
            &self.0
        }
    }

    /// Encodes each request, and replies with a call to a prompt, and with a text to its result.
    struct Caller {
        info: ModelInfo,
        protocol: Arc<dyn Protocol>,
    }

    impl Model for Caller {
        fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
            black_box(self.protocol.encode(&self.info, request)).ok();
            let reply = match request.messages.last().map(|message| message.role()) {
                Some("user") => {
                    let id = format!("call_{}", request.messages.len());
                    AssistantMessage::new([Part::tool_call(id, "tool_1", r#"{"city": "Paris"}"#)])
                }
                _ => AssistantMessage::from("It will be mild, with some rain in the evening. ".repeat(3)),
            };
            ModelStream::from_reply(cx, &self.info, std::future::ready(Ok(reply)))
        }

        fn info(&self) -> &ModelInfo {
            &self.info
        }
    }

    /// Prompts some conversations of one assistant in turn, and returns the number of their messages.
    fn live(conversations: usize, tools: usize, times: usize) -> Result<usize, String> {
        let protocol = protocol("openai-chat").ok_or("there is no such protocol")?;
        let info = ModelInfo::new("openai", protocol.api(), "gpt-5");
        let mut builder = Assistant::builder(Caller { info, protocol });
        for at in 0..tools.max(2) {
            let body = |_: Value, _: ToolContext| async {
                "Mild, 14 degrees, rain from six in the evening. ".repeat(3)
            };
            let tool = Tool::new(format!("tool_{at}"), DESCRIPTION, schema(), body);
            builder = builder.tools(tool.map_err(|error| error.to_string())?);
        }
        let first = builder.build().map_err(|error| error.to_string())?;
        let all: Vec<_> = (0..conversations).map(|_| first.fork()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        for _ in 0..times {
            for one in &all {
                let prompt = async { one.prompt("How will the weather be?").await };
                runtime.block_on(prompt).map_err(|error| error.to_string())?;
            }
        }
        Ok(all.iter().map(|one| one.messages().len()).sum())
    }

    /// Prompts forks of an assistant with a conversation, or assistants that load it.
    fn prompts(is_fork: bool, messages: usize, times: usize) -> Result<usize, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let stored = (0..messages).map(message).collect::<Conversation>();
        let stored = serde_json::to_string(&stored).map_err(|error| error.to_string())?;
        let stored: Conversation = serde_json::from_str(&stored).map_err(|error| error.to_string())?;
        let load = || {
            let builder = Assistant::builder(Echo(ModelInfo::default())).conversation(stored.clone());
            builder.build().map_err(|error| error.to_string())
        };
        runtime.block_on(async {
            let first = load()?;
            first.prompt("Go on.").await.map_err(|error| error.to_string())?;
            for _ in 0..times {
                let next = if is_fork { first.fork() } else { load()? };
                next.prompt("Go on.").await.map_err(|error| error.to_string())?;
            }
            Ok(first.messages().len())
        })
    }

    pub(super) fn main() -> Result<(), String> {
        let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
        if let [api, messages, tools, times] = &args[..] {
            let number = |text: &String| text.parse::<usize>().map_err(|error| format!("{text}: {error}"));
            if matches!(&**api, "fork" | "loaded") {
                println!("{} messages", prompts(api == "fork", number(messages)?, number(times)?)?);
                return Ok(());
            }
            if api == "live" {
                println!("{} messages", live(number(messages)?, number(tools)?, number(times)?)?);
                return Ok(());
            }
            println!("{} bytes", run(api, number(messages)?, number(tools)?, number(times)?)?);
            return Ok(());
        }
        for api in PROTOCOLS {
            println!("{api}: {} bytes", run(api, 8, 3, 2)?);
        }
        println!("{} messages", prompts(true, 8, 1)?.max(prompts(false, 8, 1)?).max(live(2, 2, 2)?));
        Ok(())
    }
}

fn main() -> Result<(), String> {
    #[cfg(all(feature = "anthropic", feature = "gemini", feature = "openai"))]
    work::main()?;
    Ok(())
}

//! The cost of reading a reply. `decoding <protocol> ours <n>` reads `n` deltas of a stream of the protocol into events, and `decoding
//! <protocol> floor <n>` splits the same stream at its lines and reads only the text of each delta. `decoding assistant ours <n>` passes `n`
//! text deltas through an assistant without listeners. `decoding.sh` counts the instructions. Without arguments every stream is read once.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

#[cfg(all(feature = "anthropic", feature = "gemini", feature = "openai"))]
mod work {
    use agent::Assistant;
    use agent::message::StopReason;
    use agent::model::{Model, ModelEvent, ModelInfo, ModelRequest, ModelStream, StepCx};
    use agent::provider::{ReplyReader, protocol};
    use agent::run::BuildError;
    use serde::Deserialize;
    use std::borrow::Cow;
    use std::fmt::Write as _;
    use std::hint::black_box;

    const PROTOCOLS: [&str; 4] =
        ["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate-content"];

    /// The deltas, as they are sent: most words are short, some need escapes.
    const WORDS: [&str; 7] = ["Hello", " world", ", the", " answer", " is \\\"42\\\"", ".\\n", " caf\u{e9}"];

    /// A stream with so many deltas of a text, with the fields that the services send.
    fn stream(api: &str, deltas: usize) -> String {
        let mut body = String::new();
        let mut push = |event: String| {
            let name = if api.starts_with("anthropic") { "event: message\n" } else { "" };
            let _ = write!(body, "{name}data: {event}\n\n");
        };
        match api {
            "openai-responses" => {
                push(r#"{"type":"response.created","response":{"id":"resp_1","model":"gpt-5"}}"#.to_owned());
                push(r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#.to_owned());
            }
            "anthropic-messages" => {
                push(r#"{"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-5","usage":{"input_tokens":4}}}"#.to_owned());
                push(
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#
                        .to_owned(),
                );
            }
            _ => {}
        }
        for (at, word) in WORDS.iter().cycle().take(deltas).enumerate() {
            push(match api {
                "openai-chat" => format!(
                    r#"{{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_b376dfbbd5","choices":[{{"index":0,"delta":{{"content":"{word}"}},"logprobs":null,"finish_reason":null}}],"usage":null,"obfuscation":"aBcDeF"}}"#
                ),
                "openai-responses" => format!(
                    r#"{{"type":"response.output_text.delta","sequence_number":{at},"item_id":"msg_68a0f1c2b3d4","output_index":0,"content_index":0,"delta":"{word}","logprobs":[],"obfuscation":"aBcDeF"}}"#
                ),
                "anthropic-messages" => format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{word}"}}}}"#
                ),
                _ => format!(
                    r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{word}"}}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":4,"candidatesTokenCount":{at},"totalTokenCount":{},"promptTokensDetails":[{{"modality":"TEXT","tokenCount":4}}]}},"modelVersion":"gemini-3-flash-preview","responseId":"k2aaaPrXH4"}}"#,
                    at + 4
                ),
            });
        }
        push(match api {
            "openai-chat" => r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            "openai-responses" => r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
            "anthropic-messages" => r#"{"type":"message_stop"}"#,
            _ => r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}]}"#,
        }.to_owned());
        body
    }

    fn ours(api: &str, body: &str) -> Result<usize, String> {
        let protocol = protocol(api).ok_or_else(|| format!("no protocol {api}: {}", PROTOCOLS.join(", ")))?;
        let info = ModelInfo::new("test", protocol.api(), "m");
        let mut reader = ReplyReader::new(&*protocol, &info, 200, Vec::new());
        let (mut events, mut length) = (Vec::new(), 0);
        let mut take = |events: &mut Vec<ModelEvent>| {
            length += events.drain(..).map(|event| event.delta().map_or(0, str::len)).sum::<usize>();
        };
        for chunk in body.as_bytes().chunks(16 << 10) {
            reader.push(black_box(chunk), &mut events).map_err(|error| error.to_string())?;
            take(&mut events);
        }
        reader.finish(&*protocol, &mut events).map_err(|error| error.to_string())?;
        take(&mut events);
        Ok(length)
    }

    /// Where the text of a delta is.
    #[derive(Deserialize)]
    struct Text<'a> {
        #[serde(borrow, alias = "text")]
        content: Cow<'a, str>,
    }

    #[derive(Deserialize)]
    struct Delta<'a> {
        #[serde(borrow)]
        delta: Text<'a>,
    }

    #[derive(Deserialize)]
    struct Chat<'a> {
        #[serde(borrow)]
        choices: Vec<Delta<'a>>,
    }

    #[derive(Deserialize)]
    struct Responses<'a> {
        #[serde(borrow)]
        delta: Cow<'a, str>,
    }

    #[derive(Deserialize)]
    struct Gemini<'a> {
        #[serde(borrow)]
        candidates: Vec<Candidate<'a>>,
    }

    #[derive(Deserialize)]
    struct Candidate<'a> {
        #[serde(borrow)]
        content: Content<'a>,
    }

    #[derive(Deserialize)]
    struct Content<'a> {
        #[serde(borrow)]
        parts: Vec<Text<'a>>,
    }

    fn floor(api: &str, body: &str) -> usize {
        fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Option<T> {
            serde_json::from_str(data).ok()
        }
        let text = |data: &str| -> Option<usize> {
            Some(match api {
                "openai-chat" => read::<Chat<'_>>(data)?.choices.first()?.delta.content.len(),
                "openai-responses" => read::<Responses<'_>>(data)?.delta.len(),
                "anthropic-messages" => read::<Delta<'_>>(data)?.delta.content.len(),
                _ => read::<Gemini<'_>>(data)?.candidates.first()?.content.parts.first()?.content.len(),
            })
        };
        let data = black_box(body).split('\n').filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(text).sum()
    }

    struct Deltas(usize, ModelInfo);

    impl Model for Deltas {
        fn stream(&self, cx: &StepCx, _: &ModelRequest) -> ModelStream {
            let delta = |at: usize| ModelEvent::TextDelta {
                content_index: 0,
                delta: WORDS[at % WORDS.len()].to_owned(),
            };
            let stop = ModelEvent::Stop { reason: StopReason::Stop, detail: None, raw: None };
            let events = (0..self.0).map(delta).chain([stop]).map(Ok);
            ModelStream::from_events(cx, &self.1, events)
        }

        fn info(&self) -> &ModelInfo {
            &self.1
        }
    }

    fn assistant(deltas: usize) -> Result<usize, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let built = Assistant::builder(Deltas(deltas, ModelInfo::default())).build();
        let assistant = built.map_err(|error: BuildError| error.to_string())?;
        let run = runtime.block_on(async { assistant.prompt("Go on.").await });
        Ok(run.map_err(|error| error.to_string())?.text().len())
    }

    pub(super) fn main() -> Result<(), String> {
        let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
        if let [api, who, deltas] = &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            let deltas = deltas.parse().map_err(|error| format!("{deltas}: {error}"))?;
            let length = match (*api, *who) {
                ("assistant", _) => assistant(deltas)?,
                (api, "floor") => floor(api, &stream(api, deltas)),
                // The stream alone, which both others make.
                (api, "none") => stream(api, deltas).len(),
                (api, _) => ours(api, &stream(api, deltas))?,
            };
            println!("{length} bytes");
        } else {
            for api in PROTOCOLS {
                let body = stream(api, 20);
                println!("{api}: {} bytes, floor {}", ours(api, &body)?, floor(api, &body));
            }
            println!("assistant: {} bytes", assistant(20)?);
        }
        Ok(())
    }
}

fn main() -> Result<(), String> {
    #[cfg(all(feature = "anthropic", feature = "gemini", feature = "openai"))]
    work::main()?;
    Ok(())
}

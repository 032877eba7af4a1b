//! The work for a long reply grows linearly with its length, not with the square.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::model::{ModelEvent, ModelInfo};
use crate::provider::openai::OpenAiChat;
use crate::provider::{Protocol as _, ReplyReader};

/// Comparing each call with all earlier ones would take minutes with this number.
const CALLS: usize = 60_000;

#[test]
fn many_calls_are_told_apart_without_comparing_each_with_all() {
    let begun = Instant::now();
    let (mut body, mut stream) = (String::new(), String::new());
    for at in 0..CALLS {
        let call = format!(r#"{{"index":{at},"id":"c{at}","function":{{"name":"f","arguments":"{{}}"}}}}"#);
        let _ = write!(body, "{}{call}", if at == 0 { "" } else { "," });
        let _ = write!(
            stream,
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n"
        );
    }
    let body =
        format!(r#"{{"choices":[{{"message":{{"tool_calls":[{body}]}},"finish_reason":"tool_calls"}}]}}"#);
    stream.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
    for text in [body, stream] {
        let (api, mut events) = (OpenAiChat::default(), Vec::new());
        let mut reader = ReplyReader::new(&api, &ModelInfo::new("x", api.api(), "x"), 200, Vec::new());
        reader.push(text.as_bytes(), &mut events).unwrap();
        reader.finish(&api, &mut events).unwrap();
        let starts = events.iter().filter_map(|event| match event {
            ModelEvent::ToolCallStart { content_index, id, .. } => Some((*content_index, id.clone())),
            _ => None,
        });
        assert!(starts.eq((0..CALLS).map(|at| (at, format!("c{at}")))));
    }
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
}

//! How far estimates of tokens are off, measured on recorded requests whose replies report their usage.
//!
//! `tests/golden/token-estimates.txt` has the figures; `UPDATE_GOLDEN=1` writes it. Most of the recorded requests are short, so that what
//! a provider adds to each of them weighs more than it does in long conversations.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::recorded::cassettes;
use agent::Value;
use agent::message::{Message, Usage};
use agent::model::{ContextReport, ManagedTool, ModelInfo, ModelRequest, ModelStream, StepCx};
use agent::provider::{Protocol, ReplyReader, protocol};

const FOLDERS: [(&str, &str); 6] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai-chat"),
    ("compat-openai-chat", "openai-chat"),
    ("openai-responses", "openai-responses"),
    ("compat-openai-responses", "openai-responses"),
    ("gemini", "gemini"),
];

struct Recording {
    request: ModelRequest,
    usage: Usage,
}

/// Reads the recordings of a folder that have a request and report their usage, by their names.
async fn recordings(folder: &Path, protocol: &dyn Protocol) -> BTreeMap<String, Recording> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = file.strip_suffix(".request.json") else { continue };
        let body: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let Ok((_, request)) = protocol.parse_request("recorded", &body) else { continue };
        let sibling = |end: &str| folder.join(format!("{name}{end}"));
        let Ok(body) = std::fs::read(sibling(".sse")).or_else(|_| std::fs::read(sibling(".json"))) else {
            continue;
        };
        let info = info(protocol);
        let mut reader = ReplyReader::new(protocol, &info, 200, Vec::new());
        let mut events = Vec::new();
        if reader.push(&body, &mut events).is_err() || reader.finish(protocol, &mut events).is_err() {
            continue;
        }
        let stream =
            ModelStream::from_events(&StepCx::new(), &info, events.into_iter().map(Ok).collect::<Vec<_>>());
        let Ok(reply) = stream.reply().await else { continue };
        // What the provider adds for its own tools is unknown. Definitions of functions are read as tools of another kind.
        let is_known = |tool: &ManagedTool| matches!(tool, ManagedTool::Other { .. });
        if reply.usage.input > 0 && request.managed_tools.iter().all(is_known) {
            found.insert(name.to_owned(), Recording { request, usage: reply.usage });
        }
    }
    found
}

fn info(protocol: &dyn Protocol) -> ModelInfo {
    ModelInfo::new("recorded", protocol.api(), "recorded")
}

/// Returns the request with the usage of the call before at its newest reply, if it continues that call.
fn anchored(before: &Recording, after: &ModelRequest, info: &ModelInfo) -> Option<ModelRequest> {
    let at = after.messages.iter().rposition(|message| message.as_assistant().is_some())?;
    if at < before.request.messages.len() || after.messages.len() <= before.request.messages.len() {
        return None;
    }
    let mut messages: Vec<Arc<Message>> = after.messages.to_vec();
    let mut reply = messages[at].as_assistant()?.clone();
    (reply.provider, reply.api, reply.model) = (info.provider.clone(), info.api.clone(), info.model.clone());
    reply.usage = before.usage.clone();
    messages[at] = Arc::new(reply.into());
    let mut request = after.clone();
    request.messages = messages.into();
    Some(request)
}

/// The errors of estimates, in percent of what the provider counted, with their signs.
#[derive(Default)]
struct Errors(Vec<i64>);

impl Errors {
    fn add(&mut self, estimate: u64, actual: u64) {
        let (estimate, actual) = (i64::try_from(estimate).unwrap(), i64::try_from(actual).unwrap());
        self.0.push((estimate - actual) * 100 / actual);
    }

    /// Returns the median and the ninth decile of the absolute errors, and the median with its sign.
    fn figures(&self) -> (i64, i64, i64) {
        let at = |list: &[i64], tenth: usize| list[(list.len() - 1) * tenth / 10];
        let mut signed = self.0.clone();
        signed.sort_unstable();
        let mut absolute: Vec<i64> = self.0.iter().map(|error| error.abs()).collect();
        absolute.sort_unstable();
        (at(&absolute, 5), at(&absolute, 9), at(&signed, 5))
    }
}

#[tokio::test]
#[ignore = "recorded: needs AGENT_RECORDINGS"]
async fn estimates_are_no_worse_than_they_were() {
    let mut lines = Vec::new();
    for (folder, api) in FOLDERS {
        let protocol = protocol(api).unwrap();
        let all = recordings(&cassettes(folder), &*protocol).await;
        let info = info(&*protocol);
        let (mut alone, mut continued) = (Errors::default(), Errors::default());
        for (name, recording) in &all {
            let estimate = ContextReport::of(&recording.request, &info);
            alone.add(estimate.used, recording.usage.input);
            let Some((stem, number)) = name.rsplit_once("__") else { continue };
            let Some(before) = number.parse::<u32>().ok().and_then(|number| number.checked_sub(1)) else {
                continue;
            };
            let Some(before) = all.get(&format!("{stem}__{before}")) else { continue };
            if let Some(request) = anchored(before, &recording.request, &info) {
                let estimate = ContextReport::of(&request, &info);
                assert!(estimate.is_anchored, "{name}");
                continued.add(estimate.used, recording.usage.input);
            }
        }
        for (what, errors) in [("whole request", &alone), ("after a reply", &continued)] {
            if !errors.0.is_empty() {
                lines.push((format!("{folder}, {what}"), errors.0.len(), errors.figures()));
            }
        }
    }
    let mut text = String::from("case | requests | median | p90 | bias (percent of the counted input)\n");
    for (case, count, (median, ninth, bias)) in &lines {
        writeln!(text, "{case} | {count} | {median} | {ninth} | {bias}").unwrap();
    }
    print!("{text}");
    let golden: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden/token-estimates.txt"].iter().collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &text).unwrap();
    }
    let known = std::fs::read_to_string(&golden).unwrap();
    let known: BTreeMap<&str, i64> = known
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split(" | ");
            Some((fields.next()?, fields.nth(2)?.parse().ok()?))
        })
        .collect();
    for (case, _, (_, ninth, _)) in &lines {
        let before =
            known.get(case.as_str()).unwrap_or_else(|| panic!("`{case}` is not in {}", golden.display()));
        assert!(*ninth <= before + 2, "{case}: p90 is {ninth} %, it was {before} %");
    }
}

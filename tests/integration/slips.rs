//! Wrong calls of models, as the issues of other projects report them.
//!
//! A *slip* is one wrong call: what a model sent, what it should have sent, and the public report of a call with the same form of
//! mistake. The files in `slips/` contain them as data, one file for each class. This test sends every slip to the tools in
//! `slips/tools.rs` and judges the answer by the text that the model would read:
//!
//! | verdict | the call is |
//! | --- | --- |
//! | coerced | accepted, and the tool received what was meant |
//! | exact | refused, and the report offers the call that was meant, or says exactly what to change |
//! | vague | refused in any other way, or with the offer of another call |
//! | wrong | accepted, and the tool received something else |
//!
//! To add a slip, append an object to the file of its class:
//!
//! * `id`: the class and a number, unique; `class`: the name of the file.
//! * `source`: the thread, `owner/repository#number`; `note`: what it reports, in one sentence of your own.
//! * `tool`: the tool that was meant; `called`: the name that the model used, if it is another one.
//! * `sent`: the arguments. A string is the raw text; any other value stands for its JSON text. Keep the form of the reported
//!   mistake, on the parameters of these tools.
//! * `meant`: the arguments that were meant, or `null` if nobody can know them (a missing time zone).
//! * `fix`: what an exact answer says: for each place (`path`, a JSON Pointer) the `words` that its line contains. A line about a
//!   place that contains it counts, too. `(arguments)` is the line about the whole, and an empty path is the whole text. The words
//!   are what a model needs in order to correct the call at once, not what the report says today. `<date>`, `<date-time>`,
//!   `<time>`, `<uuid>`, `<address>`, `<duration>`, `<decimal>` and `<url>` stand for any example of that form which the model
//!   did not send itself.
//! * `host`: true if the source is a program that turns arguments into text before it sends them. Such slips go to tools that
//!   decode JSON text, as an MCP server does.

mod tools;

use agent::args::{CoercionPolicy, CoercionRule, HumanDuration, PlanOptions};
use agent::message::ToolCall;
use agent::{Registry, ToolContext, ToolOutcome};
use chrono::{DateTime, NaiveDate, NaiveTime};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The classes that must be there, with at least this many slips.
const CLASSES: [&str; 14] =
    ["V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8", "V9", "V10", "nested", "unions", "dates", "wrappers"];
const PER_CLASS: usize = 12;
const IN_ALL: usize = 200;
/// Percentages of slips that are coerced or answered exactly: what must hold of each class and of all.
const CLASS_PERCENT: f64 = 80.0;
const TOTAL_PERCENT: f64 = 95.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Slip {
    id: String,
    class: String,
    source: String,
    note: String,
    tool: String,
    called: Option<String>,
    sent: Value,
    meant: Option<Value>,
    #[serde(default)]
    fix: Vec<Fix>,
    #[serde(default)]
    host: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fix {
    path: String,
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Coerced,
    Exact,
    Vague,
    Wrong,
}

impl Slip {
    fn arguments(&self) -> String {
        match &self.sent {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Whether a report says for every fault what to change.
    fn is_fixed_by(&self, report: &str) -> bool {
        !self.fix.is_empty() && self.fix.iter().all(|fix| fix.is_in(report, &self.arguments()))
    }
}

impl Fix {
    fn is_in(&self, report: &str, sent: &str) -> bool {
        let says = |text: &str| self.words.iter().all(|word| contains(text, word, sent));
        if self.path.is_empty() {
            return says(report);
        }
        lines(report).any(|(place, line)| {
            let contains_it = self.path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
            (place == self.path || contains_it) && says(line)
        })
    }
}

/// The numbered lines of a report, each with its place.
fn lines(report: &str) -> impl Iterator<Item = (&str, &str)> {
    report.lines().filter_map(|line| {
        let (number, line) = line.split_once(". ")?;
        number.parse::<u32>().ok()?;
        Some((line.split_once(": ")?.0, line))
    })
}

/// Whether a text contains a word, or an example of a form that was not sent.
fn contains(text: &str, word: &str, sent: &str) -> bool {
    let is_form: fn(&str) -> bool = match word {
        "<date>" => |t| t.parse::<NaiveDate>().is_ok() && t.len() == 10,
        "<date-time>" => |t| DateTime::parse_from_rfc3339(t).is_ok(),
        "<time>" => |t| t.parse::<NaiveTime>().is_ok(),
        "<uuid>" => |t| t.len() == 36 && uuid::Uuid::try_parse(t).is_ok(),
        "<address>" => |t| t.parse::<SocketAddr>().is_ok() || t.parse::<IpAddr>().is_ok(),
        "<duration>" => |t| t.parse::<HumanDuration>().is_ok(),
        "<decimal>" => |t| t.contains('.') && t.parse::<f64>().is_ok(),
        "<url>" => |t| t.starts_with("http") && url::Url::parse(t).is_ok(),
        _ => return text.contains(word),
    };
    let ends = |c: char| c.is_whitespace() || "\"`'(),;".contains(c);
    text.split(ends).map(|token| token.trim_end_matches(['.', '?'])).any(|t| is_form(t) && !sent.contains(t))
}

/// The call that a report offers.
fn offered(report: &str) -> Option<Value> {
    let (_, call) = report.split_once("\nIf this is what you meant, send: ")?;
    serde_json::from_str(call.lines().next()?).ok()
}

struct Tools {
    strict: Registry,
    decoding: Registry,
}

impl Tools {
    fn new() -> Self {
        let policy = CoercionPolicy::strict().allow(CoercionRule::JsonTextDecoded);
        let decoding = tools::all().with_options(PlanOptions::default().coercion(policy));
        Tools { strict: Registry::new(tools::all()).unwrap(), decoding: Registry::new(decoding).unwrap() }
    }

    async fn call(&self, host: bool, tool: &str, arguments: &str) -> ToolOutcome {
        let registry = if host { &self.decoding } else { &self.strict };
        registry.call(&ToolCall::new("call_1", tool, arguments), &ToolContext::new()).await.outcome
    }

    /// What a tool receives from right arguments.
    async fn received(&self, tool: &str, arguments: &Value) -> Option<Value> {
        let outcome = self.call(false, tool, &arguments.to_string()).await;
        (!outcome.is_error()).then(|| serde_json::from_str(&outcome.text()).unwrap())
    }

    async fn judge(&self, slip: &Slip) -> (Verdict, String) {
        let meant = match &slip.meant {
            Some(meant) => {
                let received = self.received(&slip.tool, meant).await;
                assert!(received.is_some(), "{}: what was meant is refused: {meant}", slip.id);
                received
            }
            None => None,
        };
        let called = slip.called.as_deref().unwrap_or(&slip.tool);
        let outcome = self.call(slip.host, called, &slip.arguments()).await;
        let text = outcome.text().into_owned();
        let verdict = if outcome.is_error() {
            match offered(&text) {
                Some(call) if meant.is_some() && self.received(&slip.tool, &call).await == meant => {
                    Verdict::Exact
                }
                None if slip.is_fixed_by(&text) => Verdict::Exact,
                _ => Verdict::Vague,
            }
        } else {
            let is_meant = serde_json::from_str(&text).ok() == meant && meant.is_some();
            if is_meant { Verdict::Coerced } else { Verdict::Wrong }
        };
        (verdict, text)
    }
}

fn load() -> Vec<Slip> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("integration/slips");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "json")) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let slips: Vec<Slip> = serde_json::from_str(&std::fs::read_to_string(file).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for slip in slips {
            assert_eq!(slip.class, name, "{}", slip.id);
            all.push(slip);
        }
    }
    all
}

fn is_thread(source: &str) -> bool {
    let part = |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '/');
    source.split_once('#').is_some_and(|(repository, number)| {
        number.parse::<u32>().is_ok()
            && repository.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name))
    })
}

#[test]
fn the_slips_are_complete() {
    let slips = load();
    let mut ids = BTreeSet::new();
    let mut calls = BTreeSet::new();
    for slip in &slips {
        assert!(ids.insert(&slip.id), "{}: the id is there twice", slip.id);
        let call = (&slip.tool, &slip.called, slip.arguments(), slip.host);
        assert!(calls.insert(call), "{}: the call is there twice", slip.id);
        assert!(is_thread(&slip.source), "{}: {:?} is not owner/repository#number", slip.id, slip.source);
        assert!(slip.note.split(' ').count() > 2, "{}: the note says what the source reports", slip.id);
        assert!(slip.meant.is_some() || !slip.fix.is_empty(), "{}: what is an exact answer?", slip.id);
        assert!(slip.fix.iter().all(|fix| !fix.words.is_empty()), "{}: a fix without words", slip.id);
    }
    assert!(slips.len() >= IN_ALL, "{} slips", slips.len());
    for class in CLASSES {
        let count = slips.iter().filter(|slip| slip.class == class).count();
        assert!(count >= PER_CLASS, "{count} slips of class {class}");
    }
    let sources: BTreeSet<&str> = slips.iter().map(|slip| slip.source.as_str()).collect();
    assert!(sources.len() >= 90, "{} sources", sources.len());
}

#[derive(Default)]
struct Count {
    slips: usize,
    coerced: usize,
    exact: usize,
    vague: usize,
    wrong: usize,
}

impl Count {
    fn add(&mut self, verdict: Verdict) {
        self.slips += 1;
        match verdict {
            Verdict::Coerced => self.coerced += 1,
            Verdict::Exact => self.exact += 1,
            Verdict::Vague => self.vague += 1,
            Verdict::Wrong => self.wrong += 1,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    fn percent(&self) -> f64 {
        100.0 * (self.coerced + self.exact) as f64 / self.slips as f64
    }

    fn row(&self, class: &str) -> String {
        let Count { slips, coerced, exact, vague, wrong } = self;
        let percent = self.percent();
        format!("{class:<9} {slips:>5} {coerced:>8} {exact:>6} {vague:>6} {wrong:>6} {percent:>7.1} %")
    }
}

#[tokio::test]
async fn slips_are_coerced_or_answered_exactly() {
    let tools = Tools::new();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut total = Count::default();
    let mut rest = String::new();
    for slip in load() {
        let (verdict, text) = tools.judge(&slip).await;
        total.add(verdict);
        counts.entry(slip.class.clone()).or_default().add(verdict);
        if matches!(verdict, Verdict::Vague | Verdict::Wrong) {
            let sent = slip.arguments();
            let shown = text.replace('\n', "\n    ");
            writeln!(rest, "{} {verdict:?} {}: {sent}\n    {shown}", slip.id, slip.source).unwrap();
        }
    }
    println!("{rest}");
    println!("class     slips  coerced  exact  vague  wrong  percent");
    for (class, count) in &counts {
        println!("{}", count.row(class));
    }
    println!("{}", total.row("all"));
    assert_eq!(total.wrong, 0, "a slip was accepted with another value");
    for (class, count) in &counts {
        assert!(count.percent() >= CLASS_PERCENT, "class {class}: {:.1} %", count.percent());
    }
    assert!(total.percent() >= TOTAL_PERCENT, "{:.1} %", total.percent());
}

#[test]
fn what_an_exact_answer_contains() {
    let report = "Invalid arguments for `t`: 2 problems. The tool was not run.\n1. /a/b: optional: leave it out; got {}\n\
                  2. /at: has no time zone; expected string (date-time, like 2026-11-21T10:30:00Z)\nParameters:\n  a: x";
    let says = |path: &str, words: &[&str], sent: &str| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Fix { path: path.to_owned(), words }.is_in(report, sent)
    };
    assert!(says("/a/b", &["leave it out"], ""));
    assert!(says("/a/b/c", &["leave it out"], ""), "a line about what contains the place");
    assert!(!says("/a", &["leave it out"], ""), "not one about a part of it");
    assert!(!says("/a/bc", &["leave it out"], ""));
    assert!(says("/at", &["zone", "<date-time>"], "2026-12-01T10:00:00"));
    assert!(!says("/at", &["<date-time>"], "2026-11-21T10:30:00Z"), "sent by the model itself");
    assert!(!says("/at", &["<date>"], ""));
    assert!(says("", &["Parameters", "leave"], ""));
    assert_eq!(offered("x\nIf this is what you meant, send: {\"a\":1}"), Some(serde_json::json!({"a": 1})));
    assert_eq!(offered(report), None);
}

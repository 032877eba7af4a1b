//! A default that breaks its own constraints is found while compiling, or when the tool is registered.

use crate::macro_support::property;
use agent::args::{Plan, PlanOptions};
use agent::{Registry, ToolArgs, ToolSet, json, tool, tools};

fn refusal(set: ToolSet) -> String {
    Registry::new(set).err().map(|error| error.to_string()).expect("a default is wrong")
}

/// Pays.
#[tool]
fn pay(#[arg(default = "eur", pattern = "^[A-Z]{3}$")] currency: String) -> String {
    currency
}

const LONG: &str = "abcdef";

/// Cuts.
#[tool]
fn cut(#[arg(default = LONG.to_owned(), length(1..=3))] text: String) -> String {
    text
}

/// Collects.
#[tool]
fn collect(#[arg(default = vec![1, 1], unique)] numbers: Vec<u8>) -> usize {
    numbers.len()
}

/// Collects.
#[tool]
fn collect_more(#[arg(default = vec![1], length(3..))] numbers: Vec<u8>) -> usize {
    numbers.len()
}

/// Mails.
#[tool]
fn mail(#[arg(default = "nope", format = "email")] to: String) -> String {
    to
}

const FIFTY: u8 = 50;

/// Waits.
#[tool]
fn wait(#[arg(default = FIFTY, range(1..=30))] days: u8) -> u8 {
    days
}

/// Logs in.
#[tool]
fn log_in(#[arg(secret, default = "hunter2", pattern = "^[0-9]+$")] pin: String) -> String {
    pin
}

#[derive(ToolArgs, Debug)]
struct Room {
    #[arg(default = "big", pattern = "^[SML]$")]
    size: String,
}

/// Books.
#[tool]
fn book(rooms: Vec<Room>) -> usize {
    rooms.iter().map(|room| room.size.len()).sum()
}

#[derive(ToolArgs, Debug)]
#[serde(default)]
struct Limits {
    #[arg(range(1..))]
    most: u32,
    #[schemars(inner(range(min = 5)))]
    steps: Vec<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { most: 3, steps: vec![5, 1] }
    }
}

/// Limits.
#[tool]
fn limit(limits: Limits) -> u32 {
    limits.most
}

/// Has no `Default`, because `few` makes the default.
#[derive(ToolArgs, Debug)]
#[serde(default = "few::<T>")]
struct Few<T> {
    #[arg(range(5..))]
    count: u32,
    rest: Vec<T>,
}

fn few<T>() -> Few<T> {
    Few { count: 2, rest: Vec::new() }
}

/// Takes a few.
#[tool]
fn take(few: Option<Few<u8>>, more: Vec<Few<u8>>) -> usize {
    more.len() + usize::from(few.is_some())
}

#[derive(ToolArgs, agent::ToolOutput, Debug, Clone)]
#[serde(transparent)]
struct Code(#[arg(pattern = "^[A-Z]+$")] String);

/// Takes a code.
#[tool]
fn encode(#[arg(default = Code("abc".to_owned()))] code: Code) -> String {
    code.0
}

#[test]
fn defaults_of_containers_and_of_transparent_types_are_checked() {
    let error = refusal(tools![take]);
    assert!(error.contains("/few/count") && error.contains("got number 2"), "{error}");
    let error = refusal(tools![encode]);
    assert!(error.contains("/code: does not match the pattern"), "{error}");
}

#[test]
fn a_default_that_its_parameter_refuses_is_refused_when_registered() {
    assert_eq!(
        refusal(tools![pay]),
        "tool `pay` cannot be defined: schema of `pay` refused at `#`: `default` does not fit its own parameter: \
         /currency: does not match the pattern; got string \"eur\"; expected string matching ^[A-Z]{3}$"
    );
    let cases: [(ToolSet, &[&str]); 7] = [
        (tools![cut], &["/text: too long (6 characters)", "\"abcdef\"", "1..3"]),
        (tools![collect], &["/numbers/1: repeats item 0"]),
        (tools![collect_more], &["/numbers: too few items (1)"]),
        (tools![mail], &["/to: not a valid email", "\"nope\""]),
        (tools![wait], &["/days", "50", "1..30"]),
        (tools![book], &["/rooms/*/size: does not match the pattern", "\"big\""]),
        (tools![limit], &["/steps/1", "got number 1"]),
    ];
    for (set, parts) in cases {
        let error = refusal(set);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = refusal(tools![log_in]);
    assert!(error.contains("/pin: does not match the pattern") && !error.contains("hunter2"), "{error}");
}

#[derive(ToolArgs, agent::ToolOutput, Clone, Debug)]
struct Window {
    #[arg(default = 1, range(1..=9))]
    from: u8,
    #[arg(default)]
    label: Option<String>,
}

/// Sound.
#[tool]
fn sound(
    #[arg(default = Window { from: 2, label: None })] window: Window,
    #[arg(default = 1.5, range(1.0..=2.0))] ratio: f32,
    #[arg(default)] name: Option<String>,
    #[arg(default = vec!["a".to_owned()], length(1..))] names: Vec<String>,
    #[arg(default = std::time::Duration::from_secs(5))] timeout: std::time::Duration,
) -> String {
    format!("{window:?} {ratio} {name:?} {names:?} {timeout:?}")
}

#[expect(clippy::needless_pass_by_value, reason = "a conversion takes what was sent")]
fn length(text: String) -> Result<usize, std::num::ParseIntError> {
    text.parse()
}

/// Words of which one is written otherwise than it is read.
#[derive(ToolArgs, serde::Serialize, Clone, Debug)]
enum Word {
    #[serde(rename(deserialize = "one"))]
    One,
}

/// Defaults that are written otherwise than a model sends them.
#[tool]
fn converted(
    #[arg(with(length as String), default = 30)] length: usize,
    #[arg(default = Word::One)] word: Word,
) -> String {
    format!("{length} {word:?}")
}

#[test]
fn sound_defaults_are_registered() {
    Registry::new(tools![sound, converted]).unwrap();
}

/// A level that is read from a number.
#[derive(ToolArgs, Debug)]
#[serde(from = "u8")]
enum Level {
    Low,
    High,
}

impl From<u8> for Level {
    fn from(number: u8) -> Self {
        if number > 5 { Self::High } else { Self::Low }
    }
}

/// Climbs.
#[tool]
fn climb(#[arg(default = Level::High)] level: Level) -> String {
    format!("{level:?}")
}

#[test]
fn a_default_that_is_read_from_another_type_is_not_shown_by_its_name() {
    let level = property(tools![climb], "level");
    assert_eq!((&level["type"], level.get("default")), (&json!("integer"), None), "{level}");
}

#[test]
fn a_schema_of_another_program_keeps_its_default() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 3, "default": 5}}});
    assert!(Plan::compile("given", &schema, PlanOptions::default()).is_ok());
}

//! Questions of tools to the person at the terminal.

use crate::look::{Kind, Look, harmless, one_line};
use crate::pager;
use crate::prompt::{Line, Prompt};
use agent::tool::{AskError, Question, QuestionInput};
use agent::{Value, json};
use rustyline::error::ReadlineError;
use serde_json::Map;

/// How many values of an enum are listed.
const WORDS: usize = 12;

const DECLINE: &str = "/decline";

/// Asks the person until the input is valid. Returns None if they press Ctrl-C.
pub(crate) async fn ask(
    look: Look,
    prompt: &mut Prompt,
    question: &Question,
) -> Result<Option<QuestionInput>, ReadlineError> {
    let fields = Field::all(&question.schema);
    let of = if question.path.is_root() { String::new() } else { format!("{} > ", question.path) };
    let asks =
        format!("? {}{} asks: {}", harmless(&of), harmless(&question.tool), harmless(&question.message));
    let mut lines = vec![look.paint(Kind::Notice, &asks)];
    lines.extend(fields.iter().map(|field| format!("  {}", field.line())));
    lines.push(look.paint(Kind::Dim, &format!("  {}", how(&fields))));
    if let Some(report) = &question.report {
        lines.extend(refused(look, report));
    }
    pager::page(look, &lines).await?;
    let mut draft = Draft::default();
    loop {
        let line = match prompt.ask("answer › ", "").await? {
            Line::Text(line) => line,
            Line::Interrupt => return Ok(None),
            Line::End => return Ok(Some(QuestionInput::Cancel)),
        };
        let problem = match draft.add(&fields, &line) {
            Step::More => continue,
            Step::Say(input) => return Ok(Some(input)),
            Step::Check(input) => match question.check(&input) {
                Ok(()) => return Ok(Some(QuestionInput::Accept(input))),
                Err(AskError::Refused { report, .. }) => report,
                Err(error) => error.to_string(),
            },
            Step::Wrong(problem) => problem,
        };
        let lines = refused(look, &problem);
        pager::page(look, &lines).await?;
    }
}

fn refused(look: Look, report: &str) -> Vec<String> {
    report.lines().map(|line| look.paint(Kind::Bad, &format!("  ✗ {}", harmless(line)))).collect()
}

fn how(fields: &[Field]) -> &'static str {
    match fields.len() {
        0 => "any JSON; an empty line dismisses the question, /decline declines",
        1 => "an empty line dismisses the question, /decline declines",
        _ => {
            "a line for each field (name: value), then an empty one; or all as JSON. An empty line alone dismisses the question, /decline declines"
        }
    }
}

/// One field of the form.
struct Field {
    name: String,
    kind: String,
    description: String,
    is_text: bool,
    is_required: bool,
}

impl Field {
    fn all(schema: &Value) -> Vec<Self> {
        let required = schema["required"].as_array();
        let is_required = |name: &String| required.is_some_and(|names| names.contains(&json!(name)));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let field = |(name, own): (&String, &Value)| {
            let meant = resolved(own, schema);
            let text = |key: &str| own[key].as_str().or(meant[key].as_str()).unwrap_or_default();
            let description = text("description");
            let mut kind = kind(meant);
            if own["x-secret"] == true {
                kind.push_str(", secret");
            }
            Self {
                name: name.clone(),
                kind,
                description: one_line(description),
                is_text: meant["type"] == "string",
                is_required: is_required(name),
            }
        };
        properties.map(field).collect()
    }

    fn line(&self) -> String {
        let Self { name, kind, description, is_required, .. } = self;
        let optional = if *is_required { "" } else { ", optional" };
        let line = format!("{}: {kind}{optional}", one_line(name));
        if description.is_empty() { line } else { format!("{line} — {description}") }
    }

    /// Returns the value of the typed text. Text that is valid JSON is parsed; in a string field only if it begins with a quote.
    /// All other text is taken as it is.
    fn value(&self, text: &str) -> Value {
        let json = (!self.is_text || text.starts_with('"')).then(|| serde_json::from_str(text).ok());
        json.flatten().unwrap_or_else(|| text.into())
    }
}

/// Follows the `$ref` of a schema; a schema without one is returned unchanged.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let path = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    path.and_then(|path| root.pointer(path)).unwrap_or(schema)
}

/// Describes in a few words which values a field takes.
fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let shown: Vec<String> = words.iter().take(WORDS).map(plain).collect();
        let more = if words.len() > WORDS { ", …" } else { "" };
        return one_line(&format!("one of {}{more}", shown.join(", ")));
    }
    let kind = match &schema["type"] {
        Value::String(word) => word.clone(),
        Value::Array(words) => words.iter().map(plain).collect::<Vec<_>>().join(" or "),
        _ => "JSON".to_owned(),
    };
    let range = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => String::new(),
        (least, Value::Null) => format!(" from {least}"),
        (Value::Null, most) => format!(" up to {most}"),
        (least, most) => format!(" from {least} to {most}"),
    };
    one_line(&format!("{kind}{range}"))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The fields that are answered so far.
#[derive(Default)]
struct Draft(Map<String, Value>);

/// The effect of a typed line.
#[derive(Debug, PartialEq)]
enum Step {
    More,
    Say(QuestionInput),
    /// The input is complete.
    Check(Value),
    Wrong(String),
}

impl Draft {
    fn add(&mut self, fields: &[Field], line: &str) -> Step {
        let line = line.trim();
        match line {
            "" if self.0.is_empty() => return Step::Say(QuestionInput::Cancel),
            "" => return self.complete(),
            DECLINE => return Step::Say(QuestionInput::Decline),
            _ => {}
        }
        if line.starts_with('{') {
            self.0.clear();
            return match serde_json::from_str(line) {
                Ok(input) => Step::Check(input),
                Err(error) => Step::Wrong(format!("this is no JSON: {error}")),
            };
        }
        let of_field = line.split_once(':').and_then(|(name, text)| {
            let field = fields.iter().find(|field| field.name == name.trim())?;
            Some((field, text.trim()))
        });
        match (of_field, fields) {
            (Some((field, text)), _) => {
                self.0.insert(field.name.clone(), field.value(text));
                if self.0.len() == fields.len() { self.complete() } else { Step::More }
            }
            (None, [only]) => {
                self.0.insert(only.name.clone(), only.value(line));
                self.complete()
            }
            (None, []) => match serde_json::from_str(line) {
                Ok(input) => Step::Check(input),
                Err(error) => Step::Wrong(format!("this is no JSON: {error}")),
            },
            (None, _) => {
                let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                Step::Wrong(format!("write one field, as in {}: …; they are {}", names[0], names.join(", ")))
            }
        }
    }

    fn complete(&mut self) -> Step {
        Step::Check(Value::Object(std::mem::take(&mut self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> Value {
        json!({
            "type": "object", "required": ["coach", "side"],
            "properties": {
                "coach": {"type": "integer", "minimum": 1, "maximum": 20, "description": "The number\nof the coach."},
                "side": {"$ref": "#/$defs/Side"},
                "note": {"type": "string", "x-secret": true},
            },
            "$defs": {"Side": {"type": "string", "enum": ["window", "aisle"]}},
        })
    }

    #[test]
    fn a_field_is_told_in_a_line() {
        let lines: Vec<String> = Field::all(&seat()).iter().map(Field::line).collect();
        assert_eq!(
            lines,
            [
                "coach: integer from 1 to 20 — The number of the coach.",
                "side: one of window, aisle",
                "note: string, secret, optional"
            ]
        );
    }

    #[test]
    fn lines_become_an_input() {
        let fields = Field::all(&seat());
        let mut draft = Draft::default();
        assert_eq!(draft.add(&fields, " "), Step::Say(QuestionInput::Cancel));
        assert_eq!(draft.add(&fields, "/decline"), Step::Say(QuestionInput::Decline));
        assert!(matches!(draft.add(&fields, "7"), Step::Wrong(text) if text.contains("coach, side, note")));
        assert_eq!(draft.add(&fields, "coach: 7"), Step::More);
        assert_eq!(draft.add(&fields, "side:aisle"), Step::More);
        assert_eq!(draft.add(&fields, ""), Step::Check(json!({"coach": 7, "side": "aisle"})));
        assert_eq!(draft.add(&fields, "note: 5"), Step::More);
        // A JSON object is the whole input. It replaces the note of the line before.
        assert_eq!(draft.add(&fields, r#"{"coach": 7}"#), Step::Check(json!({"coach": 7})));
        assert!(matches!(draft.add(&fields, "{"), Step::Wrong(text) if text.contains("no JSON")));

        let one = Field::all(&json!({"properties": {"value": {"type": "string"}}}));
        assert_eq!(draft.add(&one, "5"), Step::Check(json!({"value": "5"})), "a text stays one");
        assert_eq!(draft.add(&one, "at: 5"), Step::Check(json!({"value": "at: 5"})));
        let one = Field::all(&json!({"properties": {"value": {"type": "boolean"}}}));
        assert_eq!(draft.add(&one, "true"), Step::Check(json!({"value": true})));
        assert_eq!(draft.add(&one, "perhaps"), Step::Check(json!({"value": "perhaps"})));
    }
}

//! Reads one JSON object per line and answers each with one line, to replay logs.

use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use agent::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};

/// The longest line that is read.
const LONGEST: u64 = 16 * 1024 * 1024;
/// How many schemas are remembered. When there are more, all are forgotten: logs come in runs of the same tools.
const REMEMBERED: usize = 1000;

/// Answers every line, in order. Blank lines are passed over.
///
/// # Errors
/// When the input cannot be read or the output not written. A line that makes no sense is answered.
pub(crate) fn run(mut input: impl BufRead, output: impl Write, defaults: PlanOptions) -> io::Result<()> {
    let mut output = io::BufWriter::new(output);
    let mut plans = Plans { defaults, known: HashMap::new() };
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LONGEST).read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }
        let answer = if line.len() as u64 == LONGEST && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            json!({"id": null, "error": format!("the line is longer than {LONGEST} bytes")})
        } else if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        } else {
            plans.answer(&line)
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        // Somebody may be waiting for it at the other end of a pipe.
        output.flush()?;
    }
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let (length, ended) = {
            let bytes = input.fill_buf()?;
            match bytes.iter().position(|&b| b == b'\n') {
                Some(end) => (end + 1, true),
                None => (bytes.len(), bytes.is_empty()),
            }
        };
        input.consume(length);
        if ended {
            return Ok(());
        }
    }
}

struct Plans {
    defaults: PlanOptions,
    /// By schema text, policy and treatment of unknown keys: the plan, or why there is none.
    known: HashMap<String, Result<Plan, String>>,
}

impl Plans {
    fn answer(&mut self, line: &[u8]) -> Value {
        let line: Value = match serde_json::from_slice(line) {
            Ok(line) => line,
            Err(error) => return json!({"id": null, "error": format!("the line is not JSON: {error}")}),
        };
        let id = line.get("id").cloned().unwrap_or_default();
        match self.check(&line) {
            Err(error) => json!({"id": id, "error": error}),
            Ok(Err(why)) => json!({"id": id, "refused_schema": why}),
            Ok(Ok((plan, text))) => match plan.parse::<Value>(&text) {
                Ok(parsed) => {
                    let record = |c: &agent::args::Coercion| json!({"path": c.path, "rule": c.rule.as_str()});
                    let coercions: Vec<Value> = parsed.coercions().iter().map(record).collect();
                    json!({
                        "id": id, "accept": true, "value": parsed.value, "coercions": coercions, "issues": [], "text": null,
                    })
                }
                Err(refusal) => {
                    let issues = refusal.issues().iter().map(|issue| {
                        json!({"path": issue.path, "code": issue.code.as_str(), "message": issue.to_string()})
                    });
                    json!({
                        "id": id, "accept": false, "value": null, "coercions": [], "issues": issues.collect::<Vec<_>>(),
                        "text": refusal.to_text(),
                    })
                }
            },
        }
    }

    /// The plan and the text of one line; `Ok(Err(_))` when the schema is refused.
    fn check(&mut self, line: &Value) -> Result<Result<(Plan, String), String>, String> {
        let schema = line.get("schema").ok_or("the line has no `schema`")?;
        let text = match (line.get("text"), line.get("arguments")) {
            (Some(Value::String(text)), None) => text.clone(),
            (Some(_), None) => return Err("`text` is the text that a model sent: a string".into()),
            (None, Some(arguments)) => arguments.to_string(),
            (None, None) => return Err("the line has neither `text` nor `arguments`".into()),
            (Some(_), Some(_)) => return Err("the line has both `text` and `arguments`".into()),
        };
        let word = |key: &str| line.get(key).filter(|v| !v.is_null()).map(|v| v.as_str().unwrap_or_default());
        let mut options = self.defaults;
        if let Some(policy) = word("policy") {
            let policy = policy.parse::<CoercionPolicy>();
            options = options.coercion(policy.map_err(|unknown| format!("`policy`: {unknown}"))?);
        }
        if let Some(unknown) = word("unknown") {
            let known = UnknownKeys::from_name(unknown);
            options = options.unknown(known.ok_or("`unknown` is one of deny, strip, keep")?);
        }
        let key = format!("{:?} {:?} {schema}", options.policy(), options.unknown_keys());
        if !self.known.contains_key(&key) && self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let plan = self
            .known
            .entry(key)
            .or_insert_with(|| Plan::compile("tool", schema, options).map_err(|refused| refused.to_string()));
        Ok(plan.clone().map(|plan| (plan, text)))
    }
}

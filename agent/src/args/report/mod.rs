//! The report on refused arguments, as text for the model and as JSON for programs.

mod corrected;
mod wrapper;

pub(crate) use corrected::{Offer, corrected, corrected_spelling};
pub(crate) use wrapper::issues_inside;

use super::hooks::is_within;
use super::issue::Issue;
use super::plan::Plan;
use super::signature::{MAX_LINE, MAX_MEMBERS, parameter_lines, parameters, push_set};
use super::text::{MAX_RECORD, cut, push_cut, push_quoted};
use serde_json::{Map, Value, json};
use std::{fmt, fmt::Write, sync::Arc};

pub(crate) const REFUSAL: &str = "Invalid arguments for ";
pub(crate) const MAX_ISSUES: usize = 20;
const MAX_PATH: usize = MAX_RECORD;
const MAX_TEXT: usize = 6_000;

/// The report about refused arguments: it lists every mistake at once, so that a model can fix them all.
///
/// `Display` is [`to_text`](Self::to_text). Cloning only increments a reference count. The sent arguments are not kept. `Debug`, the
/// text and the JSON show only the excerpts in the issues, and the corrected call.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
/// let plan = Plan::compile("count", &schema, PlanOptions::default())?;
/// let error = plan.parse::<serde_json::Value>(r#"{"n": "many"}"#).unwrap_err();
/// assert_eq!((error.tool(), error.count()), ("count", 1));
/// assert_eq!(error.issues()[0].path, "/n");
/// assert_eq!(
///     error.to_text(),
///     "Invalid arguments for `count`: 1 problem. The tool was not run.\n\
///      1. /n: wrong type; got string \"many\"; expected integer\n\
///      Parameters (? = optional):\n  \
///        n: integer\n\
///      Call `count` again with this fixed."
/// );
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct InvalidArguments {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    plan: Plan,
    issues: Vec<Issue>,
    count: usize,
    corrected: Option<String>,
    /// The path after which nothing was checked. Empty if the path is not known, and `None` if everything was checked.
    unchecked: Option<String>,
    attempt: Option<(u32, u32)>,
    subject: Subject,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Call,
    /// The model answered in text, as requested.
    #[cfg(feature = "runtime")]
    Answer,
    /// The model answered in text, but should have called the answer tool. `Inner::plan` has the name of the tool.
    #[cfg(feature = "runtime")]
    AnswerWithoutTool,
}

impl Subject {
    /// Returns the word that replaces the path if the whole value is wrong.
    fn root(self) -> &'static str {
        if self == Self::Call { "(arguments)" } else { "(answer)" }
    }
}

impl InvalidArguments {
    pub(crate) fn new(
        plan: &Plan,
        issues: Vec<Issue>,
        count: usize,
        corrected: Option<String>,
    ) -> InvalidArguments {
        let count = count.max(issues.len());
        let inner = Inner {
            plan: plan.clone(),
            issues,
            count,
            corrected,
            unchecked: None,
            attempt: None,
            subject: Subject::Call,
        };
        InvalidArguments { inner: Arc::new(inner) }
    }

    pub(crate) fn unchecked_after(mut self, place: Option<String>) -> InvalidArguments {
        if place.is_some() {
            Arc::make_mut(&mut self.inner).unchecked = place;
        }
        self
    }

    pub(crate) fn moved(mut self, move_pointer: impl Fn(&mut String)) -> InvalidArguments {
        let inner = Arc::make_mut(&mut self.inner);
        inner
            .issues
            .iter_mut()
            .map(|issue| &mut issue.path)
            .chain(&mut inner.unchecked)
            .for_each(move_pointer);
        self
    }

    /// Replaces the plan, so that the report has the name and the parameters that the model sees.
    pub(crate) fn under(mut self, plan: &Plan) -> InvalidArguments {
        let inner = Arc::make_mut(&mut self.inner);
        inner.plan = plan.clone();
        self
    }

    /// Removes all but the code and the problem from issues about the argument at `pointer`, which the model does not know. Also removes
    /// the corrected call.
    pub(crate) fn without_place(mut self, pointer: &str) -> InvalidArguments {
        let inner = Arc::make_mut(&mut self.inner);
        for issue in &mut inner.issues {
            if is_within(&issue.path, pointer) {
                *issue = Issue::new(String::new(), issue.code, std::mem::take(&mut issue.problem));
            }
        }
        inner.corrected = None;
        if inner.unchecked.as_deref().is_some_and(|at| is_within(at, pointer)) {
            inner.unchecked = Some(String::new());
        }
        self
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn about(mut self, subject: Subject) -> InvalidArguments {
        Arc::make_mut(&mut self.inner).subject = subject;
        self
    }

    /// Returns the name of the tool.
    pub fn tool(&self) -> &str {
        self.inner.plan.name()
    }

    /// Returns the mistakes, at most the first 10,000. The order within an object is: unknown keys as they were sent, parameters as
    /// declared, and map entries as they were sent. Mistakes inside of a value are listed at the position of the value.
    pub fn issues(&self) -> &[Issue] {
        &self.inner.issues
    }

    /// Returns the number of mistakes, including those beyond the first 10,000, which [`issues`](Self::issues) leaves out.
    pub fn count(&self) -> usize {
        self.inner.count
    }

    /// Returns the arguments with every mistake fixed, as JSON text, if each mistake has exactly one possible correction and the result is
    /// valid. Calls of tools with secrets, of more than 2,000 bytes or with more than 50 mistakes are not corrected. A correction of more
    /// than 500 characters is dropped. The result is a suggestion for the model and is never applied.
    ///
    /// ```
    /// # #[derive(agent::ToolArgs)] struct Booking { hotel: String, nights: u32 }
    /// use agent::args::{Plan, PlanOptions};
    ///
    /// let plan = Plan::for_type::<Booking>("book_room", PlanOptions::default())?;
    /// let refused = plan.parse::<Booking>(r#"{"hotel": "Astoria", "nigths": 2}"#).err().unwrap();
    /// assert_eq!(refused.corrected(), Some(r#"{"hotel":"Astoria","nights":2}"#));
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn corrected(&self) -> Option<&str> {
        self.inner.corrected.as_deref()
    }

    /// Adds to the report that this was attempt `number` of at most `of`. The report asks for another call only if `number` is less than
    /// `of`.
    ///
    /// ```
    /// # use agent::args::{Plan, PlanOptions};
    /// # let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    /// # let plan = Plan::compile("count", &schema, PlanOptions::default())?;
    /// let error = plan.parse::<serde_json::Value>(r#"{"n": "many"}"#).unwrap_err();
    /// let text = error.clone().on_attempt(2, 3).to_text();
    /// assert!(text.starts_with("Invalid arguments for `count`: 1 problem, attempt 2 of 3. The tool was not run."));
    /// let text = error.on_attempt(3, 3).to_text();
    /// assert!(text.ends_with("That was the last attempt: do not call `count` again."));
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn on_attempt(mut self, number: u32, of: u32) -> InvalidArguments {
        Arc::make_mut(&mut self.inner).attempt = Some((number, of));
        self
    }

    /// Returns the report for the model: at most 20 mistakes and 6,000 characters.
    pub fn to_text(&self) -> String {
        let Inner { plan, issues, count, unchecked, attempt, subject, .. } = &*self.inner;
        let (tool, count, subject) = (plan.name(), *count, *subject);
        let is_call = subject == Subject::Call;
        let mut out = String::with_capacity(1024);
        let plural = if count == 1 { "" } else { "s" };
        match subject {
            Subject::Call => out.extend([REFUSAL, "`", tool, "`: "]),
            #[cfg(feature = "runtime")]
            _ => out.push_str("Invalid answer: "),
        }
        push_count(&mut out, count);
        out.extend([" problem", plural]);
        // Writing to a String cannot fail.
        if let Some((number, of)) = attempt {
            let _ = write!(out, ", attempt {number} of {of}");
        }
        out.push_str(if is_call { ". The tool was not run.\n" } else { ".\n" });
        for (i, issue) in issues.iter().take(MAX_ISSUES).enumerate() {
            push_count(&mut out, i + 1);
            out.push_str(". ");
            push_line(&mut out, issue, subject);
            out.push('\n');
        }
        let shown = issues.len().min(MAX_ISSUES);
        if count > shown {
            let plural = if count - shown == 1 { "" } else { "s" };
            let _ = writeln!(out, "… and {} more problem{plural}.", count - shown);
        }
        match unchecked.as_deref() {
            None => {}
            Some("") => out.push_str("Not every value was checked: there may be more problems.\n"),
            Some(at) => {
                out.push_str("Values after ");
                push_cut(&mut out, at, MAX_PATH);
                out.push_str(" were not checked.\n");
            }
        }
        let parameters = parameter_lines(plan.graph());
        out.push_str(match (parameters.is_empty(), is_call) {
            (true, true) => "Parameters: none, send {}\n",
            (true, false) => "Fields: none, answer with {}\n",
            (false, true) => "Parameters (? = optional):\n",
            (false, false) => "Fields (? = optional):\n",
        });
        out.push_str(parameters);
        let these = if count == 1 { "this" } else { "all of these" };
        let is_last = attempt.is_some_and(|(number, of)| number >= of);
        let mut end = String::new();
        let _ = match subject {
            Subject::Call if is_last => {
                write!(end, "That was the last attempt: do not call `{tool}` again.")
            }
            #[cfg(feature = "runtime")]
            _ if is_last => write!(end, "That was the last attempt."),
            #[cfg(feature = "runtime")]
            Subject::AnswerWithoutTool => {
                write!(end, "Give the answer again with {these} fixed, as arguments of the tool `{tool}`.")
            }
            _ => self.push_end(&mut end, these),
        };
        // The end says what to do next, so the lines before it are cut.
        if out.len() + end.len() > MAX_TEXT && out.chars().count() + end.chars().count() > MAX_TEXT {
            out = cut(&out, MAX_TEXT.saturating_sub(end.chars().count() + 1));
            out.push('\n');
        }
        out.push_str(&end);
        if out.len() > MAX_TEXT { cut(&out, MAX_TEXT) } else { out }
    }

    fn push_end(&self, out: &mut String, these: &str) -> fmt::Result {
        let Inner { plan, corrected, subject, .. } = &*self.inner;
        if let Some(call) = corrected {
            out.extend(["If this is what you meant, send: ", call]);
            Ok(())
        } else if *subject == Subject::Call {
            write!(out, "Call `{}` again with {these} fixed.", plan.name())
        } else {
            write!(out, "Answer again with {these} fixed: with JSON alone, no words around it.")
        }
    }

    /// Returns the report for programs: `{"error", "tool", "count", "issues": [{"path", "code", "message", "received"?, "expected"?,
    /// "allowed"?, "suggestions"?}], "unchecked_after"?, "parameters", "attempt"?: {"number", "of"}, "corrected"?}`. `message` is the
    /// issue's line in [`to_text`](Self::to_text), without its number; `unchecked_after` is the path after which nothing was checked, or
    /// empty if this path is not known. At most 20 issues are listed.
    ///
    /// ```
    /// # #[derive(agent::ToolArgs)] struct Move { steps: i32 }
    /// use agent::args::{Plan, PlanOptions};
    ///
    /// let plan = Plan::for_type::<Move>("move", PlanOptions::default())?;
    /// let report = plan.parse::<Move>("{}").err().unwrap().to_json();
    /// assert_eq!((&report["tool"], &report["issues"][0]["path"]), (&"move".into(), &"/steps".into()));
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn to_json(&self) -> Value {
        let Inner { plan, issues, count, corrected, unchecked, attempt, .. } = &*self.inner;
        let issues: Vec<Value> = issues.iter().take(MAX_ISSUES).map(issue_json).collect();
        let mut out = json!({
            "error": "invalid_arguments",
            "tool": plan.name(),
            "count": count,
            "issues": issues,
            "parameters": parameters(plan.graph()),
        });
        if let Some(at) = unchecked {
            out["unchecked_after"] = cut(at, MAX_PATH).into();
        }
        if let Some((number, of)) = attempt {
            out["attempt"] = json!({"number": number, "of": of});
        }
        if let Some(call) = corrected.as_ref().and_then(|c| serde_json::from_str::<Value>(c).ok()) {
            out["corrected"] = call;
        }
        out
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

crate::error_text::debug_is_the_sentence!(InvalidArguments);

impl std::error::Error for InvalidArguments {}

impl fmt::Display for Issue {
    /// Writes the issue as in the report, without its number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        push_line(&mut line, self, Subject::Call);
        f.write_str(&line)
    }
}

/// Writes a number. Most numbers have a single digit, which is written without the formatting machinery.
fn push_count(out: &mut String, count: usize) {
    match u8::try_from(count) {
        Ok(digit @ 0..=9) => out.push(char::from(b'0' + digit)),
        // Writing to a String cannot fail.
        _ => drop(write!(out, "{count}")),
    }
}

/// Writes `PATH: PROBLEM[; got RECEIVED][; expected SIGNATURE or ALLOWED VALUES][; did you mean "A" or "B"?]`.
fn push_line(out: &mut String, issue: &Issue, subject: Subject) {
    let start = out.len();
    if issue.path.is_empty() {
        out.push_str(subject.root());
    } else {
        push_cut(out, &issue.path, MAX_PATH);
    }
    out.push_str(": ");
    out.push_str(&issue.problem);
    if let Some(received) = &issue.received {
        out.push_str("; got ");
        out.push_str(received);
    }
    if let Some(expected) = &issue.expected {
        out.push_str("; expected ");
        out.push_str(expected);
    } else if !issue.allowed.is_empty() {
        out.push_str("; expected ");
        push_set(out, issue.allowed.iter());
    }
    if !issue.suggestions.is_empty() {
        out.push_str("; did you mean ");
        for (i, suggestion) in issue.suggestions.iter().enumerate() {
            if i > 0 {
                out.push_str(" or ");
            }
            push_quoted(out, suggestion, MAX_LINE);
        }
        out.push('?');
    }
    if out.len() - start > MAX_LINE {
        let line = cut(out.get(start..).unwrap_or_default(), MAX_LINE);
        out.truncate(start);
        out.push_str(&line);
    }
}

fn issue_json(issue: &Issue) -> Value {
    let mut out = Map::new();
    out.insert("path".into(), cut(&issue.path, MAX_PATH).into());
    out.insert("code".into(), issue.code.as_str().into());
    out.insert("message".into(), issue.to_string().into());
    if let Some(received) = &issue.received {
        out.insert("received".into(), received.as_str().into());
    }
    if let Some(expected) = &issue.expected {
        out.insert("expected".into(), cut(expected, MAX_LINE).into());
    }
    if !issue.allowed.is_empty() {
        let allowed: Vec<Value> =
            issue.allowed.iter().take(MAX_MEMBERS).map(|m| super::coercion::recorded(m.clone())).collect();
        out.insert("allowed".into(), allowed.into());
    }
    if !issue.suggestions.is_empty() {
        out.insert("suggestions".into(), json!(issue.suggestions));
    }
    Value::Object(out)
}

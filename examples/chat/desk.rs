//! Approval of calls, and the desk: the queue of questions to the person at the terminal.

use crate::look::{Kind, Look, harmless};
use crate::pager;
use crate::prompt::{Line, Prompt};
use crate::secrets::{SECRET, restored};
use crate::tell::coerced;
use agent::message::ToolCall;
use agent::run::ApprovalRequest;
use agent::tool::{CallError, QuestionInput};
use agent::{Decision, Registry, Value};
use rustyline::error::ReadlineError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The most issues of edited arguments that are shown at once.
const ISSUES: usize = 10;

/// A question to the person at the terminal.
pub(crate) enum Question {
    /// A call that needs approval.
    Call { request: Box<ApprovalRequest>, answer: oneshot::Sender<Decision> },
    /// A question that a running tool asks.
    Tool { question: Box<agent::tool::Question>, answer: oneshot::Sender<QuestionInput> },
}

impl Question {
    /// Whether the asker no longer waits for the answer.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Call { answer, .. } => answer.is_closed(),
            Self::Tool { answer, .. } => answer.is_closed(),
        }
    }
}

/// The queue of questions. Clones share it.
#[derive(Clone)]
pub(crate) struct Desk {
    always: Arc<Mutex<Vec<String>>>,
    /// None if no person can answer, as in a pipe.
    questions: Option<mpsc::Sender<Question>>,
}

impl Desk {
    /// Returns a desk and the receiver of its questions. Tools named in `always` run without a question. `docs__*` names every tool whose
    /// name begins with `docs__`.
    pub(crate) fn new(always: Vec<String>, is_attended: bool) -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(64);
        let questions = is_attended.then_some(questions);
        (Self { always: Arc::new(Mutex::new(always)), questions }, asked)
    }

    /// Waits for the decision on a call.
    pub(crate) async fn decide(self, request: ApprovalRequest) -> Decision {
        if self.always_allows(&request.call.name) {
            return Decision::Allow;
        }
        let Some(questions) = &self.questions else {
            return Decision::Deny("Nobody is there to allow it: the chat runs in a pipe.".to_owned());
        };
        let (answer, decided) = oneshot::channel();
        let nobody = || Decision::Deny("Nobody decided.".to_owned());
        if questions.send(Question::Call { request: Box::new(request), answer }).await.is_err() {
            return nobody();
        }
        decided.await.unwrap_or_else(|_| nobody())
    }

    /// Puts the question of a tool to the person, and waits for the answer.
    pub(crate) async fn input(self, question: agent::tool::Question) -> QuestionInput {
        let Some(questions) = &self.questions else { return QuestionInput::Cancel };
        let (answer, given) = oneshot::channel();
        let question = Question::Tool { question: Box::new(question), answer };
        if questions.send(question).await.is_err() {
            return QuestionInput::Cancel;
        }
        given.await.unwrap_or(QuestionInput::Cancel)
    }

    /// Whether this tool runs without a question.
    pub(crate) fn always_allows(&self, tool: &str) -> bool {
        self.always().iter().any(|one| match one.strip_suffix('*') {
            Some(begin) => tool.starts_with(begin),
            None => one == tool,
        })
    }

    fn always(&self) -> MutexGuard<'_, Vec<String>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the person at the terminal; `sent` is the call as the model sent it. None: they pressed Ctrl-C.
    pub(crate) async fn ask(
        &self,
        look: Look,
        prompt: &mut Prompt,
        registry: &Registry,
        request: &ApprovalRequest,
        sent: Option<&ToolCall>,
    ) -> Result<Option<Decision>, ReadlineError> {
        let mut call = request.call.clone();
        if let Some(args) = request.args_with_secrets() {
            // The secrets are needed to validate edited arguments. They are never shown.
            call.args.clone_from(args);
        }
        let call = &call;
        // The person may have answered `always` for this tool while this call waited.
        if self.always_allows(&call.name) {
            return Ok(Some(Decision::Allow));
        }
        let of = if request.path.is_root() { String::new() } else { format!("{} > ", request.path) };
        let asks = format!("? {}{} wants to run with", harmless(&of), harmless(&call.name));
        let mut lines = vec![look.paint(Kind::Notice, &asks)];
        let args = call.args.value().unwrap_or_default();
        let plan = registry.get(&call.name).map(|tool| tool.definition().plan());
        let args = plan.and_then(|plan| plan.without_secrets(&args)).unwrap_or(args);
        lines.extend(readable(&args).lines().map(|line| format!("  {line}")));
        // Coercions are shown again after the call, but the person needs them for the decision.
        if let Some(checked) = sent.and_then(|sent| registry.validate(sent).ok()) {
            lines.extend(coerced(look, checked.coercions()));
        }
        pager::page(look, &lines).await?;
        loop {
            let line = match prompt.ask("allow it? yes, no, edit, always › ", "").await? {
                Line::Text(line) => line,
                Line::Interrupt => return Ok(None),
                Line::End => {
                    return Ok(Some(Decision::Deny("The person left without a decision.".to_owned())));
                }
            };
            match answer(&line) {
                Some(Answer::Allow) => return Ok(Some(Decision::Allow)),
                Some(Answer::Deny(reason)) => return Ok(Some(Decision::Deny(reason))),
                Some(Answer::Always) => {
                    self.always().push(call.name.clone());
                    let note = format!("  {} is not asked about again in this chat", call.name);
                    pager::page(look, &[look.paint(Kind::Dim, &note)]).await?;
                    return Ok(Some(Decision::Allow));
                }
                Some(Answer::Edit) => {
                    if let Some(arguments) = edit(look, prompt, registry, call).await? {
                        return Ok(Some(Decision::AllowWith(arguments)));
                    }
                }
                None => {
                    let note = "  answer yes, no (and why, if you like), edit, or always; one letter will do";
                    pager::page(look, &[look.paint(Kind::Dim, note)]).await?;
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Allow,
    Deny(String),
    Edit,
    Always,
}

/// Parses an answer. Other words than these return None, so that unclear words allow nothing.
fn answer(line: &str) -> Option<Answer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    Some(match (&*word.trim_end_matches([',', ':', '.']).to_lowercase(), rest) {
        ("y" | "yes" | "allow", "") => Answer::Allow,
        ("a" | "always", "") => Answer::Always,
        ("e" | "edit", "") => Answer::Edit,
        ("n" | "no" | "deny", "") => Answer::Deny("The person said no.".to_owned()),
        ("n" | "no" | "deny", reason) => Answer::Deny(format!("The person said no: {reason}")),
        _ => return None,
    })
}

/// Lets the person edit the arguments until they are valid. A secret is shown as a placeholder, and keeps its value while the placeholder
/// stays. None: the person changed nothing, or stopped.
async fn edit(
    look: Look,
    prompt: &mut Prompt,
    registry: &Registry,
    call: &ToolCall,
) -> Result<Option<Value>, ReadlineError> {
    let real = call.args.value().unwrap_or_default();
    let plan = registry.get(&call.name).map(|tool| tool.definition().plan());
    let masked = plan.and_then(|plan| plan.without_secrets(&real));
    let hides = masked.as_ref().is_some_and(|masked| *masked != real);
    // Without secrets, the text is exactly as the model wrote it.
    let sent = if hides {
        masked.as_ref().map(Value::to_string).unwrap_or_default()
    } else {
        call.args.text().to_owned()
    };
    let shown = masked.unwrap_or_else(|| real.clone());
    let note = "  change them; as they are, or empty, you are asked again";
    let note = if hides {
        format!("{note}; {SECRET} stays what it is, or write another value in its place")
    } else {
        note.to_owned()
    };
    pager::page(look, &[look.paint(Kind::Dim, &note)]).await?;
    let mut text = sent.clone();
    loop {
        text = match prompt.ask("arguments › ", &text).await? {
            Line::Text(line) => line,
            Line::Interrupt | Line::End => return Ok(None),
        };
        if text.trim().is_empty() || text == sent {
            return Ok(None);
        }
        let problems = match changed(registry, call, &text, &shown, &real) {
            Ok(arguments) => return Ok(Some(arguments)),
            Err(problems) => problems,
        };
        let lines: Vec<String> =
            problems.iter().map(|line| look.paint(Kind::Bad, &format!("  {}", harmless(line)))).collect();
        pager::page(look, &lines).await?;
    }
}

/// Checks edited arguments, and returns them with their secrets. The error is the list of problems, worded for the person.
fn changed(
    registry: &Registry,
    call: &ToolCall,
    text: &str,
    shown: &Value,
    real: &Value,
) -> Result<Value, Vec<String>> {
    let edited: Value =
        serde_json::from_str(text).map_err(|error| vec![format!("this is no JSON: {error}")])?;
    let arguments = restored(&edited, shown, real)
        .ok_or_else(|| vec![format!("{SECRET} stands where no secret was: write the value itself")])?;
    let call = ToolCall::new(call.id.clone(), call.name.clone(), arguments.to_string());
    match registry.validate(&call) {
        Ok(_) => Ok(arguments),
        // The text of the report is written for a model, so only its issues are shown.
        Err(CallError::InvalidArguments(refused)) => {
            let head =
                format!("{} does not take these; change them once more, or leave them empty", call.name);
            let issues = refused.issues().iter().take(ISSUES).map(|issue| format!("- {issue}"));
            let more = refused.count().saturating_sub(ISSUES);
            let more = (more > 0).then(|| format!("- and {more} more"));
            Err(std::iter::once(head).chain(issues).chain(more).collect())
        }
        Err(other) => Err(vec![format!("{} does not take these: {other}", call.name)]),
    }
}

/// JSON in which characters that are invisible or change the direction of text are escaped: nothing can hide from the person.
fn readable(value: &Value) -> String {
    let is_plain = |c: &char| *c == '\n' || harmless(c.encode_utf8(&mut [0; 4])).chars().eq([*c]);
    let text = format!("{value:#}");
    text.chars()
        .map(|c| if is_plain(&c) { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::json;

    #[test]
    fn only_clear_words_allow() {
        assert_eq!(answer(" Y "), Some(Answer::Allow));
        assert_eq!(answer("no, too much"), Some(Answer::Deny("The person said no: too much".to_owned())));
        assert_eq!(answer("always"), Some(Answer::Always));
        for unclear in ["", "yes but less", "ok", "yellow", "always ask"] {
            assert_eq!(answer(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn nothing_hides_in_arguments() {
        assert_eq!(readable(&json!("a\u{202e}b\u{1b}")), r#""a\u202eb\u001b""#);
        assert_eq!(readable(&json!({"größe": 1})), "{\n  \"größe\": 1\n}");
    }

    /// Signs in.
    #[agent::tool(inline)]
    fn sign_in(user: String, #[arg(secret, range(1000..=9999))] pin: u32) -> String {
        format!("{user} {pin}")
    }

    #[test]
    fn who_changes_arguments_is_spoken_to() {
        let registry = Registry::new(agent::tools![sign_in]).unwrap();
        let (real, shown) = (json!({"user": "ann", "pin": 4711}), json!({"user": "ann", "pin": SECRET}));
        let call = ToolCall::new("1", "sign_in", real.to_string());
        let change = |text: &str| changed(&registry, &call, text, &shown, &real);
        assert_eq!(change(r#"{"user": "bob", "pin": "[secret]"}"#), Ok(json!({"user": "bob", "pin": 4711})));
        assert_eq!(change(r#"{"user": "bob", "pin": 1234}"#), Ok(json!({"user": "bob", "pin": 1234})));
        let refused = change(r#"{"user": 7, "pin": 12}"#).unwrap_err();
        assert_eq!(refused[0], "sign_in does not take these; change them once more, or leave them empty");
        let all = refused.join("\n");
        assert!(all.contains("- /user: ") && all.contains("- /pin: "), "{all}");
        assert!(!all.contains("12") && !all.contains("Call `"), "{all}");
        assert!(change(r#"{"user": "[secret]"}"#).unwrap_err()[0].contains("write the value itself"));
        assert!(change("{").unwrap_err()[0].contains("no JSON"));
    }

    #[tokio::test]
    async fn names_and_beginnings_of_names_are_always_allowed() {
        let (desk, _asked) = Desk::new(vec!["docs__*".to_owned(), "pay".to_owned()], false);
        assert!(desk.always_allows("docs__search") && desk.always_allows("pay"));
        assert!(!desk.always_allows("payments") && !desk.always_allows("docs"));
    }
}

//! Slash commands.

use crate::args::nearest;
use crate::chat::Chat;
use crate::look::{Kind, count, fit, harmless, one_line};
use crate::models;
use crate::pager::page;
use crate::tell::shown;
use agent::message::{Message, ToolCall, Usage};
use std::error::Error;

const COMMANDS: [(&str, &str, &str); 11] = [
    ("/help", "", "this list"),
    ("/model", "[NAME]", "who answers; with a name, go on with that model"),
    ("/tools", "[NAME]", "what the model may call; with a name, as the model sees it"),
    ("/show", "[NUMBER]", "the last answer again, or a call with its whole result"),
    ("/usage", "", "tokens and money, of this chat and of the conversation"),
    ("/context", "", "what fills the model's window"),
    (
        "/compact",
        "[FOCUS]",
        "replace old messages by a summary, for the model alone; with what it has to keep",
    ),
    ("/save", "[NAME]", "keep the conversation under a name, from now on"),
    ("/load", "[NAME]", "go on with a conversation that is kept; without a name, a list"),
    ("/new", "", "begin an empty conversation"),
    ("/quit", "", "leave; so do `exit`, `quit`, Ctrl-D, and Ctrl-C twice"),
];

/// The names of [`COMMANDS`].
pub(crate) const NAMES: [&str; 11] = [
    "/help", "/model", "/tools", "/show", "/usage", "/context", "/compact", "/save", "/load", "/new", "/quit",
];

/// The most lines of old messages that are shown when a conversation continues.
const TAIL: usize = 8;
/// The most columns of a message in one of these lines.
const WIDTH: usize = 200;

const KEYS: &str = "\
Lines are edited as in a shell: arrows, Ctrl-A, Ctrl-R, Tab after a slash.
Alt-Enter, or \\ at the end, begins another line.
While an answer is on its way, what you type is heard between two turns of the
model, and the chat says when. Ctrl-C stops the answer, twice ends the chat.
Secret arguments are hidden here and in the log; the file of a session has them.";

/// Whether a line ends the chat although it has no slash. `exit` and `quit` are habits from the shell.
pub(crate) fn is_farewell(line: &str) -> bool {
    ["exit", "quit"].contains(&line.trim())
}

/// Whether the chat goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Go,
    Quit,
}

/// Runs a command. If the command fails, its error is printed and the chat continues.
pub(crate) async fn run(chat: &mut Chat, line: &str) -> std::io::Result<Next> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let argument = (!rest.is_empty()).then_some(rest);
    let told = match (name, argument) {
        ("/quit" | "/exit" | "/q", None) => return Ok(Next::Quit),
        ("/help" | "/?", None) => Ok(help(chat)),
        ("/model", None) => Ok(model(chat)),
        ("/model", Some(name)) => {
            chat.switch(name).map(|()| vec![format!("{} answers from now on", chat.title())])
        }
        ("/tools", name) => tools(chat, name),
        ("/show", number) => show(chat, number),
        ("/usage", None) => Ok(usage(chat)),
        ("/context", None) => Ok(context(chat)),
        ("/compact", focus) => compact(chat, focus).await,
        ("/save", name) => save(chat, name),
        ("/load", None) => Ok(sessions(chat)),
        ("/load", Some(name)) => load(chat, name),
        ("/new", None) => {
            chat.forget().map(|()| vec!["an empty conversation; what was kept stays kept".to_owned()])
        }
        (known, Some(_)) if NAMES.contains(&known) => Err(format!("{known} takes nothing behind it").into()),
        (unknown, _) => {
            let meant =
                nearest(unknown, NAMES).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            Err(format!("there is no {}; {meant}/help lists the commands", one_line(unknown)).into())
        }
    };
    let lines = told.unwrap_or_else(|error: Box<dyn Error>| {
        vec![chat.look.paint(Kind::Bad, &format!("✗ {}", one_line(&error.to_string())))]
    });
    page(chat.look, &lines).await?;
    Ok(Next::Go)
}

/// The words that may follow each command, for completion.
pub(crate) fn words(chat: &Chat) -> Vec<(String, Vec<String>)> {
    let models = models::providers().into_iter();
    let models = models.map(|name| if name == crate::demo::model::NAME { name } else { format!("{name}/") });
    let tools = chat.assistant.registry().names().map(str::to_owned);
    let sessions = chat.home.sessions();
    [
        ("/model", models.collect()),
        ("/tools", tools.collect()),
        ("/save", sessions.clone()),
        ("/load", sessions),
        ("/show", (1..=chat.results.len()).map(|number| number.to_string()).collect()),
    ]
    .map(|(command, words)| (command.to_owned(), words))
    .to_vec()
}

fn help(chat: &Chat) -> Vec<String> {
    let line = |(name, argument, what): &(&str, &str, &str)| {
        format!(
            "  {} {}",
            chat.look.paint(Kind::Bold, &format!("{:<17}", format!("{name} {argument}"))),
            what
        )
    };
    COMMANDS.iter().map(line).chain(KEYS.lines().map(|line| chat.look.paint(Kind::Dim, line))).collect()
}

fn model(chat: &Chat) -> Vec<String> {
    let because =
        chat.chosen.because.as_ref().map(|because| format!(" (because {because})")).unwrap_or_default();
    vec![
        format!("{}{because}", chat.title()),
        chat.look.paint(
            Kind::Dim,
            &format!("/model NAME, where NAME is provider/model: {}", models::providers().join(", ")),
        ),
    ]
}

fn tools(chat: &Chat, name: Option<&str>) -> Result<Vec<String>, Box<dyn Error>> {
    let (look, registry) = (chat.look, chat.assistant.registry());
    if let Some(name) = name {
        let tool = registry.fetch(name)?.definition();
        let schema = format!("{:#}", tool.parameters());
        let lines = tool.description().lines().chain(schema.lines()).map(harmless);
        return Ok(std::iter::once(look.paint(Kind::Bold, tool.name())).chain(lines).collect());
    }
    let line = |tool: &agent::ToolDefinition| {
        let policy = registry.get(tool.name()).map(|tool| tool.policy().approval.clone()).unwrap_or_default();
        let asks = match policy {
            _ if policy == agent::Approval::NEVER => "",
            _ if chat.desk.always_allows(tool.name()) => " (always allowed)",
            _ if policy == agent::Approval::ALWAYS => " (asks you)",
            _ => " (may ask you)",
        };
        let what = fit(&one_line(tool.description()), 100);
        format!("  {}{asks}  {}", look.paint(Kind::Bold, tool.name()), look.paint(Kind::Dim, &what))
    };
    let lines: Vec<String> = chat.assistant.definitions().iter().map(line).collect();
    Ok(if lines.is_empty() { vec!["the model may call nothing".to_owned()] } else { lines })
}

fn show(chat: &Chat, number: Option<&str>) -> Result<Vec<String>, Box<dyn Error>> {
    let Some(number) = number else {
        let messages = chat.assistant.messages();
        let answer = messages
            .iter()
            .rev()
            .filter_map(|message| message.as_assistant())
            .map(agent::message::AssistantMessage::text);
        let answer =
            answer.into_iter().find(|text| !text.trim().is_empty()).ok_or("there is no answer yet")?;
        return Ok(harmless(&answer).lines().map(str::to_owned).collect());
    };
    let most = chat.results.len();
    let at = number.parse::<usize>().ok().filter(|number| (1..=most).contains(number));
    let call = at.and_then(|at| chat.results.get(at - 1)).ok_or_else(|| match most {
        0 => "no tool was called yet".to_owned(),
        _ => format!("{number} is no call: there are 1 to {most}"),
    })?;
    let head = format!("{} {}", chat.look.paint(Kind::Bold, &call.tool), call.args);
    Ok(std::iter::once(head).chain(call.result.lines().map(str::to_owned)).collect())
}

fn usage(chat: &Chat) -> Vec<String> {
    let messages = chat.assistant.messages();
    let replies: Vec<&agent::message::AssistantMessage> =
        messages.iter().filter_map(|message| message.as_assistant()).collect();
    let whole: Usage = replies.iter().map(|reply| &reply.usage).sum();
    let line = |what: &str, turns: u64, usage: &Usage| {
        let mut parts =
            vec![format!("{what}: {}", count(turns, "turn")), format!("{} tokens in", usage.input)];
        let share = |tokens: u64, of: &str| (tokens > 0).then(|| format!("{tokens} of the {of}"));
        parts.extend(share(usage.cache_read, "input from the cache"));
        parts.push(format!("{} out", usage.output));
        parts.extend(share(usage.reasoning, "output for thinking"));
        parts.extend(usage.cost.map(|cost| format!("${:.4}", cost.total)));
        parts.join(", ")
    };
    let mut lines = vec![
        line("this chat", chat.turns, &chat.used),
        line("the conversation", replies.len() as u64, &whole),
    ];
    if let (Some(window), Some(last)) = (chat.chosen.window, replies.last()) {
        let used = last.usage.total;
        lines.push(format!(
            "the last request and its reply had {used} of {window} tokens ({} %)",
            used * 100 / window.max(1)
        ));
    }
    lines
}

/// The width of the longest bar, in columns.
const BAR: u64 = 24;

/// Lists the parts of the context window, each with a bar. The largest part has the longest bar.
fn context(chat: &Chat) -> Vec<String> {
    let report = chat.assistant.context();
    let table = report.to_string();
    let mut lines = table.lines();
    let head = chat.look.paint(Kind::Bold, lines.next().unwrap_or_default());
    let largest = report.parts.first().map_or(1, |part| part.tokens.max(1));
    let rows = report.parts.iter().zip(lines).map(|(part, line)| {
        let cells = part.tokens.saturating_mul(BAR).div_ceil(largest);
        let bar = "█".repeat(usize::try_from(cells.min(BAR)).unwrap_or_default());
        format!("  {line}  {}", chat.look.paint(Kind::User, &bar))
    });
    std::iter::once(head).chain(rows).collect()
}

/// Replaces old messages by a summary, for the model only. The messages themselves stay in the conversation.
async fn compact(chat: &mut Chat, focus: Option<&str>) -> Result<Vec<String>, Box<dyn Error>> {
    let Some(done) = chat.assistant.compact(focus).await? else {
        return Ok(vec!["there is nothing to summarize yet".to_owned()]);
    };
    chat.used += &done.usage;
    chat.keep()?;
    let messages = count(done.messages as u64, "message");
    Ok(vec![format!(
        "{messages} are a summary for the model now: about {} tokens instead of {}",
        done.tokens_after, done.tokens_before
    )])
}

fn save(chat: &mut Chat, name: Option<&str>) -> Result<Vec<String>, Box<dyn Error>> {
    let name = match (name, &chat.session) {
        (Some(name), _) => name.to_owned(),
        (None, Some(session)) => session.name.clone(),
        (None, None) => return Err("under which name? /save NAME".into()),
    };
    chat.save(&name)?;
    Ok(vec![format!("kept as session {name}, and from now on by itself")])
}

fn load(chat: &mut Chat, name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let before = chat.chosen.name.clone();
    let note = chat.load(name)?;
    let model = (chat.chosen.name != before).then(|| format!("{} answers from now on", chat.title()));
    Ok(note.into_iter().chain(model).chain([chat.summary()]).chain(last(chat)).collect())
}

fn sessions(chat: &Chat) -> Vec<String> {
    let known = chat.home.sessions();
    if known.is_empty() {
        return vec!["no session is kept; /save NAME keeps this one".to_owned()];
    }
    known.into_iter().map(|name| format!("  {name}")).collect()
}

/// Shows the end of a conversation that is continued: the last messages, and the number of messages before them.
pub(crate) fn last(chat: &Chat) -> Vec<String> {
    let messages = chat.assistant.messages();
    let (mut lines, mut before) = (Vec::new(), messages.len());
    for message in messages.iter().rev() {
        let told = told(chat, message);
        if lines.len() + told.len() > TAIL {
            break;
        }
        before -= 1;
        lines.extend(told.into_iter().rev());
    }
    if before > 0 {
        lines.push(format!("… {} before", count(before as u64, "message")));
    }
    lines.reverse();
    lines.iter().map(|line| chat.look.paint(Kind::Dim, line)).collect()
}

/// A line for the text of a message, and one for each of its calls. Results of tools are left out.
fn told(chat: &Chat, message: &Message) -> Vec<String> {
    let line = |sign: &str, text: &str| {
        // `fit` needs no more than this, and texts may be long.
        let begin: String = text.chars().take(WIDTH + 1).collect();
        (!begin.trim().is_empty()).then(|| format!("{sign}{}", fit(&one_line(&begin), WIDTH)))
    };
    match message {
        Message::User(user) => line(crate::prompt::SIGN, &user.text()).into_iter().collect(),
        Message::Assistant(reply) => {
            let call = |call: &ToolCall| {
                let args = shown(chat.assistant.registry(), call);
                line("⚙ ", &format!("{} {}", call.name, args.as_deref().unwrap_or(call.args.text())))
            };
            line("", &reply.text()).into_iter().chain(reply.tool_calls().filter_map(call)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_known_by_its_name() {
        assert_eq!(COMMANDS.map(|(name, ..)| name), NAMES);
    }
}

//! The chat: its model and tools, the conversation, and the usage.

use crate::args::Args;
use crate::demo;
use crate::desk::{Desk, Question};
use crate::look::{self, Look};
use crate::models::{self, Chosen};
use crate::servers;
use crate::sessions::{Home, Session};
use crate::tell::Shown;
use crate::traffic::Log;
use agent::mcp::McpClient;
use agent::message::{Conversation, ToolCall, Usage};
use agent::model::{ContextRules, Thinking};
use agent::{Approval, Assistant};
use std::collections::VecDeque;
use std::error::Error;
use tokio::sync::mpsc;

/// Results that `/show` still knows.
const SHOWN: usize = 100;

/// Why the chat cannot begin.
pub(crate) enum Refused {
    /// It was called wrongly.
    Usage(Box<dyn Error>),
}

/// A chat that goes on.
pub(crate) struct Chat {
    pub(crate) look: Look,
    pub(crate) home: Home,
    pub(crate) chosen: Chosen,
    pub(crate) clients: Vec<McpClient>,
    pub(crate) assistant: Assistant,
    pub(crate) desk: Desk,
    pub(crate) asked: mpsc::Receiver<Question>,
    pub(crate) session: Option<Session>,
    /// What this chat took so far.
    pub(crate) used: Usage,
    pub(crate) turns: u64,
    pub(crate) results: VecDeque<Shown>,
    log: Option<Log>,
    system: Option<String>,
    thinking: Option<Thinking>,
    has_tools: bool,
    window: Option<u64>,
    /// Whether the command line names the model: then no session changes it.
    is_model_given: bool,
}

impl Chat {
    /// The chat that the command line asks for, and what is to be told about it.
    pub(crate) async fn begin(
        args: &Args,
        look: Look,
        is_attended: bool,
    ) -> Result<(Self, Vec<String>), Refused> {
        let usage = |error: String| Refused::Usage(error.into());
        let mut notes = Vec::new();
        let log = match &args.log {
            None => None,
            Some(path) => {
                Some(Log::open(path).map_err(|error| usage(format!("--log {}: {error}", path.display())))?)
            }
        };
        let home = Home::find();
        let is_known = |name: &String| Session::exists(&home, name).map_err(usage);
        // The model of a session that is kept is in its file. No file is made for a model that cannot be had.
        let mut chosen = None;
        if args.model.is_some() || !args.session.as_ref().map_or(Ok(false), is_known)? {
            chosen = Some(models::choose(args.model.as_deref(), log.as_ref()).map_err(Refused::Usage)?);
        }
        let (session, conversation) = match &args.session {
            None => (None, Conversation::new()),
            Some(name) => {
                let (session, conversation, note) = Session::open(&home, name).map_err(Refused::Usage)?;
                notes.extend(note);
                (Some(session), conversation)
            }
        };
        let chosen = match chosen {
            Some(chosen) => chosen,
            None => resumed(session.as_ref(), log.as_ref()).map_err(Refused::Usage)?,
        };
        let configs = args.mcp.iter().map(|given| servers::config(given, args.mcp_timeout));
        let configs = configs.collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let (clients, missing) = servers::connect(configs, log.as_ref()).await;
        let is_complete = missing.is_empty();
        notes.extend(missing);
        for client in &clients {
            let report = client.report().await;
            notes.extend(
                report
                    .left_out
                    .iter()
                    .map(|(tool, reason)| format!("{}: {tool} is left out: {reason}", report.name)),
            );
        }
        let (desk, asked) = Desk::new(args.allow.clone(), is_attended);
        let setup = Setup {
            chosen: &chosen,
            clients: &clients,
            desk: &desk,
            system: args.system.as_deref(),
            thinking: args.thinking,
            has_tools: !args.no_tools,
            window: args.window,
            log: log.as_ref(),
        };
        let assistant = setup.build(conversation).map_err(Refused::Usage)?;
        let chat = Self {
            look,
            home,
            assistant,
            chosen,
            clients,
            desk,
            asked,
            session,
            used: Usage::default(),
            turns: 0,
            results: VecDeque::new(),
            log,
            system: args.system.clone(),
            thinking: args.thinking,
            has_tools: !args.no_tools,
            window: args.window,
            is_model_given: args.model.is_some(),
        };
        if let Some(allowed) = args.allow.iter().find(|allowed| !chat.has_tool_like(allowed)) {
            let known = chat.assistant.registry().names().collect::<Vec<_>>().join(", ");
            let text = format!("--allow {allowed}: there is no such tool; known are {known}");
            if is_complete {
                return Err(usage(text));
            }
            notes.push(text);
        }
        Ok((chat, notes))
    }

    fn has_tool_like(&self, allowed: &str) -> bool {
        let mut names = self.assistant.registry().names();
        match allowed.strip_suffix('*') {
            Some(begin) => names.any(|name| name.starts_with(begin)),
            None => names.any(|name| name == allowed),
        }
    }

    /// The same chat with another conversation, or another model.
    fn rebuild(&mut self, chosen: Chosen, conversation: Conversation) -> Result<(), Box<dyn Error>> {
        let setup = Setup {
            chosen: &chosen,
            clients: &self.clients,
            desk: &self.desk,
            system: self.system.as_deref(),
            thinking: self.thinking,
            has_tools: self.has_tools,
            window: self.window,
            log: self.log.as_ref(),
        };
        self.assistant = setup.build(conversation)?;
        self.chosen = chosen;
        Ok(())
    }

    /// Goes on with another model; what was said stays.
    pub(crate) fn switch(&mut self, name: &str) -> Result<(), Box<dyn Error>> {
        let chosen = models::choose(Some(name), self.log.as_ref())?;
        self.rebuild(chosen, self.assistant.messages())?;
        Ok(self.keep()?)
    }

    /// Goes on with a session that is kept, and with its model.
    pub(crate) fn load(&mut self, name: &str) -> Result<Option<String>, Box<dyn Error>> {
        if !Session::exists(&self.home, name)? {
            let known = self.home.sessions();
            let known = if known.is_empty() {
                "none is kept".to_owned()
            } else {
                format!("known are {}", known.join(", "))
            };
            return Err(format!("there is no session {name}; {known}").into());
        }
        let (session, conversation, note) = Session::open(&self.home, name)?;
        let is_same = session.model.as_ref().is_none_or(|model| *model == self.chosen.name);
        let chosen = if is_same || self.is_model_given {
            self.chosen.clone()
        } else {
            resumed(Some(&session), self.log.as_ref())?
        };
        self.rebuild(chosen, conversation)?;
        self.session = Some(session);
        Ok(note)
    }

    /// Keeps the conversation under a name, from now on.
    pub(crate) fn save(&mut self, name: &str) -> Result<(), Box<dyn Error>> {
        let is_other = self.session.as_ref().is_none_or(|session| session.name != name);
        if is_other && Session::exists(&self.home, name)? {
            return Err(format!("there is a session {name}; /load it, or take another name").into());
        }
        if is_other {
            self.session = Some(Session::open(&self.home, name)?.0);
        }
        self.keep()?;
        Ok(())
    }

    /// Forgets the conversation. What was kept of it stays kept.
    pub(crate) fn forget(&mut self) -> Result<(), Box<dyn Error>> {
        self.rebuild(self.chosen.clone(), Conversation::new())?;
        self.session = None;
        self.results.clear();
        Ok(())
    }

    /// Writes down what is new, where the chat has a session.
    pub(crate) fn keep(&mut self) -> std::io::Result<()> {
        let conversation = self.assistant.messages();
        self.session.as_mut().map_or(Ok(()), |session| session.keep(&conversation, &self.chosen.name))
    }

    /// A call as the model sent it.
    pub(crate) fn sent(&self, call_id: &str) -> Option<ToolCall> {
        let messages = self.assistant.messages();
        let mut replies = messages.iter().rev().filter_map(|message| message.as_assistant());
        let call = replies.find_map(|reply| reply.tool_calls().find(|call| call.id == call_id));
        call.cloned()
    }

    /// Remembers what `/show` can show.
    pub(crate) fn remember(&mut self, shown: Vec<Shown>) {
        self.results.extend(shown);
        while self.results.len() > SHOWN {
            self.results.pop_front();
        }
    }

    /// In a line: who answers.
    pub(crate) fn title(&self) -> String {
        if self.chosen.is_demo() {
            format!("{} — {}", demo::model::NAME, demo::model::WHAT)
        } else {
            self.chosen.name.clone()
        }
    }

    /// In a line: tools, and what is kept.
    pub(crate) fn summary(&self) -> String {
        let names: Vec<&str> = self.assistant.registry().names().collect();
        let summary = match names.len() {
            0 => "no tools".to_owned(),
            1..=8 => format!("tools: {}", names.join(", ")),
            more => format!("{more} tools (/tools)"),
        };
        if let Some(session) = &self.session {
            let messages = look::count(self.assistant.messages().len() as u64, "message");
            return format!("{summary} · session {} ({messages})", session.name);
        }
        summary
    }

    /// Ends what runs beside the chat.
    pub(crate) async fn close(&self) {
        for client in &self.clients {
            client.close().await;
        }
    }
}

/// The model that a session goes on with: the one that its file names, or the usual one.
fn resumed(session: Option<&Session>, log: Option<&Log>) -> Result<Chosen, Box<dyn Error>> {
    let Some((session, model)) = session.and_then(|session| Some((session, session.model.as_ref()?))) else {
        return models::choose(None, log);
    };
    let because = format!("session {} was made with it", session.name);
    match models::choose(Some(model), log) {
        Ok(chosen) => Ok(Chosen { because: Some(because), ..chosen }),
        Err(error) => {
            Err(format!("session {} was made with {model}, which cannot be had: {error}", session.name)
                .into())
        }
    }
}

/// What an assistant is made of.
struct Setup<'a> {
    chosen: &'a Chosen,
    clients: &'a [McpClient],
    desk: &'a Desk,
    system: Option<&'a str>,
    thinking: Option<Thinking>,
    has_tools: bool,
    /// The window that the command line sets.
    window: Option<u64>,
    log: Option<&'a Log>,
}

impl Setup<'_> {
    fn build(&self, conversation: Conversation) -> Result<Assistant, Box<dyn Error>> {
        let (desk, asked) = (self.desk.clone(), self.desk.clone());
        let mut builder = Assistant::builder(self.chosen.model.clone())
            .conversation(conversation)
            .on_approval(move |request| desk.clone().decide(request))
            .on_question(move |question| asked.clone().input(question));
        if self.has_tools {
            builder = builder.tools(demo::tools::tools());
            builder =
                builder.self_as_tool("delegate", "Does a part of the work in a conversation of its own.");
        }
        for client in self.clients {
            // Somebody else's tools may do anything: each asks, until it is always allowed.
            builder = builder.tools(client.tools().require_approval(Approval::ALWAYS));
        }
        if let Some(system) = self.system {
            builder = builder.system(system);
        }
        if let Some(thinking) = self.thinking {
            builder = builder.request(|request| request.with_thinking(thinking));
        }
        if let Some(window) = self.window.or(self.chosen.window) {
            builder = builder.manage_context(ContextRules::new().window(window));
        }
        let assistant = builder.build()?;
        if let Some(log) = self.log {
            log.learn(assistant.registry());
        }
        Ok(assistant)
    }
}

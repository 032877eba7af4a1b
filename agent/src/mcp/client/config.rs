//! The configuration of a connection.

use super::limits::ClientLimits;
use crate::panics::Observer;
use crate::tool::{BoxFuture, definition::ToolDefinition};
use crate::traffic::{OnTraffic, Traffic};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The configuration of a client: how to reach a server, and which tools of the server to use.
///
/// ```
/// use agent::mcp::ClientConfig;
///
/// let docs = ClientConfig::http("https://docs.example/mcp")
///     .name("docs")
///     .bearer_token("s3cret")
///     .allow(["search", "read_page"])
///     .accept_changes(|_before, _now| true);
/// let files = ClientConfig::command("mcp-server-files").arg("/srv/notes").env("LOG", "warn");
/// assert!(!format!("{docs:?} {files:?}").contains("s3cret"));          // shows no tokens, arguments and variables
/// ```
#[derive(Clone)]
#[must_use = "a configuration does nothing until it is given to `McpClient::connect`"]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct ClientConfig {
    pub(super) endpoint: Endpoint,
    pub(super) name: Option<String>,
    pub(super) era: Era,
    pub(super) allowed: Option<BTreeSet<String>>,
    pub(super) renamed: BTreeMap<String, String>,
    pub(super) filter: Option<Arc<ToolFilter>>,
    pub(super) trusts_hints: bool,
    pub(super) untrusted: bool,
    pub(super) neutralizes: bool,
    pub(super) accept_changes: Option<Arc<AcceptChange>>,
    pub(super) asks: bool,
    pub(super) limits: ClientLimits,
    pub(super) on_traffic: Option<OnTraffic>,
    pub(super) trace_context: Option<Arc<TraceSource>>,
    /// The first setting that does not apply to this transport, such as a token for a server over stdio.
    misplaced: Option<&'static str>,
}

type ToolFilter = dyn Fn(&ToolDefinition) -> bool + Send + Sync;
type TraceSource = dyn Fn() -> HashMap<String, String> + Send + Sync;
type AcceptChange = dyn Fn(&ToolDefinition, &ToolDefinition) -> bool + Send + Sync;
pub(super) type TokenSource = dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync;

#[derive(Clone)]
pub(super) enum Endpoint {
    Http(HttpEndpoint),
    Command(CommandEndpoint),
}

#[derive(Clone)]
pub(super) struct HttpEndpoint {
    pub(super) url: String,
    pub(super) token: Option<Arc<TokenSource>>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) public_only: bool,
}

#[derive(Clone)]
pub(super) struct CommandEndpoint {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) inherited: Vec<OsString>,
    pub(super) folder: Option<PathBuf>,
}

/// The environment variables of this program that a child process receives by default: those that programs commonly need, and that are not
/// secrets.
pub(super) const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "SYSTEMROOT", "APPDATA"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Auto,
    /// 2026-07-28, which has no sessions.
    Modern,
    /// 2025-11-25 and older, which begin with `initialize`.
    Legacy,
}

impl ClientConfig {
    /// Creates the configuration of a server with a URL. Connecting fails if the configuration has a setting for a command, such as
    /// [`arg`](Self::arg).
    pub fn http(url: impl Into<String>) -> Self {
        Self::at(Endpoint::Http(HttpEndpoint {
            url: url.into(),
            token: None,
            headers: Vec::new(),
            public_only: false,
        }))
    }

    /// Creates the configuration of a program, which the client starts and uses over its standard input and output. The program
    /// receives few environment variables (`PATH`, `HOME` and the like) besides those of [`env`](Self::env) and
    /// [`inherit_env`](Self::inherit_env). Connecting fails if the configuration has a setting for a URL, such as
    /// [`header`](Self::header).
    pub fn command(program: impl Into<OsString>) -> Self {
        Self::at(Endpoint::Command(CommandEndpoint {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherited: INHERITED.iter().map(OsString::from).collect(),
            folder: None,
        }))
    }

    fn at(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            name: None,
            era: Era::Auto,
            allowed: None,
            renamed: BTreeMap::new(),
            filter: None,
            trusts_hints: false,
            untrusted: false,
            neutralizes: false,
            accept_changes: None,
            asks: false,
            limits: ClientLimits::default(),
            on_traffic: None,
            trace_context: None,
            misplaced: None,
        }
    }

    fn over_http(mut self, setting: &'static str, change: impl FnOnce(&mut HttpEndpoint)) -> Self {
        match &mut self.endpoint {
            Endpoint::Http(endpoint) => change(endpoint),
            Endpoint::Command(_) => _ = self.misplaced.get_or_insert(setting),
        }
        self
    }

    fn over_stdio(mut self, setting: &'static str, change: impl FnOnce(&mut CommandEndpoint)) -> Self {
        match &mut self.endpoint {
            Endpoint::Command(endpoint) => change(endpoint),
            Endpoint::Http(_) => _ = self.misplaced.get_or_insert(setting),
        }
        self
    }

    /// Returns an error text if a setting does not apply to this transport. If the setting were ignored, the client could connect without
    /// its token, for example.
    pub(super) fn misplaced(&self) -> Option<String> {
        let setting = self.misplaced?;
        Some(match self.endpoint {
            Endpoint::Http(_) => format!(
                "`{setting}` is for a server that is started with `ClientConfig::command`, but this server has a URL"
            ),
            Endpoint::Command(_) => {
                format!(
                    "`{setting}` is for a server behind a URL, but this server is a command: pass secrets with `.env(name, value)`"
                )
            }
        })
    }

    /// Sets the first half of the names that models see, `NAME__TOOL`. By default, the name is derived from the name that the server
    /// reports: in lower case, without the scope of the package, and with at most 24 characters. The words `mcp`, `server` and `servers`
    /// are left out, unless there are no other words. For example, `example-servers/sequential-thinking-server` becomes
    /// `sequential_thinking`. If the server reports no name, its URL or program is the name. If two servers receive the same name, set the
    /// name of one of them.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Speaks only the version 2026-07-28, which has no sessions. By default, the client detects the form of the protocol; see
    /// [`legacy`](Self::legacy).
    pub fn modern(mut self) -> Self {
        self.era = Era::Modern;
        self
    }

    /// Speaks only the versions up to 2025-11-25, in which a connection begins with `initialize`.
    ///
    /// By default, the client detects the form of the protocol: it first sends a request in the newer form. Older programs may ignore
    /// unknown requests. If a program does not answer within ten seconds, or half of the [time to connect](Self::connect_timeout) if that
    /// is less, the client also sends a request in the older form. An older server that answers every request with success is mistaken for
    /// a newer one, so it needs this setting.
    ///
    /// ```
    /// # #[cfg(feature = "mcp-server")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::mcp::{McpClient, McpServer, ClientConfig};
    /// use agent::tools;
    /// use std::time::Duration;
    ///
    /// let (url, serving) = McpServer::new(tools![]).bind(([127, 0, 0, 1], 0)).await?;
    /// tokio::spawn(serving);
    /// let config = ClientConfig::http(&url).connect_timeout(Duration::from_secs(5));
    /// let old = McpClient::connect(config.clone().legacy()).await?;
    /// assert_eq!(old.report().await.protocol_version.as_deref(), Some("2025-11-25"));
    /// for new in [config.clone(), config.modern()] {
    ///     let new = McpClient::connect(new).await?;
    ///     assert_eq!(new.report().await.protocol_version.as_deref(), Some("2026-07-28"));
    /// }
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mcp-server"))] fn main() {}
    /// ```
    pub fn legacy(mut self) -> Self {
        self.era = Era::Legacy;
        self
    }

    /// Allows these tools. `tools` contains the names by which the server lists the tools. Models then see only the allowed tools of the
    /// server.
    ///
    /// ```
    /// use agent::mcp::ClientConfig;
    ///
    /// // Two tools of the server, one of them under another name.
    /// let config = ClientConfig::http("https://docs.example/mcp")
    ///     .allow(["search", "read_page"])
    ///     .rename("read_page", "read")
    ///     .public_addresses_only();
    /// ```
    pub fn allow<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.allowed.get_or_insert_default().extend(tools.into_iter().map(Into::into));
        self
    }

    /// Allows all tools, which is the default. Prefer [`allow`](Self::allow) for servers from a configuration file.
    pub fn allow_all(mut self) -> Self {
        self.allowed = None;
        self
    }

    /// Shows a tool of the server under another name. The [name](Self::name) of the server still precedes the new name.
    pub fn rename(mut self, tool: impl Into<String>, shown_as: impl Into<String>) -> Self {
        self.renamed.insert(tool.into(), shown_as.into());
        self
    }

    /// Uses only those allowed tools for which the function returns `true`.
    ///
    /// ```
    /// # #[cfg(feature = "mcp-server")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::mcp::{McpClient, McpServer, ClientConfig};
    /// use agent::{Registry, tool, tools};
    ///
    /// /// Searches the documents.
    /// #[tool(read_only)]
    /// fn search(query: String) -> String {
    ///     query
    /// }
    ///
    /// /// Deletes a document.
    /// #[tool]
    /// fn delete(name: String) -> String {
    ///     name
    /// }
    ///
    /// let (url, serving) = McpServer::new(tools![search, delete]).bind(([127, 0, 0, 1], 0)).await?;
    /// tokio::spawn(serving);
    /// let names = async |config: ClientConfig| -> Result<Vec<String>, Box<dyn std::error::Error>> {
    ///     let registry = Registry::new(McpClient::connect(config.name("docs")).await?)?;
    ///     Ok(registry.names().map(str::to_owned).collect())
    /// };
    /// let all = ClientConfig::http(&url).allow(["search"]).allow_all();
    /// assert_eq!(names(all).await?, ["docs__delete", "docs__search"]);
    /// let renamed = ClientConfig::http(&url).allow(["search"]).rename("search", "find");
    /// assert_eq!(names(renamed).await?, ["docs__find"]);
    /// let by_name = ClientConfig::http(&url).filter(|tool| tool.name() != "delete");
    /// assert_eq!(names(by_name).await?, ["docs__search"]);
    /// // By the server's hints, which are ignored without `trust_hints`.
    /// let reading = ClientConfig::http(&url).trust_hints().filter(|tool| tool.read_only() == Some(true));
    /// assert_eq!(names(reading).await?, ["docs__search"]);
    /// let untrusted = ClientConfig::http(&url).filter(|tool| tool.read_only() == Some(true));
    /// assert!(names(untrusted).await?.is_empty());
    /// // This server is on this machine.
    /// assert!(names(ClientConfig::http(&url).public_addresses_only()).await.is_err());
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mcp-server"))] fn main() {}
    /// ```
    pub fn filter(mut self, keep: impl Fn(&ToolDefinition) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(keep));
        self
    }

    /// Trusts the server's hints about its tools, for example that a tool only reads, or that its calls may be repeated. By default hints
    /// are ignored, because a server can claim anything.
    pub fn trust_hints(mut self) -> Self {
        self.trusts_hints = true;
        self
    }

    /// Marks every result of the server as data from outside, which the model should not take for instructions; see
    /// [`ToolOptions::untrusted`](crate::tool::ToolOptions::untrusted).
    ///
    /// ```
    /// use agent::mcp::ClientConfig;
    ///
    /// let web = ClientConfig::command("mcp-server-fetch").allow_all().untrusted().neutralize();
    /// # let _ = web;
    /// ```
    pub fn untrusted(mut self) -> Self {
        self.untrusted = true;
        self
    }

    /// Changes control characters and delimiters of chat templates, such as `<|im_start|>`, in every result of the server, so that they
    /// have no effect; see [`ToolOptions::neutralize`](crate::tool::ToolOptions::neutralize).
    pub fn neutralize(mut self) -> Self {
        self.neutralizes = true;
        self
    }

    /// Sets a function that decides about calls of a tool whose definition has changed since the model saw it. `accept` receives the
    /// definition that the model saw and the current definition. The call is made if `accept` returns `true` and the arguments fit the
    /// current definition. By default, such calls are refused. [`McpClient::tools`](super::McpClient::tools) returns the current
    /// definitions.
    ///
    /// ```
    /// use agent::mcp::ClientConfig;
    ///
    /// // Another description is accepted; other parameters are not.
    /// let config = ClientConfig::http("https://docs.example/mcp")
    ///     .accept_changes(|before, now| now.parameters() == before.parameters());
    /// # let _ = config;
    /// ```
    pub fn accept_changes(
        mut self,
        accept: impl Fn(&ToolDefinition, &ToolDefinition) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.accept_changes = Some(Arc::new(accept));
        self
    }

    /// Lets the tools of the server ask a person (elicitation, by forms). The assistant's function
    /// ([`on_question`](crate::AssistantBuilder::on_question)) answers the questions. Without that function, the run is suspended; see the
    /// [guide](crate::guide::questions). In place of a suspension, the questions are declined if the run cannot be suspended, or if the
    /// server speaks a version of MCP before 2026-07-28. Questions without a form, and questions outside of a run, are always declined. In
    /// the versions before 2026-07-28, a question does not say which call it belongs to, so it is also declined while calls of several
    /// runs are open.
    ///
    /// Each input is checked before it is sent. If this method is not called, the client declares that it cannot ask a person.
    ///
    /// ```
    /// use agent::mcp::ClientConfig;
    ///
    /// let config = ClientConfig::command("mcp-server-travel").answer_questions();
    /// # let _ = config;
    /// ```
    pub fn answer_questions(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Sends a trace context with each call, in `_meta`. The function runs in the span of the call, and returns the values of W3C Trace
    /// Context and Baggage: `traceparent`, `tracestate` and `baggage`. With `opentelemetry`, a propagator injects the context of the
    /// current span into the map. Without a valid `traceparent`, nothing is sent. Other keys and malformed values are left out, and so are
    /// a `tracestate` of more than 512 bytes and a `baggage` of more than 8,192 bytes.
    ///
    /// Source: <https://www.w3.org/TR/trace-context/>, SEP-414 of MCP.
    ///
    /// ```
    /// use agent::mcp::ClientConfig;
    /// use std::collections::HashMap;
    ///
    /// let docs = ClientConfig::http("https://docs.example/mcp").trace_context(|| {
    ///     let current = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    ///     HashMap::from([("traceparent".to_owned(), current.to_owned())])
    /// });
    /// # let _ = docs;
    /// ```
    pub fn trace_context(
        mut self,
        current: impl Fn() -> HashMap<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.trace_context = Some(Arc::new(current));
        self
    }

    /// Calls `listener` with every message to and from the server, every message that could not be sent, the end of the connection, and
    /// every line that a program writes to its error output. Secrets of this configuration are masked. The arguments and results of tools
    /// are not masked, so a log of them is as private as the conversation. The listener must not block. If the listener panics, it is not
    /// called again.
    ///
    /// ```
    /// use agent::mcp::ClientConfig;
    /// use agent::traffic::TrafficKind;
    ///
    /// let docs = ClientConfig::http("https://docs.example/mcp").on_traffic(|traffic| match traffic.kind {
    ///     TrafficKind::Sent { message, .. } => eprintln!("{} > {message}", traffic.server),
    ///     TrafficKind::Received { message, .. } => eprintln!("{} < {message}", traffic.server),
    ///     other => eprintln!("{} {other:?}", traffic.server),
    /// });
    /// # let _ = docs;
    /// ```
    pub fn on_traffic(mut self, listener: impl Fn(&Traffic<'_>) + Send + Sync + 'static) -> Self {
        self.on_traffic = Some(Observer::new("on_traffic", Arc::new(listener)));
        self
    }

    /// Sends a bearer token with each HTTP request.
    pub fn bearer_token(self, token: impl Into<String>) -> Self {
        let token = token.into();
        let token = move || -> BoxFuture<'static, _> { Box::pin(std::future::ready(Ok(token.clone()))) };
        self.over_http("bearer_token", |endpoint| endpoint.token = Some(Arc::new(token)))
    }

    /// Sets a function that returns the bearer token of a new connection. If the server refuses the token during a call, the client
    /// connects again with a new token, once for each call. If the function fails, connecting fails with the text of its error.
    ///
    /// ```
    /// # #[cfg(feature = "mcp-server")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::mcp::{McpClient, McpServer, ClientConfig, Bearer, Caller};
    /// use agent::tools;
    ///
    /// let tokens = Bearer::new([("token of this hour", Caller::new("ann"))]);
    /// let (url, serving) = McpServer::new(tools![]).authenticator(tokens).bind(([127, 0, 0, 1], 0)).await?;
    /// tokio::spawn(serving);
    /// let config = ClientConfig::http(&url).token(|| async { Ok("token of this hour".to_owned()) });
    /// assert!(McpClient::connect(config).await.is_ok());
    /// // As a header:
    /// let config = ClientConfig::http(&url).header("authorization", "Bearer token of this hour");
    /// assert!(McpClient::connect(config).await.is_ok());
    /// assert!(McpClient::connect(ClientConfig::http(&url)).await.is_err());
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mcp-server"))] fn main() {}
    /// ```
    pub fn token<F, Fut>(self, token: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.over_http("token", |endpoint| endpoint.token = Some(Arc::new(move || Box::pin(token()))))
    }

    /// Sends a header with each HTTP request. Connecting fails if a header is set twice.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.over_http("header", |endpoint| endpoint.headers.push((name.into(), value.into())))
    }

    /// Connects only to addresses on the public internet, and without a proxy. Connecting fails if one of the host's addresses is not
    /// public. Call this method for URLs from untrusted sources.
    pub fn public_addresses_only(self) -> Self {
        self.over_http("public_addresses_only", |endpoint| endpoint.public_only = true)
    }

    /// Adds an argument to the command.
    pub fn arg(self, arg: impl Into<OsString>) -> Self {
        self.over_stdio("arg", |endpoint| endpoint.args.push(arg.into()))
    }

    /// Adds arguments to the command.
    ///
    /// ```
    /// # #[cfg(unix)]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use agent::mcp::{McpClient, ClientConfig};
    ///
    /// // A program that prints how it was started, and ends. The error contains its last lines.
    /// let config = ClientConfig::command("sh")
    ///     .args(["-c", "echo $0 has $NOTES and $CARGO_PKG_NAME in $(pwd) >&2"])
    ///     .arg("notes-server")
    ///     .env("NOTES", "12 notes")
    ///     .inherit_env("CARGO_PKG_NAME")
    ///     .folder("/");
    /// let error = McpClient::connect(config).await.unwrap_err().to_string();
    /// // Values that the application sets are masked, because they may be secrets.
    /// assert!(error.contains("notes-server has [redacted] and agent in /"), "{error}");
    /// # }
    /// # #[cfg(not(unix))] fn main() {}
    /// ```
    pub fn args<A: Into<OsString>>(self, args: impl IntoIterator<Item = A>) -> Self {
        self.over_stdio("args", |endpoint| endpoint.args.extend(args.into_iter().map(Into::into)))
    }

    /// Sets an environment variable of the command.
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.over_stdio("env", |endpoint| endpoint.env.push((name.into(), value.into())))
    }

    /// Passes an environment variable of this program to the command.
    pub fn inherit_env(self, name: impl Into<OsString>) -> Self {
        self.over_stdio("inherit_env", |endpoint| endpoint.inherited.push(name.into()))
    }

    /// Sets the working directory of the command. Default: the working directory of this program.
    pub fn folder(self, folder: impl Into<PathBuf>) -> Self {
        self.over_stdio("folder", |endpoint| endpoint.folder = Some(folder.into()))
    }

    pub(super) fn connect_limit(&self) -> Duration {
        self.limits.connect.unwrap_or(match self.endpoint {
            Endpoint::Http(_) => Duration::from_secs(30),
            Endpoint::Command(_) => Duration::from_secs(60),
        })
    }
}

impl fmt::Debug for ClientConfig {
    /// Omits tokens, headers, arguments and variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = match &self.endpoint {
            Endpoint::Http(endpoint) => crate::address::shown_address(&endpoint.url).into(),
            Endpoint::Command(endpoint) => endpoint.program.to_string_lossy(),
        };
        f.debug_struct("ClientConfig")
            .field("endpoint", &endpoint)
            .field("era", &self.era)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

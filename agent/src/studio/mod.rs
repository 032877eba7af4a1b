//! A web page for the author of tools. It shows schemas, checks arguments, and follows runs.
//!
//! The page lists the tools of an [`Assistant`] with their lint findings and token counts, and shows their schemas in each dialect. It
//! checks arguments as a run does, and shows each coercion, or each issue beside its value. It also runs prompts, shows the arguments of
//! calls as they arrive, and lets a person decide on calls and answer the questions of tools.
//!
//! ```no_run
//! use agent::studio::Studio;
//! use agent::{Assistant, ScriptedModel, tool, tools};
//!
//! /// Adds two numbers.
//! #[tool(read_only)]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).tools(tools![add]).build()?;
//! Studio::new(assistant).serve(([127, 0, 0, 1], 4000)).await?;
//! # Ok(()) }
//! ```

mod assets;
mod conversations;
mod cut;
#[cfg(feature = "http")]
mod exchanges;
mod listen;
mod observed;
mod response;
mod route;
mod run;
mod run_log;
mod shared;
mod stored;
mod tools;
mod waiting;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use crate::runtime::Assistant;
use crate::serve::HostPolicy;
use crate::tool::cancel::CancelToken;
use shared::StudioShared;

/// Minimum length of a token that the application chooses, in characters.
const MIN_TOKEN: usize = 16;

/// A web page to try the tools of an assistant and to follow its runs.
///
/// The studio listens on this machine only, unless [`allow_remote`](Self::allow_remote) names other hosts. The page's requests carry a
/// token, which is part of the [URL](Self::bind) and random by default. The studio writes only to the assistant's own store: the sessions
/// of its conversations, and the records of their calls.
///
/// ```
/// use agent::studio::Studio;
/// use agent::{Assistant, CancelToken, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
/// let stop = CancelToken::new();
/// let (url, serving) = Studio::new(assistant).until(stop.clone()).bind(([127, 0, 0, 1], 0)).await?;     // any free port
/// assert!(url.contains("/#token="));
/// let serving = tokio::spawn(serving);
/// stop.cancel("it is late");
/// serving.await?;
/// # Ok(()) }
/// ```
#[must_use = "a studio serves nothing until `serve` or `bind` is called"]
pub struct Studio {
    assistant: Assistant,
    remote: Option<RemoteAccess>,
    stop: CancelToken,
}

struct RemoteAccess {
    hosts: Vec<String>,
    token: String,
}

impl Studio {
    /// Creates a studio for an assistant. Conversations in the studio are forks of the assistant, which is itself not changed.
    pub fn new(assistant: Assistant) -> Self {
        Self { assistant, remote: None, stop: CancelToken::new() }
    }

    /// Allows access from other machines, under these hosts only, such as `studio.example:4000`. Requests need this token, which has at
    /// least 16 letters, digits, `-` or `_`. Every client with the token can run the tools, so serve the studio only behind TLS.
    ///
    /// ```
    /// use agent::studio::Studio;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let remote = Studio::new(assistant.clone()).allow_remote(["studio.example"], "0123456789abcdef");
    /// assert!(remote.bind(([0, 0, 0, 0], 0)).await.is_ok());
    /// let weak = Studio::new(assistant).allow_remote(["studio.example"], "1234");
    /// assert!(weak.bind(([0, 0, 0, 0], 0)).await.err().unwrap().to_string().contains("too weak"));
    /// # Ok(()) }
    /// ```
    pub fn allow_remote<H: Into<String>>(
        mut self,
        hosts: impl IntoIterator<Item = H>,
        token: impl Into<String>,
    ) -> Self {
        let hosts = hosts.into_iter().map(Into::into).collect();
        self.remote = Some(RemoteAccess { hosts, token: token.into() });
        self
    }

    /// Ends the studio when the token is cancelled. Tools that a user called directly, with the form of the web page, then have one second
    /// to finish. Afterwards, all runs are cancelled. By default, the studio serves until the process ends.
    pub fn until(mut self, stop: CancelToken) -> Self {
        self.stop = stop;
        self
    }

    /// Binds to an address. Returns the URL to open in a browser, and the future that serves the web page. Connections wait until the
    /// future runs. The URL contains the token in its fragment, which browsers do not send to servers. With
    /// [`allow_remote`](Self::allow_remote), the URL has the scheme `https` and the first allowed host, as in
    /// `https://studio.example/#token=…`.
    ///
    /// ```
    /// use agent::studio::Studio;
    /// use agent::{Assistant, ScriptedModel};
    /// use std::io::ErrorKind;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// let refused = Studio::new(assistant).bind(([0, 0, 0, 0], 0)).await.err().unwrap();
    /// assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    /// assert!(refused.to_string().contains("call `allow_remote`"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails with the kind of the system's error if the address cannot be used. Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) if
    /// the address can be reached from other machines without [`allow_remote`](Self::allow_remote), or if a host or the token of
    /// `allow_remote` is invalid.
    pub async fn bind(
        self,
        address: impl Into<SocketAddr>,
    ) -> io::Result<(String, impl Future<Output = ()> + Send + 'static)> {
        let address = address.into();
        // A loopback address need not be 127.0.0.1.
        let own = ["localhost", "127.0.0.1", "::1", &address.ip().to_string()].map(str::to_owned);
        let (hosts, token) = match &self.remote {
            None if !address.ip().is_loopback() => {
                return Err(invalid(format!(
                    "`{address}` can be reached from other machines: bind to 127.0.0.1, or call `allow_remote`"
                )));
            }
            None => (HostPolicy::new(Some(&own), &[]), random_token()?),
            Some(remote) => (HostPolicy::new(Some(&remote.hosts), &[]), checked_token(&remote.token)?),
        };
        let hosts = hosts
            .map_err(|entry| invalid(format!("`{}` is not a host: write {}", entry.entry, entry.expected)))?;
        // Requests to other hosts than the allowed ones are rejected, so the URL has the first allowed host instead of the listener's
        // address.
        let first = self.remote.and_then(|remote| remote.hosts.into_iter().next());
        let origin = first.map(|host| match host.parse::<Ipv6Addr>() {
            Ok(address) => format!("https://[{address}]"),
            Err(_) => format!("https://{host}"),
        });
        let shared = StudioShared::new(&self.assistant, hosts, token);
        listen::bind(shared, address, origin, self.stop).await.map_err(|error| {
            io::Error::new(error.kind(), format!("the studio cannot listen on `{address}`: {error}"))
        })
    }

    /// Serves the web page until the process or the [studio](Self::until) ends, and writes the URL of the page to standard error.
    ///
    /// ```no_run
    /// use agent::studio::Studio;
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?;
    /// Studio::new(assistant).serve(([127, 0, 0, 1], 4000)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Fails for the same reasons as [`bind`](Self::bind).
    pub async fn serve(self, address: impl Into<SocketAddr>) -> io::Result<()> {
        use io::Write as _;
        let (url, serving) = self.bind(address).await?;
        // A failed write is ignored, because the studio also works if standard error is closed.
        let _ = writeln!(io::stderr(), "studio: {url}");
        serving.await;
        Ok(())
    }
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        io::Error::other(format!("the system gives no random numbers for the token: {error}"))
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn checked_token(token: &str) -> io::Result<String> {
    let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_plain && token.len() >= MIN_TOKEN {
        Ok(token.to_owned())
    } else {
        Err(invalid(format!("the token is too weak: use at least {MIN_TOKEN} letters, digits, `-` or `_`")))
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl fmt::Debug for Studio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Studio")
            .field("assistant", &self.assistant)
            .field("is_remote", &self.remote.is_some())
            .finish_non_exhaustive()
    }
}

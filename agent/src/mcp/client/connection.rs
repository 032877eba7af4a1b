//! One connection to a server: a request's way there, or a child process.

use super::ClientError;
use super::config::{ClientConfig, CommandPlace, Era, HttpPlace, Place, without_query};
use super::error::Challenge;
use super::news::{Listener, News};
use super::traffic::{Tap, Tapped};
use http::{HeaderName, HeaderValue};
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService,
    ServiceError,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig,
};
use rmcp::transport::{IntoTransport, TokioChildProcess};
use rmcp::{Peer, RoleClient};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A line of a child's errors in the log; the rest is left out.
const LOG_LINE: usize = 4 << 10;
/// How long a child may take to end: its input is closed, then it is asked, then it is killed.
const END: Duration = Duration::from_secs(10);
/// Redirects within the server's own origin.
const REDIRECTS: usize = 5;

/// A connection that was made.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) since: Instant,
    running: tokio::sync::Mutex<RunningService<RoleClient, Listener>>,
    helpers: Vec<AbortHandle>,
}

impl Connection {
    pub(super) async fn open(
        config: &ClientConfig,
        server: &str,
        news: &Arc<News>,
    ) -> Result<Self, ClientError> {
        let limit = config.connect_limit();
        let opening = async {
            match &config.place {
                Place::Http(place) => {
                    let refused = |reason| ClientError::Connect { server: server.to_owned(), reason };
                    let token = token(place).await.map_err(refused)?;
                    let tap = Tap::new(config, server, token.as_deref());
                    let transport = over_http(place, config, limit, token).await.map_err(refused)?;
                    Self::start(config, server, news, (transport, tap), Vec::new()).await
                }
                Place::Command(place) => {
                    let tap = Tap::new(config, server, None);
                    let (transport, log) =
                        command(place, server, &tap).map_err(|error| ClientError::Connect {
                            server: server.to_owned(),
                            reason: format!("the command cannot be started: {error}"),
                        })?;
                    Self::start(config, server, news, (transport, tap), vec![log]).await
                }
            }
        };
        tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
            let reason = format!("it did not answer within {} s{}", limit.as_secs(), advice(config));
            Err(ClientError::Connect { server: server.to_owned(), reason })
        })
    }

    async fn start<T, E, A>(
        config: &ClientConfig,
        server: &str,
        news: &Arc<News>,
        (transport, tap): (T, Tap),
        mut helpers: Vec<AbortHandle>,
    ) -> Result<Self, ClientError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match config.era {
            Era::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions },
            Era::Legacy => ClientLifecycleMode::Initialize,
        };
        let running = Listener(news.clone())
            .serve_with_lifecycle(Tapped::new(transport.into_transport(), tap), lifecycle)
            .await
            .map_err(|error| refused(config, server, &error))?;
        let peer = running.peer().clone();
        // Lists are kept here, and asked for when they are needed.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        helpers.extend(listen(&peer, news));
        Ok(Self { peer, since: Instant::now(), running: tokio::sync::Mutex::new(running), helpers })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// What the server calls itself.
    pub(super) fn server(&self) -> Option<(String, String)> {
        let info = self.peer.peer_info()?;
        let server = info.server_info.as_ref()?;
        Some((server.name.clone(), server.version.clone()))
    }

    /// The version of the protocol that is spoken.
    pub(super) fn protocol_version(&self) -> Option<String> {
        Some(self.peer.peer_info()?.protocol_version.to_string())
    }

    /// Ends it, and a child with it.
    pub(super) async fn close(&self) {
        let _ = self.running.lock().await.close_with_timeout(END).await;
    }
}

impl Drop for Connection {
    /// What runs it ends by itself when it is dropped, and kills a child that does not.
    fn drop(&mut self) {
        for helper in &self.helpers {
            helper.abort();
        }
    }
}

/// Hears of changes, where the protocol wants to be asked for them.
fn listen(peer: &Peer<RoleClient>, news: &Arc<News>) -> Option<AbortHandle> {
    let info = peer.peer_info()?;
    let tells = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if !tells || info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return None;
    }
    let (peer, news) = (peer.clone(), news.clone());
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let task = tokio::spawn(async move {
        let Ok(mut stream) = peer.listen(filter).await else { return };
        while let Ok(Some(_)) = stream.next().await {
            news.list_changed();
        }
        // Nothing is heard from here on; the next use asks.
        news.list_changed();
    });
    Some(task.abort_handle())
}

fn refused(config: &ClientConfig, server: &str, error: &ClientInitializeError) -> ClientError {
    let server = server.to_owned();
    if let Some(challenge) = error.auth_challenge() {
        return ClientError::Unauthorized { server, challenge: Challenge::parse(challenge) };
    }
    let reason = format!("{}{}", told(config, error), advice(config));
    ClientError::Connect { server, reason }
}

/// A server of the older form can be taken for a new one.
fn advice(config: &ClientConfig) -> &'static str {
    match config.era {
        Era::Auto => "; if it speaks 2025-11-25 or older, say so with `.era(Era::Legacy)`",
        Era::Modern | Era::Legacy => "",
    }
}

/// An error with its sources, without the secrets of a URL, and of bounded length.
pub(super) fn told(config: &ClientConfig, error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    if let Place::Http(place) = &config.place {
        text = text.replace(&place.url, without_query(&place.url));
    }
    text.chars().take(600).collect()
}

/// What a server wants before it does anything, if that is why a request failed.
pub(super) fn challenge(error: &ServiceError) -> Option<Challenge> {
    let ServiceError::TransportSend(error) = error else { return None };
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&*error.error);
    while let Some(cause) = source {
        if let Some(required) = cause.downcast_ref::<AuthRequiredError>() {
            return Some(Challenge::parse(&required.www_authenticate_header));
        }
        if let Some(scope) = cause.downcast_ref::<InsufficientScopeError>() {
            return Some(Challenge::parse(&scope.www_authenticate_header));
        }
        source = cause.source();
    }
    None
}

/// The token for a new connection, where one is to be sent.
async fn token(place: &HttpPlace) -> Result<Option<String>, String> {
    match &place.token {
        None => Ok(None),
        Some(token) => token().await.map(Some).map_err(|reason| format!("there is no token: {reason}")),
    }
}

async fn over_http(
    place: &HttpPlace,
    config: &ClientConfig,
    limit: Duration,
    token: Option<String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let url = reqwest::Url::parse(&place.url).map_err(|error| format!("the URL cannot be read: {error}"))?;
    let mut client = reqwest::Client::builder()
        .connect_timeout(limit)
        .read_timeout(config.limits.longest_call)
        .redirect(same_origin(&url))
        // A connection that is taken up again waits for acknowledgements when a body was not read to its end.
        .pool_max_idle_per_host(0);
    if place.public_only {
        let host = url.host_str().ok_or("the URL has no host")?;
        let addresses = public_addresses(&url).await?;
        client = client.no_proxy().resolve_to_addrs(host, &addresses);
    }
    let client = client.build().map_err(|error| error.without_url().to_string())?;
    let mut headers = HashMap::new();
    for (name, value) in &place.headers {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let mut transport = StreamableHttpClientTransportConfig::with_uri(&*place.url).custom_headers(headers);
    if let Some(token) = token {
        transport = transport.auth_header(token);
    }
    Ok(StreamableHttpClientTransport::with_client(client, transport))
}

/// Follows redirects only to where the first request went: a token is for nobody else.
fn same_origin(url: &reqwest::Url) -> reqwest::redirect::Policy {
    let origin = url.origin();
    reqwest::redirect::Policy::custom(move |attempt| {
        if attempt.url().origin() != origin {
            attempt.error("a redirect to another origin")
        } else if attempt.previous().len() > REDIRECTS {
            attempt.error("too many redirects")
        } else {
            attempt.follow()
        }
    })
}

/// The addresses of a host, if all are public. The connection is made to these and asks nobody again.
async fn public_addresses(url: &reqwest::Url) -> Result<Vec<SocketAddr>, String> {
    let port = url.port_or_known_default().ok_or("the URL has no port")?;
    let host = url.host_str().ok_or("the URL has no host")?.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| error.to_string())?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() || addresses.iter().any(|address| !is_public(address.ip())) {
        return Err("its address is not one of the public internet".to_owned());
    }
    Ok(addresses)
}

fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_benchmark = a == 198 && (18..20).contains(&b);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast()
                || a == 0
                || a >= 240
                || is_shared
                || is_benchmark)
        }
        IpAddr::V6(v6) => {
            let is_documentation = v6.segments()[..2] == [0x2001, 0xdb8];
            // 64:ff9b::/96 leads to addresses of version 4.
            let is_translated = v6.segments()[..2] == [0x64, 0xff9b];
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || is_documentation
                || is_translated)
        }
    }
}

fn command(
    place: &CommandPlace,
    server: &str,
    tap: &Tap,
) -> std::io::Result<(TokioChildProcess, AbortHandle)> {
    let mut command = tokio::process::Command::new(&place.program);
    command.args(&place.args).env_clear().kill_on_drop(true);
    for name in &place.inherited {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(place.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &place.folder {
        command.current_dir(folder);
    }
    let (transport, errors) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
    let (server, tap) = (server.to_owned(), tap.clone());
    let log = tokio::spawn(async move {
        if let Some(errors) = errors {
            log_lines(errors, &server, &tap).await;
        }
    });
    Ok((transport, log.abort_handle()))
}

/// Each line of a child's errors into the log, as far as it is not too long.
async fn log_lines(errors: impl AsyncRead + Unpin, server: &str, tap: &Tap) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        let Ok(read) = errors.fill_buf().await else { return };
        if read.is_empty() {
            return;
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        line.extend_from_slice(&part[..part.len().min(LOG_LINE.saturating_sub(line.len()))]);
        let length = part.len() + usize::from(end.is_some());
        errors.consume(length);
        if end.is_some() {
            let text = String::from_utf8_lossy(&line);
            tracing::debug!(%server, line = %text, "a server says on its error output");
            tap.error_output(&text);
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_everybody_reaches_are_public() {
        for address in ["1.1.1.1", "93.184.216.34", "2606:4700::1111"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::a00:1",
            "2001:db8::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn errors_keep_the_secrets_of_a_url() {
        let config = ClientConfig::http("https://x.example/mcp?key=s3cret");
        let error = std::io::Error::other("cannot reach https://x.example/mcp?key=s3cret");
        assert_eq!(told(&config, &error), "cannot reach https://x.example/mcp");
    }
}

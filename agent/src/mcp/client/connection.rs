//! One connection to a server, over HTTP or to a child process.

use super::McpClientError;
use super::config::{ClientConfig, CommandEndpoint, Endpoint, Era, HttpEndpoint};
use super::era::{self, ProbedTransport};
use super::error::ConnectErrorKind as Kind;
use super::failure::{ConnectFailure, handshake_error, is_end};
use super::limits::ClientLimits;
use super::notifications::{NotificationHandler, Notifications};
use super::traffic::{TappedTransport, TrafficTap};
use crate::panics::catch_future;
use http::{HeaderName, HeaderValue};
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::transport::{IntoTransport, TokioChildProcess};
use rmcp::{ClientHandler as _, Peer, RoleClient};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

/// Maximum length of a logged line of a child process's error output, in bytes. Longer lines are cut.
const LOG_LINE: usize = 4 << 10;
/// Maximum length of a line before its secrets are masked, in bytes.
const READ_LINE: usize = 2 * LOG_LINE;
/// Maximum wait for the end of a connection. `rmcp` closes the input of a child process, terminates the process after 3 s, and kills it 3 s
/// later, so this time is long enough for all three.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum wait for the last output of a child process that ended. The wait is limited, because another process may keep the output open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Maximum length of a message over HTTP, in bytes, even if the limits for results and definitions are larger. `rmcp` has the same limit
/// for messages of a child process.
const MAX_MESSAGE: usize = 16 << 20;
const REDIRECTS: usize = 5;

pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) opened_at: Instant,
    pub(super) tap: TrafficTap,
    running: tokio::sync::Mutex<RunningService<RoleClient, NotificationHandler>>,
    _helpers: Helpers,
}

impl Connection {
    pub(super) async fn open(
        config: &ClientConfig,
        server: &str,
        notifications: &Arc<Notifications>,
    ) -> Result<Self, McpClientError> {
        let limit = config.connect_limit();
        let tap = TrafficTap::new(config, server);
        if let Some(what) = config.misplaced() {
            return Err(unusable(what).error(config, server, &tap));
        }
        let opening = async {
            match &config.endpoint {
                Endpoint::Http(endpoint) => {
                    let failed = |failure: ConnectFailure| failure.error(config, server, &tap);
                    let token = token(endpoint).await.map_err(|what| failed(unusable(what)))?;
                    if let Some(token) = &token {
                        tap.hide(token);
                    }
                    let transport = over_http(endpoint, config, limit, token).await.map_err(failed)?;
                    Self::start(config, server, notifications, (transport, &tap), None).await
                }
                Endpoint::Command(endpoint) => {
                    let (transport, log) = command(endpoint, &tap)
                        .map_err(|error| not_started(endpoint, &error).error(config, server, &tap))?;
                    Self::start(config, server, notifications, (transport, &tap), Some(log)).await
                }
            }
        };
        tokio::time::timeout(limit, opening)
            .await
            .unwrap_or_else(|_| Err(ConnectFailure::timeout(limit).error(config, server, &tap)))
    }

    async fn start<T, E, A>(
        config: &ClientConfig,
        server: &str,
        notifications: &Arc<Notifications>,
        (transport, tap): (T, &TrafficTap),
        log: Option<JoinHandle<()>>,
    ) -> Result<Self, McpClientError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut helpers = Helpers(log.iter().map(JoinHandle::abort_handle).collect());
        let (listener, transport) = (
            NotificationHandler { notifications: notifications.clone(), asks: config.asks },
            TappedTransport::new(transport.into_transport(), tap.clone()),
        );
        let (transport, lifecycle) = match config.era {
            Era::Auto => {
                // Over HTTP, no other request is sent before the first is answered, so the first answer has no time limit of its own.
                let patience = match config.endpoint {
                    Endpoint::Http(_) => None,
                    Endpoint::Command(_) => Some(era::patience(config.connect_limit())),
                };
                ProbedTransport::determine(transport, &listener.get_info(), patience).await
            }
            Era::Modern => (ProbedTransport::unused(transport), era::modern()),
            Era::Legacy => (ProbedTransport::unused(transport), ClientLifecycleMode::Initialize),
        };
        let outcome = listener.serve_with_lifecycle(transport, lifecycle).await;
        let running = match outcome {
            Ok(running) => running,
            Err(error) => {
                if let Some(log) = log.filter(|_| is_end(config, tap, &error)) {
                    let _ = tokio::time::timeout(LAST_WORDS, log).await;
                }
                return Err(handshake_error(config, server, tap, &error));
            }
        };
        let peer = running.peer().clone();
        // The cache of `rmcp` is disabled, because the client itself caches the list of tools.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        helpers.0.extend(listen(&peer, notifications));
        let running = tokio::sync::Mutex::new(running);
        Ok(Self { peer, opened_at: Instant::now(), tap: tap.clone(), running, _helpers: helpers })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    pub(super) fn server(&self) -> Option<(String, String)> {
        let info = self.peer.peer_info()?;
        let server = info.server_info.as_ref()?;
        Some((server.name.clone(), server.version.clone()))
    }

    pub(super) fn protocol_version(&self) -> Option<String> {
        Some(self.peer.peer_info()?.protocol_version.to_string())
    }

    pub(super) async fn close(&self) {
        let _ = self.running.lock().await.close_with_timeout(CLOSE_TIMEOUT).await;
    }
}

/// The tasks that log the error output of a child process and listen for changes. The tasks are aborted when the connection is dropped, or
/// when the attempt to connect fails. The logging may not end by itself, because another process may keep the error output open. The task
/// of `rmcp` ends by itself when the connection is dropped, and kills a child process that does not end.
struct Helpers(Vec<AbortHandle>);

impl Drop for Helpers {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

/// Subscribes to changes of the list of tools, if the server reports changes. Versions before 2026-07-28 need no subscription.
fn listen(peer: &Peer<RoleClient>, notifications: &Arc<Notifications>) -> Option<AbortHandle> {
    let info = peer.peer_info()?;
    let reports_changes = info.capabilities.tools.as_ref()?.list_changed == Some(true);
    if !reports_changes || info.protocol_version < ProtocolVersion::V_2026_07_28 {
        return None;
    }
    let (peer, notifications) = (peer.clone(), notifications.clone());
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let task = tokio::spawn(async move {
        let Ok(mut stream) = peer.listen(filter).await else { return };
        while let Ok(Some(_)) = stream.next().await {
            notifications.list_changed();
        }
        // The stream has ended, so later changes are not reported. The next call must list the tools again.
        notifications.list_changed();
    });
    Some(task.abort_handle())
}

fn unusable(what: impl Into<String>) -> ConnectFailure {
    ConnectFailure::new(Kind::Configuration, what)
}

async fn token(endpoint: &HttpEndpoint) -> Result<Option<String>, String> {
    match &endpoint.token {
        None => Ok(None),
        Some(token) => match catch_future(|| token()).await {
            Ok(token) => token.map(Some).map_err(|reason| format!("there is no token: {reason}")),
            Err(panic) => {
                tracing::error!(%panic, "the function for the token panicked");
                Err("there is no token: the function for the token panicked".to_owned())
            }
        },
    }
}

async fn over_http(
    endpoint: &HttpEndpoint,
    config: &ClientConfig,
    limit: Duration,
    token: Option<String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, ConnectFailure> {
    let url = reqwest::Url::parse(&endpoint.url).map_err(|error| {
        unusable(format!(
            "the URL cannot be read ({error}): write it in full, like `http://127.0.0.1:8080/mcp`"
        ))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let what = format!("the URL begins with `{}:`; use a URL with `http:` or `https:`", url.scheme());
        return Err(unusable(what));
    }
    let mut client = reqwest::Client::builder()
        .connect_timeout(limit)
        .read_timeout(config.limits.longest_call)
        .redirect(same_origin(&url))
        // Connections are not reused: if the body of a response was not read to its end, the next request on its connection can wait for
        // TCP acknowledgments.
        .pool_max_idle_per_host(0);
    if endpoint.public_only {
        let host = url.host_str().ok_or_else(|| unusable("the URL has no host"))?;
        let addresses = public_addresses(&url).await?;
        client = client.no_proxy().resolve_to_addrs(host, &addresses);
    }
    let client = client.build().map_err(|error| unusable(error.without_url().to_string()))?;
    let mut headers = HashMap::new();
    for (name, value) in &endpoint.headers {
        let name: HeaderName =
            name.parse().map_err(|_| unusable(format!("{name:?} is not the name of a header")))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| unusable(format!("the value of the header `{name}` cannot be sent")))?;
        value.set_sensitive(true);
        if headers.contains_key(&name) {
            return Err(unusable(format!("the header `{name}` is set twice")));
        }
        headers.insert(name, value);
    }
    let longest = longest_message(&config.limits);
    let mut transport = StreamableHttpClientTransportConfig::with_uri(&*endpoint.url)
        .custom_headers(headers)
        .max_json_response_size(longest)
        .max_sse_event_size(longest);
    if let Some(token) = token {
        transport = transport.auth_header(token);
    }
    Ok(StreamableHttpClientTransport::with_client(client, transport))
}

/// Returns the maximum length of a message, in bytes. A message is longer than the result in it, because JSON may need six bytes for one
/// byte of a text.
fn longest_message(limits: &ClientLimits) -> usize {
    limits.result.max(limits.definitions).saturating_mul(6).saturating_add(64 << 10).min(MAX_MESSAGE)
}

/// Returns a policy that follows at most [`REDIRECTS`] redirects, only within the origin of `url`, so that no other server receives the
/// token.
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

/// Looks up the addresses of a host, and fails unless all of them are public. The connection uses these addresses, because a second lookup
/// of the name could return other addresses.
async fn public_addresses(url: &reqwest::Url) -> Result<Vec<SocketAddr>, ConnectFailure> {
    let port = url.port_or_known_default().ok_or_else(|| unusable("the URL has no port"))?;
    let host = url.host_str().ok_or_else(|| unusable("the URL has no host"))?.trim_matches(['[', ']']);
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| {
        ConnectFailure::new(Kind::Unreachable, format!("there is no connection ({error})"))
    })?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() || addresses.iter().any(|address| !is_public(address.ip())) {
        return Err(unusable("its address is not a public one"));
    }
    Ok(addresses)
}

/// Returns whether an address is public. Multicast addresses, IPv6 addresses outside of `2000::/3`, and the addresses in the special-purpose
/// registries of IANA (<https://www.iana.org/assignments/iana-ipv4-special-registry>,
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>) are not public. These registries also contain blocks that lead to other
/// addresses, such as 6to4 and Teredo.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => match v4.octets() {
            [0 | 10 | 127 | 224..=255, ..] => false,
            [100, second, ..] => !(64..128).contains(&second),
            [169, second, ..] => second != 254,
            [172, second, ..] => !(16..32).contains(&second),
            [192, second, third, _] => {
                second != 168
                    && !matches!((second, third), (0, 0 | 2) | (31, 196) | (52, 193) | (88, 99) | (175, 48))
            }
            [198, second, third, _] => !matches!((second, third), (18 | 19, _) | (51, 100)),
            [203, second, third, _] => (second, third) != (0, 113),
            _ => true,
        },
        IpAddr::V6(v6) => {
            let [first, second, third, ..] = v6.segments();
            match first {
                // 2001::/23 is reserved for protocols such as Teredo and ORCHID, and 2001:db8::/32 for examples in documentation.
                0x2001 => second > 0x1ff && second != 0xdb8,
                // 6to4, which leads to IPv4 addresses.
                0x2002 => false,
                // AS112, whose DNS servers answer queries about private addresses.
                0x2620 => (second, third) != (0x4f, 0x8000),
                // 3fff::/20 is reserved for examples in documentation.
                0x3fff => second > 0xfff,
                // Only 2000::/3 is assigned to hosts. The other blocks contain loopback, private and local addresses, and addresses that
                // are translated to IPv4.
                first => (0x2000..0x4000).contains(&first),
            }
        }
    }
}

fn command(
    endpoint: &CommandEndpoint,
    tap: &TrafficTap,
) -> std::io::Result<(TokioChildProcess, JoinHandle<()>)> {
    let mut command = tokio::process::Command::new(&endpoint.program);
    command.args(&endpoint.args).env_clear().kill_on_drop(true);
    for name in &endpoint.inherited {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(endpoint.env.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &endpoint.folder {
        command.current_dir(folder);
    }
    let (transport, errors) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
    let tap = tap.clone();
    let log = tokio::spawn(async move {
        if let Some(errors) = errors {
            log_lines(errors, &tap).await;
        }
    });
    Ok((transport, log))
}

/// Returns the failure of a program that was not started. The folder is checked first, because the operating system reports a missing
/// program and a missing working directory with the same error.
fn not_started(endpoint: &CommandEndpoint, error: &std::io::Error) -> ConnectFailure {
    let hint = match (&endpoint.folder, error.kind()) {
        (Some(folder), _) if !folder.is_dir() => format!("; there is no folder `{}`", folder.display()),
        (_, ErrorKind::NotFound) if endpoint.program.to_string_lossy().contains(char::is_whitespace) => {
            "; give the program alone, and its arguments with `.args([…])`".to_owned()
        }
        (_, ErrorKind::NotFound) => {
            "; check its name, and that it is installed where `PATH` looks".to_owned()
        }
        (_, ErrorKind::PermissionDenied) => {
            "; check that the file is a program, and may be executed".to_owned()
        }
        _ => String::new(),
    };
    ConnectFailure::new(Kind::NotStarted, format!("the program cannot be started ({error}){hint}"))
}

async fn log_lines(errors: impl AsyncRead + Unpin, tap: &TrafficTap) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        let Ok(read) = errors.fill_buf().await else { return };
        if read.is_empty() {
            if !line.is_empty() {
                log_line(&line, tap);
            }
            return;
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let part = &read[..end.unwrap_or(read.len())];
        line.extend_from_slice(&part[..part.len().min(READ_LINE.saturating_sub(line.len()))]);
        let length = part.len() + usize::from(end.is_some());
        errors.consume(length);
        if end.is_some() {
            log_line(&line, tap);
            line.clear();
        }
    }
}

/// Masks the secrets before the line is cut, because the beginning of a secret at the end of a line is not always recognized.
fn log_line(line: &[u8], tap: &TrafficTap) {
    let mut line = tap.masked(&String::from_utf8_lossy(line));
    let end = (0..=LOG_LINE.min(line.len())).rev().find(|end| line.is_char_boundary(*end));
    line.truncate(end.unwrap_or_default());
    tap.error_output(&line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::client::{ConnectionSlot, FIRST_PAUSE, Inner, McpClient, STABLE};
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt as _;

    async fn opened() -> Arc<Connection> {
        let (client, server) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let (input, mut output) = tokio::io::split(server);
            let mut lines = BufReader::new(input).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let request: Value = serde_json::from_str(&line).unwrap();
                let Some(id) = request.get("id") else { continue };
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "serverInfo": {"name": "x", "version": "1"},
                });
                let answer = format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result}));
                output.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let config = ClientConfig::command("x").legacy();
        let tap = TrafficTap::new(&config, "x");
        Arc::new(Connection::start(&config, "x", &Arc::default(), (client, &tap), None).await.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_count_from_zero_after_a_dropped_connection_that_lasted() {
        for (lifetime, attempts) in [(STABLE, 0), (STABLE / 2, 3)] {
            let connection = opened().await;
            tokio::time::advance(lifetime).await;
            let inner = Inner::unconnected(ClientConfig::command("x"));
            let live = Some(connection.clone());
            *inner.slot() = ConnectionSlot { live, attempts: 3, last_attempt: None };
            inner.drop_connection(&connection);
            let slot = inner.slot();
            assert!(slot.live.is_none());
            assert_eq!(slot.attempts, attempts, "after {lifetime:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_refresh_neither_forgets_the_change_nor_counts_as_an_attempt() {
        let inner = Inner::unconnected(ClientConfig::command("/no/such/program"));
        inner.notifications.list_changed();
        assert!(tokio::time::timeout(FIRST_PAUSE / 2, inner.refresh_if_stale()).await.is_err());
        assert!(inner.notifications.take_change());
        assert_eq!(inner.slot().attempts, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_a_reconnection_for_which_a_report_does_not_wait() {
        let config = ClientConfig::command("/no/such/program");
        let client = McpClient { inner: Arc::new(Inner::unconnected(config)) };
        let began = Instant::now();
        let closing = async {
            client.report().await;
            client.close().await;
        };
        let (connected, ()) = tokio::join!(client.inner.connection(), closing);
        assert!(connected.is_err_and(|error| error.to_string().ends_with("the client was closed")));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_output_of_a_program_that_is_no_server_is_not_read_for_ever() {
        let (config, (client, server)) = (ClientConfig::command("x").legacy(), tokio::io::duplex(64));
        drop(server);
        let log = tokio::spawn(std::future::pending());
        let reading = log.abort_handle();
        let tap = TrafficTap::new(&config, "x");
        assert!(Connection::start(&config, "x", &Arc::default(), (client, &tap), Some(log)).await.is_err());
        tokio::time::sleep(LAST_WORDS).await;
        assert!(reading.is_finished());
    }

    #[tokio::test]
    async fn a_secret_at_the_end_of_a_cut_line_is_masked() {
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let sink = seen.clone();
        let config = ClientConfig::command("x").env("API_KEY", "s3cret").on_traffic(move |traffic| {
            if let crate::traffic::TrafficKind::ErrorOutput { line } = traffic.kind {
                line.clone_into(&mut sink.lock().unwrap());
            }
        });
        let line = format!("{}s3cret", "é".repeat(LOG_LINE / 2 - 1));
        log_lines(line.as_bytes(), &TrafficTap::new(&config, "x")).await;
        let line = seen.lock().unwrap();
        assert!(line.ends_with("é[r") && line.len() == LOG_LINE, "{}", &line[line.len() - 8..]);
    }

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2620:4f:123::1",
            "2003::1",
            "3ffe::1",
        ] {
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
            // Special-purpose blocks of IANA's registries, multicast, and unassigned blocks.
            "0.1.2.3",
            "100.127.255.255",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.9",
            "192.0.2.1",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.99.1",
            "192.175.48.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "239.1.2.3",
            "240.0.0.1",
            "::10.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:a00:1",
            "64:ff9b:1::a00:1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:1::1",
            "2001:2::1",
            "2001:3::1",
            "2001:4:112::1",
            "2001:10::1",
            "2001:20::1",
            "2001:30::1",
            "2001:1ff::1",
            "2002:a00:1::1",
            "2620:4f:8000::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}

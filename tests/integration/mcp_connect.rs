//! Connections that are not made: each says what happened, in the system's words too, and one thing to try.

use super::mcp_mock::{Answer, Mock};
use super::mcp_support::{Era, run};
use agent::mcp::{Bearer, Caller};
use agent::mcp::{ClientConfig, ConnectErrorKind as Kind, McpClientError};
use agent::mcp::{McpClient, McpServer};
use agent::{tool, tools};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const ERAS: [Era; 3] = [Era::Auto, Era::Modern, Era::Legacy];

/// Doubles a number.
#[tool]
fn double(n: i64) -> i64 {
    n * 2
}

/// Answers every request like this. It ends with the test's runtime.
async fn answers(status: &'static str, headers: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/api", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 8192]).await;
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    url
}

/// A port where nothing listens, or somebody who is silent.
async fn port(is_silent: bool) -> (String, Option<TcpListener>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    (format!("http://{}/mcp", listener.local_addr().unwrap()), is_silent.then_some(listener))
}

/// The kind and the text of a refusal, which holds for `Debug` and names no type of the transport.
async fn refusal(config: ClientConfig) -> (Kind, String) {
    let error = McpClient::connect(config).await.unwrap_err();
    let text = error.to_string();
    assert_eq!(format!("{error:?}"), text);
    assert!(
        !text.contains("::")
            || ["`ClientConfig::", "`.legacy(", "`.modern("].iter().any(|own| text.contains(own)),
        "{text}"
    );
    for word in ["rmcp", "reqwest", "Transport", "discover"] {
        assert!(!text.contains(word), "{text}");
    }
    let McpClientError::Connect { kind, .. } = error else { panic!("{text}") };
    (kind, text)
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let (url, _) = port(false).await;
    for era in ERAS {
        let (kind, text) = refusal(era.of(ClientConfig::http(&url))).await;
        assert_eq!(kind, Kind::Unreachable);
        assert!(text.starts_with(&format!("cannot connect to {url}: nothing listens there (")), "{text}");
        assert!(
            text.contains("os error")
                && text.ends_with("; check that the server runs, the host and the port"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_wrong_path() {
    let server = run(McpServer::new(tools![double])).await;
    let url = server.url().replace("/mcp", "/");
    for era in ERAS {
        let (kind, text) = refusal(era.of(ClientConfig::http(&url))).await;
        assert_eq!(kind, Kind::Status(404));
        assert_eq!(
            text,
            format!(
                "cannot connect to {url}: it answered with HTTP status 404 Not Found: There is nothing here; check the path of the URL: for most servers it is `/mcp`"
            )
        );
    }
}

#[tokio::test]
async fn what_answers_is_no_mcp_server() {
    let page = answers("200 OK", "content-type: text/html\r\n", "<!doctype html><p>Hello").await;
    let json = answers("200 OK", "content-type: application/json\r\n", r#"{"ok": true}"#).await;
    let bare = answers("200 OK", "", "Hello").await;
    let empty = answers("202 Accepted", "", "").await;
    for (url, what) in [
        (&page, "it answered with `text/html`, not with a message of MCP"),
        (&json, "it answered with JSON that is not a message of MCP"),
        (&bare, "it answered with something that is not a message of MCP"),
        (&empty, "it ended the connection without an answer"),
    ] {
        for era in ERAS {
            let (kind, text) = refusal(era.of(ClientConfig::http(url))).await;
            assert_eq!(kind, Kind::NotMcp, "{text}");
            assert_eq!(
                text,
                format!(
                    "cannot connect to {url}: {what}; check the path of the URL: for most servers it is `/mcp`"
                )
            );
        }
    }
    // It does not even speak HTTP.
    let (kind, text) = refusal(ClientConfig::http(answers("nonsense", "", "").await)).await;
    assert_eq!(kind, Kind::NotMcp, "{text}");
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_asks() {
    let ours =
        run(McpServer::new(tools![double]).authenticator(Bearer::new([("t0ken", Caller::new("ann"))]))).await;
    let bare = answers("401 Unauthorized", "", "").await;
    for url in [ours.url(), bare] {
        for era in ERAS {
            let error = McpClient::connect(era.of(ClientConfig::http(&url))).await.unwrap_err();
            assert!(matches!(error, McpClientError::Unauthorized { .. }), "{error}");
            assert!(error.to_string().starts_with(&format!("{url} requires authorization: ")), "{error}");
        }
    }
}

#[tokio::test]
async fn what_a_status_says_is_told() {
    let forbidden = answers("403 Forbidden", "content-type: text/html\r\n", "<html>").await;
    let failing = answers("503 Service Unavailable", "retry-after: 7\r\n", "").await;
    let busy = answers("429 Too Many Requests", "", "").await;
    let elsewhere = answers("302 Found", "location: https://login.example/\r\n", "").await;
    for (url, kind, text) in [
        (
            forbidden,
            Kind::Status(403),
            "it answered with HTTP status 403 Forbidden; check the token and what it allows",
        ),
        (
            failing,
            Kind::Status(503),
            "it answered with HTTP status 503 Service Unavailable; the server failed: see its log",
        ),
        (busy, Kind::Status(429), "it answered with HTTP status 429 Too Many Requests; try again later"),
        (
            elsewhere,
            Kind::Redirected,
            "it sends the request elsewhere (a redirect to another origin); use the URL of the redirect's target",
        ),
    ] {
        let refused = refusal(ClientConfig::http(&url)).await;
        assert_eq!(refused, (kind, format!("cannot connect to {url}: {text}")));
    }
}

#[tokio::test]
async fn an_address_that_is_none() {
    for (url, what) in [
        ("127.0.0.1:8080/mcp", "write it in full, like `http://127.0.0.1:8080/mcp`"),
        ("ftp://127.0.0.1/mcp", "use a URL with `http:` or `https:`"),
    ] {
        let (kind, text) = refusal(ClientConfig::http(url)).await;
        assert_eq!(kind, Kind::Configuration);
        assert!(text.contains(what), "{text}");
    }
    // No resolver asks for a label of more than 63 characters.
    let unknown = format!("http://{}.invalid/mcp", "x".repeat(64));
    let (kind, text) = refusal(ClientConfig::http(unknown).public_addresses_only()).await;
    assert_eq!(kind, Kind::Unreachable, "{text}");
    // Without TLS on the other side.
    let url = answers("404 Not Found", "", "").await.replace("http:", "https:");
    let (kind, text) = refusal(ClientConfig::http(&url)).await;
    assert_eq!(kind, Kind::Unreachable, "{text}");
    assert!(text.contains("without TLS, the URL begins with `http:`"), "{text}");
}

#[tokio::test]
async fn settings_that_are_misplaced_or_repeated() {
    for (config, what) in [
        (ClientConfig::command("true").bearer_token("s3cret"), "`bearer_token` is for a server behind a URL"),
        (ClientConfig::command("true").header("x-key", "s3cret"), "pass secrets with `.env(name, value)`"),
        (
            ClientConfig::http("http://127.0.0.1:9/mcp").arg("-v"),
            "`arg` is for a server that is started with",
        ),
        (
            ClientConfig::http("http://127.0.0.1:9/mcp").env("KEY", "s3cret").arg("-v"),
            "`env` is for a server",
        ),
        (
            ClientConfig::http("http://127.0.0.1:9/mcp").header("x-key", "s3cret").header("X-Key", "2"),
            "the header `x-key` is set twice",
        ),
    ] {
        let (kind, text) = refusal(config).await;
        assert_eq!(kind, Kind::Configuration);
        assert!(text.contains(what) && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there() {
    let config = || ClientConfig::command("no-such-program-here");
    for (config, what) in [
        (config(), "check its name, and that it is installed where `PATH` looks"),
        (config().folder("/no/such/folder"), "there is no folder `/no/such/folder`"),
        (
            ClientConfig::command("npx -y server"),
            "give the program alone, and its arguments with `.args([…])`",
        ),
    ] {
        let (kind, text) = refusal(config).await;
        assert_eq!(kind, Kind::NotStarted);
        assert!(text.contains(": the program cannot be started (") && text.contains("os error"), "{text}");
        assert!(text.ends_with(what), "{text}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_ends_at_once_says_its_last_words() {
    for era in ERAS {
        // The last line has no end, and a secret in it.
        let script = "echo starting >&2; printf 'no database for %s' \"$DB_PASSWORD\" >&2; exit 3";
        let config = era.of(ClientConfig::command("sh").args(["-c", script]).env("DB_PASSWORD", "tulip"));
        let (kind, text) = refusal(config).await;
        assert_eq!(kind, Kind::Ended);
        assert_eq!(
            text,
            "cannot connect to sh: the program ended before it answered; its last words on standard error: starting / no database for [redacted]"
        );
        let (kind, text) = refusal(era.of(ClientConfig::command("true"))).await;
        assert_eq!(kind, Kind::Ended, "{text}");
        assert_eq!(
            text,
            "cannot connect to true: the program ended before it answered; run the command by hand to see why"
        );
    }
}

/// A program that answers `server/discover` and `initialize` as given, but only when it got both, and then lists one tool.
#[cfg(unix)]
fn slow(discover: &str, initialize: &str, is_reversed: bool) -> ClientConfig {
    let answer = |body: &str| match body {
        "" => "true".to_owned(),
        body => format!(r#"printf '{{"jsonrpc":"2.0","id":%s,{body}}}\n' "$id""#),
    };
    let order = if is_reversed { r#""$second" "$first""# } else { r#""$first" "$second""# };
    let script = format!(
        r#"answer() {{
  id=$(printf %s "$1" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $1 in
    *server/discover*) {} ;;
    *'"initialize"'*) {} ;;
    *tools/list*) {} ;;
  esac
}}
read -r first; read -r second; for line in {order}; do answer "$line"; done
while read -r line; do answer "$line"; done"#,
        answer(discover),
        answer(initialize),
        answer(r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#),
    );
    ClientConfig::command("sh").args(["-c", &*script]).name("slow").connect_timeout(Duration::from_secs(6))
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_starts_slowly() {
    let discovered = r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
    let initialized = r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}"#;
    let unknown = r#""error":{"code":-32601,"message":"Method not found"}"#;
    let mut connecting = tokio::task::JoinSet::new();
    for (discover, initialize, version) in [
        (unknown, initialized, "2025-06-18"),
        (discovered, unknown, "2026-07-28"),
        // It does not answer what it does not know.
        ("", initialized, "2025-06-18"),
        (discovered, "", "2026-07-28"),
        // It knows both, and was initialized.
        (discovered, initialized, "2025-06-18"),
    ] {
        for is_reversed in [false, true] {
            let config = slow(discover, initialize, is_reversed);
            connecting.spawn(async move {
                let what = format!("{discover} {initialize} {is_reversed}");
                let client =
                    McpClient::connect(config).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                let report = client.report().await;
                assert_eq!(report.protocol_version.as_deref(), Some(version), "{what}");
                assert_eq!(report.tools, [("t".to_owned(), "slow__t".to_owned())], "{what}");
                // The answers that came late are not taken for those of other requests.
                assert!(client.refresh().await.unwrap_or_else(|error| panic!("{what}: {error}")).is_empty());
            });
        }
    }
    while let Some(connected) = connecting.join_next().await {
        connected.unwrap();
    }
    let refused = r#""error":{"code":-32000,"message":"Buy a licence"}"#;
    let (kind, text) = refusal(slow(unknown, refused, false)).await;
    assert_eq!(kind, Kind::Refused);
    assert_eq!(text, "cannot connect to slow: it refused with error -32000: Buy a licence");
}

/// A slow server over HTTP gets one request after the other, and each of them may take as long as the limit says.
#[tokio::test]
async fn a_server_that_wakes_up_slowly() {
    let woken = std::sync::OnceLock::new();
    let mock = Mock::start(move |method, _, _| {
        if woken.set(()).is_ok() {
            std::thread::sleep(Duration::from_secs(2));
        }
        if method == "tools/list" { Answer::tools(&["t"]) } else { Answer::Error(-32601, "Method not found") }
    });
    let config = ClientConfig::http(mock.run().await).connect_timeout(Duration::from_secs(20));
    let client = McpClient::connect(config).await.unwrap();
    assert_eq!(client.report().await.protocol_version.as_deref(), Some("2025-11-25"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_is_silent() {
    let (url, _listener) = port(true).await;
    let limit = Duration::from_millis(500);
    let command = || ClientConfig::command("sh").args(["-c", "echo loading >&2; exec sleep 600"]);
    let words = "it did not answer within 0.5 s";
    let more_time = "raise `ClientConfig::connect_timeout`";
    for (era, hint) in [(Era::Auto, "set `.legacy()`"), (Era::Legacy, more_time)] {
        let (kind, text) = refusal(era.of(ClientConfig::http(&url)).connect_timeout(limit)).await;
        assert_eq!(kind, Kind::Timeout);
        assert!(text.contains(words) && text.contains(more_time) && text.ends_with(hint), "{text}");
        // A program was asked in both forms.
        let (kind, text) = refusal(era.of(command()).connect_timeout(limit)).await;
        assert_eq!(kind, Kind::Timeout);
        assert!(text.contains(words) && text.ends_with(more_time), "{text}");
    }
}

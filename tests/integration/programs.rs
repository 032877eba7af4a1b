//! Our client against servers from npm and the Python index: `tests/programs/servers.json` lists them with their calls.
//!
//! `.ci/programs` installs them and sets `AGENT_PROGRAMS` to the folder. A call that must be refused is refused before it is sent.

use agent::mcp::ClientConfig;
use agent::mcp::McpClient;
use agent::message::ToolCall;
use agent::traffic::TrafficKind;
use agent::{Registry, ToolContext, Value};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

/// Time for a server to start: interpreters on a busy machine are slow.
const START: Duration = Duration::from_secs(90);
/// Time for everything that is done with one server.
const LIMIT: Duration = Duration::from_secs(180);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignServer {
    name: String,
    /// The program and its arguments, for standard input and output.
    #[serde(default)]
    command: Vec<String>,
    /// The program and its arguments, for a server that listens at `url`.
    #[serde(default)]
    serve: Vec<String>,
    url: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    folder: Option<String>,
    /// The number of tools that its version has.
    tools: usize,
    /// None for a server whose tools all need an account or the internet.
    calls: Vec<ForeignCall>,
    refused: ForeignCall,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignCall {
    tool: String,
    arguments: Value,
    /// Paths of the arguments that are coerced.
    #[serde(default)]
    coerced: Vec<String>,
    says: String,
}

/// What `{…}` stands for in the file.
struct Places(Vec<(&'static str, String)>);

impl Places {
    fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    fn all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.filled(text)).collect()
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Runs the parts of a server that listens, until it does.
async fn serve(server: &ForeignServer, places: &Places, port: u16) -> Result<Running, String> {
    let words = places.all(&server.serve);
    let child = Command::new(&words[0])
        .args(&words[1..])
        .envs(server.env.iter().map(|(name, value)| (name, places.filled(value))))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", words[0]))?;
    let mut running = Running(child);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        if let Ok(Some(status)) = running.0.try_wait() {
            return Err(format!("it ended with {status}"));
        }
        if begun.elapsed() > START {
            return Err(format!("nothing listens at port {port} after {START:?}"));
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(running)
}

/// What was done with a server, in words.
async fn use_it(server: &ForeignServer, places: &Places, port: u16) -> Result<String, String> {
    let begun = Instant::now();
    let mut running = None;
    let config = if let Some(url) = &server.url {
        running = Some(serve(server, places, port).await?);
        ClientConfig::http(places.filled(url))
    } else {
        let words = places.all(&server.command);
        let config = ClientConfig::command(&words[0]).args(&words[1..]);
        let config =
            server.env.iter().fold(config, |config, (name, value)| config.env(name, places.filled(value)));
        // Files that a server writes for its user are not those of whoever runs the test.
        let config = config.env("HOME", places.filled("{work}"));
        match &server.folder {
            Some(folder) => config.folder(places.filled(folder)),
            None => config,
        }
    };
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let config = config.name("it").connect_timeout(START).on_traffic(move |traffic| {
        if let TrafficKind::Sent { message, .. } = traffic.kind
            && message.contains("\"tools/call\"")
        {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let client = McpClient::connect(config).await.map_err(|error| error.to_string())?;
    let used = calls(server, places, &client, &sent).await;
    client.close().await;
    drop(running);
    used.map(|said| format!("{said}, {:.1} s", begun.elapsed().as_secs_f64()))
}

async fn calls(
    server: &ForeignServer,
    places: &Places,
    client: &McpClient,
    sent: &AtomicUsize,
) -> Result<String, String> {
    let report = client.report().await;
    if !report.left_out.is_empty() {
        return Err(format!("left out: {:?}", report.left_out));
    }
    let tools = report.tools.len();
    if tools != server.tools {
        return Err(format!("{tools} tools, not {}", server.tools));
    }
    let registry = Registry::new(client.tools()).map_err(|error| error.to_string())?;
    let call = async |call: &ForeignCall| {
        let arguments = places.filled(&call.arguments.to_string());
        let call = ToolCall::new("call_1", format!("it__{}", call.tool), arguments);
        registry.call(&call, &ToolContext::new()).await
    };
    for planned in &server.calls {
        let before = sent.load(Ordering::Relaxed);
        let result = call(planned).await;
        let text = result.outcome.text();
        if result.outcome.is_error() || !text.contains(&planned.says) {
            return Err(format!("`{}` does not say {:?} but: {text}", planned.tool, planned.says));
        }
        let coerced: Vec<&str> = result.coercions.iter().map(|coercion| &*coercion.path).collect();
        if coerced != planned.coerced {
            return Err(format!("`{}`: coerced are {coerced:?}, not {:?}", planned.tool, planned.coerced));
        }
        if sent.load(Ordering::Relaxed) != before + 1 {
            return Err(format!("`{}` was not sent once", planned.tool));
        }
    }
    let before = sent.load(Ordering::Relaxed);
    let refused = call(&server.refused).await;
    let text = refused.outcome.text();
    if refused.outcome.code() != Some("invalid_arguments") || !text.contains(&server.refused.says) {
        return Err(format!(
            "`{}` is not refused for {:?}: {text}",
            server.refused.tool, server.refused.says
        ));
    }
    if sent.load(Ordering::Relaxed) != before {
        return Err(format!("`{}` was sent although it is refused", server.refused.tool));
    }
    let version = report.protocol_version.unwrap_or_default();
    Ok(format!("{version}, {tools} tools, {} calls, 1 refused before it was sent", server.calls.len()))
}

/// The files that the calls need.
fn prepare(work: &Path) {
    let repository = work.join("repository");
    fs::create_dir_all(&repository).unwrap();
    fs::write(work.join("unused.js"), "const unused = 1;\n").unwrap();
    let config = "export default [{rules: {'no-unused-vars': 'error'}}];\n";
    fs::write(work.join("eslint.config.mjs"), config).unwrap();
    fs::write(repository.join("a.txt"), "a\n").unwrap();
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "the first commit"]] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&repository);
        for (name, value) in [("NAME", "Ann"), ("EMAIL", "ann@example.com")] {
            git.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        assert!(git.status().unwrap().success(), "git {arguments:?}");
    }
}

/// A page of this machine, for as long as the runtime lives.
async fn page() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let body =
                    "<html><body><h1>A page of this machine</h1><p>With a paragraph.</p></body></html>";
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length";
                let _ = stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes()).await;
            });
        }
    });
    url
}

/// A folder that is removed with the test.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
#[ignore = "programs: needs AGENT_PROGRAMS"]
async fn foreign_servers_are_listed_called_and_spared_bad_calls() {
    let home = std::env::var("AGENT_PROGRAMS").expect("AGENT_PROGRAMS names the folder of the servers");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = fs::read_to_string(tests.join("programs/servers.json")).unwrap();
    let servers: Vec<ForeignServer> = serde_json::from_str(&listed).unwrap();
    let scratch = Scratch(std::env::temp_dir().join(format!("agent-programs-{}", std::process::id())));
    fs::create_dir_all(&scratch.0).unwrap();
    // Some servers compare paths after links were resolved.
    let work = scratch.0.canonicalize().unwrap();
    prepare(&work);
    let page = page().await;
    let (mut failed, mut used) = (Vec::new(), 0);
    for server in &servers {
        let port = free_port();
        let places = Places(vec![
            ("npm", format!("{home}/npm/node_modules/.bin")),
            ("sdk1", format!("{home}/sdk1/bin")),
            ("sdk2", format!("{home}/sdk2/bin")),
            ("tests", tests.display().to_string()),
            ("work", work.display().to_string()),
            ("page", page.clone()),
            ("port", port.to_string()),
        ]);
        let outcome = timeout(LIMIT, use_it(server, &places, port)).await;
        match outcome.unwrap_or_else(|_| Err(format!("it took more than {LIMIT:?}"))) {
            Ok(said) => {
                used += 1;
                println!("{}: {said}", server.name);
            }
            Err(error) => {
                println!("FAIL {}: {error}", server.name);
                failed.push(&*server.name);
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join(", "));
    assert!(used >= 12, "{used} servers");
}

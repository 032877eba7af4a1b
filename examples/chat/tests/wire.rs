//! The chat with a provider on loopback, its log, and an MCP server.

use super::terminal::{Folder, Start, Terminal, program};
use agent::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

const KEY: &str = "sk-not-to-be-seen-123456";

/// Starts a provider that speaks Chat Completions, and returns its URL. The provider is careless: its responses contain the key.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // An error means that the client closed the connection, which is not a failure.
            let _ = answer(stream);
        }
    });
    url
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (head, tail) = KEY.split_at(9);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-echo: {KEY}\r\nconnection: close\r\n\r\n"
    )?;
    for text in ["Hello ", "from ", "afar, ", head] {
        write!(stream, "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")?;
    }
    // This line contains the whole key, but the key is cut between two writes.
    write!(stream, ": {head}")?;
    stream.flush()?;
    std::thread::sleep(std::time::Duration::from_millis(50));
    write!(
        stream,
        "{tail}\n\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

#[test]
fn a_provider_of_the_environment_answers_and_its_traffic_is_logged_without_the_key() {
    let home = Folder::new();
    let log = home.0.join("traffic.jsonl");
    let start = Start::new(&home, &["--log", log.to_str().unwrap()])
        .env("OPENAI_DEFAULT_MODEL", "gpt-5")
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", &provider())
        .env("NO_PROXY", "127.0.0.1");
    let chat = Terminal::at_prompt(start);
    assert!(
        chat.screen().contains("openai/gpt-5\n(a …_DEFAULT_MODEL in the environment names it)"),
        "{}",
        chat.screen()
    );
    chat.ask("Who is there?");
    assert!(chat.screen().contains("Hello from afar, "), "{}", chat.screen());
    chat.ask("/model demo");
    chat.ask("think");
    chat.quit();

    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains(KEY), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = lines[0]["exchange"].clone();
    let (lines, of_demo): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line["exchange"] == first);
    assert_eq!(of_demo[0]["kind"], "request");
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!((kinds[0], kinds[1], kinds.last()), ("request", "answer", Some(&"end")));
    assert_eq!(lines[0]["headers"]["authorization"], "[redacted]");
    assert_eq!(lines[0]["body"]["messages"][0]["content"], "Who is there?");
    assert_eq!((&lines[1]["status"], &lines[1]["headers"]["x-echo"]), (&200.into(), &"[redacted]".into()));
    let body: String = lines.iter().filter_map(|line| line["text"].as_str()).collect();
    assert!(body.contains(": [redacted]\n") && body.contains("[DONE]"), "{body}");
}

#[test]
fn the_demo_models_traffic_is_logged_in_neutral_words() {
    let home = Folder::new();
    let log = home.0.join("traffic.jsonl");
    let chat = Terminal::at_prompt(Start::new(&home, &["--log", log.to_str().unwrap()]));
    chat.ask("think");
    chat.quit();
    let text = std::fs::read_to_string(&log).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["body"]["messages"][0]["role"], "user");
    assert!(text.contains("\"update\":\"thinking_delta\""), "{text}");
}

#[test]
fn the_tools_of_an_mcp_server_are_used_and_asked_about() {
    let home = Folder::new();
    let server = format!("hotels={}", program("mcp_server").display());
    let chat = Terminal::at_prompt(Start::new(&home, &["--mcp", &server, "--no-tools"]));
    assert!(chat.screen().contains("tools: hotels__book_room, hotels__find_hotels"), "{}", chat.screen());
    chat.say("find hotels in Paris with 4 stars");
    chat.wait_for("? hotels__find_hotels wants to run with");
    chat.say("yes");
    chat.wait_for("hotels__find_hotels says:");
    chat.wait_for_prompt();
    assert!(chat.screen().contains("text_to_integer"), "{}", chat.screen());
    chat.quit();
    // The chat does not ask about tools that `--allow` names.
    let chat =
        Terminal::at_prompt(Start::new(&home, &["--mcp", &server, "--no-tools", "--allow", "hotels__*"]));
    chat.ask("find hotels in Paris with 4 stars");
    assert!(chat.screen().contains("hotels__find_hotels says:"), "{}", chat.screen());
    chat.quit();
}

/// An MCP server over HTTP, which is stopped when this value is dropped.
struct Served {
    server: std::process::Child,
    url: String,
}

impl Served {
    fn new() -> Self {
        let mut server = std::process::Command::new(program("mcp_server"));
        let mut server = server.args(["http", "0"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        let url = url.trim_end_matches(';').to_owned();
        Self { server, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_server_over_http_is_used_and_its_traffic_is_logged_without_the_token() {
    let (home, hotels) = (Folder::new(), Served::new());
    let log = home.0.join("traffic.jsonl");
    let server = format!("hotels={}", hotels.url);
    let args = ["--mcp", &server, "--no-tools", "--allow", "hotels__*", "--log", log.to_str().unwrap()];
    let start = Start::new(&home, &args).env("HOTELS_MCP_TOKEN", KEY).env("NO_PROXY", "127.0.0.1");
    let chat = Terminal::at_prompt(start);
    assert!(chat.screen().contains("tools: hotels__book_room, hotels__find_hotels"), "{}", chat.screen());
    chat.ask("find hotels in Paris with 4 stars");
    assert!(chat.screen().contains("hotels__find_hotels says:"), "{}", chat.screen());
    // The log shows the arguments of calls. The token is hidden even if the user types it.
    chat.ask(&format!("find hotels in \"{KEY}\""));
    chat.quit();

    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mcp: Vec<&Value> = lines.iter().filter(|line| line["server"] == "hotels").collect();
    let calls: Vec<&&Value> = mcp.iter().filter(|line| line["message"]["method"] == "tools/call").collect();
    assert_eq!(calls[0]["kind"], "mcp_sent");
    assert_eq!(calls[0]["message"]["params"]["arguments"]["city"], "Paris");
    let answer = mcp
        .iter()
        .find(|line| line["kind"] == "mcp_received" && line["message"]["id"] == calls[0]["message"]["id"]);
    assert!(answer.unwrap().to_string().contains("Lutetia"), "{text}");
    assert_eq!(calls[1]["message"]["params"]["arguments"]["city"], "[redacted]");
    assert!(mcp.iter().all(|line| !line.to_string().contains(KEY)), "{text}");
}

#[test]
fn the_traffic_of_a_server_that_is_a_program_is_logged() {
    let home = Folder::new();
    let log = home.0.join("traffic.jsonl");
    let server = format!("hotels={}", program("mcp_server").display());
    let chat = Terminal::at_prompt(Start::new(&home, &["--mcp", &server, "--log", log.to_str().unwrap()]));
    chat.quit();
    let text = std::fs::read_to_string(&log).unwrap();
    let said = |kind: &str, word: &str| text.lines().any(|line| line.contains(kind) && line.contains(word));
    assert!(said("mcp_sent", "tools/list") && said("mcp_received", "find_hotels"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_named_and_the_chat_begins() {
    let home = Folder::new();
    // The listener is dropped at once, so the port is closed.
    let url = format!("http://{}/mcp", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let start = Start::new(&home, &["--mcp", &format!("docs={url}")]).env("NO_PROXY", "127.0.0.1");
    let chat = start.run();
    chat.wait_for("cannot connect to docs:");
    chat.wait_for_prompt();
    assert!(chat.written().contains("nothing listens there"), "{}", chat.screen());
    chat.say("quit");
    assert_eq!(chat.end().code(), Some(0));
}

//! Two servers with the same tools, each a process, asked in turns by the same client. See `run.sh`.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What the ratio of processor times has to be at least.
const MUST: f64 = 0.95;
/// Calls without an answer at any time: connections over HTTP, lines over standard input.
const AT_ONCE: usize = 16;
/// Short rounds, many of them: what else the machine does falls on both sides.
const CALLS: usize = 4_000;
const ROUNDS: usize = 15;
/// The calls after which memory is compared.
const FEW: usize = 100_000;
const MANY: usize = 500_000;
/// What memory may grow by, from few calls to many.
const FLAT: f64 = 1.1;

const PROGRAMS: [&str; 2] = ["mcp-own", "mcp-plain"];

/// A call of a tool as a message.
fn message(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn noop() -> String {
    message("noop", r#"{"text":"hello","times":3}"#)
}

/// The same with another id, because those of one connection are open at the same time.
fn numbered(message: &str, id: usize) -> String {
    message.replacen("\"id\":1", &format!("\"id\":{id}"), 1)
}

/// What a server says about itself: its processor time in seconds, and its memory in MiB.
fn used(answer: &str) -> Outcome<(f64, f64)> {
    let numbers =
        answer.split_once("used ").map(|(_, numbers)| numbers.split('"').next().unwrap_or_default());
    let mut numbers = numbers.unwrap_or_default().split(' ').map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(time)), Some(Ok(memory))) => Ok((time / 1e9, memory / 1024.0)),
        _ => Err(format!("no usage: {answer}").into()),
    }
}

/// A running server.
trait Server {
    /// Makes so many calls, and returns how long each took, if that is known.
    fn calls(&mut self, times: usize) -> Outcome<Vec<Duration>>;
    fn usage(&mut self) -> Outcome<(f64, f64)>;
}

/// A process, which ends when this is dropped.
struct Program(Child);

impl Program {
    fn start(name: &str, arguments: &[&str]) -> Outcome<Self> {
        let path = std::env::current_exe()?.with_file_name(name);
        let child =
            Command::new(path).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        Ok(Self(child))
    }

    fn pipes(&mut self) -> Outcome<(ChildStdin, BufReader<ChildStdout>)> {
        let (Some(input), Some(output)) = (self.0.stdin.take(), self.0.stdout.take()) else {
            return Err("no pipes".into());
        };
        Ok((input, BufReader::new(output)))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct HttpServer {
    _program: Program,
    address: SocketAddr,
    client: tokio::runtime::Runtime,
}

impl HttpServer {
    fn start(name: &str) -> Outcome<Self> {
        let mut program = Program::start(name, &["http"])?;
        let mut port = String::new();
        program.pipes()?.1.read_line(&mut port)?;
        let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { _program: program, address: ([127, 0, 0, 1], port.trim().parse()?).into(), client })
    }
}

impl Server for HttpServer {
    fn calls(&mut self, times: usize) -> Outcome<Vec<Duration>> {
        let address = self.address;
        self.client.block_on(async {
            let asking: Vec<_> =
                (0..AT_ONCE).map(|_| tokio::spawn(ask(address, "noop", noop(), times / AT_ONCE))).collect();
            let mut took = Vec::new();
            for connection in asking {
                let (times, answer) = connection.await??;
                if !answer.contains("\"text\":\"hello\"") {
                    return Err(format!("not the answer: {answer}").into());
                }
                took.extend(times);
            }
            Ok(took)
        })
    }

    fn usage(&mut self) -> Outcome<(f64, f64)> {
        let (_, answer) = self.client.block_on(ask(self.address, "usage", message("usage", "{}"), 1))?;
        used(&answer)
    }
}

/// One connection asks so often: how long each answer took, and the last one.
async fn ask(
    address: SocketAddr,
    tool: &str,
    body: String,
    times: usize,
) -> Outcome<(Vec<Duration>, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: {tool}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut took, mut answer, mut length) = (Vec::with_capacity(times), vec![0; 16 << 10], 0);
    for _ in 0..times {
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        length = 0;
        while !is_whole(&answer[..length]) {
            let read = stream.read(&mut answer[length..]).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            length += read;
        }
        took.push(begun.elapsed());
    }
    Ok((took, String::from_utf8_lossy(&answer[..length]).into_owned()))
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}

struct StdioServer {
    _program: Program,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl StdioServer {
    fn start(name: &str) -> Outcome<Self> {
        let mut program = Program::start(name, &["stdio"])?;
        let (input, output) = program.pipes()?;
        Ok(Self { _program: program, input, output })
    }

    fn send(&mut self, line: &str) -> Outcome<()> {
        Ok(self.input.write_all(format!("{line}\n").as_bytes())?)
    }

    fn receive(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the server closed its output".into());
        }
        Ok(line)
    }
}

impl Server for StdioServer {
    fn calls(&mut self, times: usize) -> Outcome<Vec<Duration>> {
        let noop = noop();
        for id in 0..times + AT_ONCE {
            if id < times {
                self.send(&numbered(&noop, id))?;
            }
            if id >= AT_ONCE {
                let answer = self.receive()?;
                if !answer.contains("\"text\":\"hello\"") {
                    return Err(format!("not the answer: {answer}").into());
                }
            }
        }
        Ok(Vec::new())
    }

    fn usage(&mut self) -> Outcome<(f64, f64)> {
        self.send(&message("usage", "{}"))?;
        used(&self.receive()?)
    }
}

/// The middle of the values, which are sorted.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "is missed" }
}

/// Both servers without sockets, each round in new processes.
fn direct(form: &str, rounds: usize) -> Outcome<()> {
    let once = |name: &str| -> Outcome<f64> {
        let mut line = String::new();
        Program::start(name, &["direct", form, &CALLS.to_string()])?.pipes()?.1.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    };
    let (mut ratios, mut ours) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut times = [0.0; 2];
        // Which goes first changes.
        for at in [round % 2, 1 - round % 2] {
            times[at] = once(PROGRAMS[at])?;
        }
        ours.push(times[0] / 1_000.0);
        ratios.push(times[1] / times[0]);
    }
    let ratio = median(&mut ratios);
    println!(
        "in process, {form}: {:.1} µs of the processor a call, rmcp : ours {ratio:.2} (must: {MUST}, {})",
        median(&mut ours),
        verdict(ratio >= MUST)
    );
    Ok(())
}

/// Both servers in turns, and then the memory of ours.
fn beside<S: Server>(name: &str, start: impl Fn(&str) -> Outcome<S>, rounds: usize) -> Outcome<()> {
    let mut servers = [start(PROGRAMS[0])?, start(PROGRAMS[1])?];
    for server in &mut servers {
        server.calls(FEW)?;
    }
    let (mut cpu, mut wall, mut ours, mut slowest) =
        (Vec::new(), Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..rounds {
        let (mut times, mut walls) = ([0.0; 2], [0.0; 2]);
        for at in [round % 2, 1 - round % 2] {
            let (before, _) = servers[at].usage()?;
            let begun = Instant::now();
            let mut took = servers[at].calls(CALLS)?;
            walls[at] = begun.elapsed().as_secs_f64();
            times[at] = servers[at].usage()?.0 - before;
            took.sort_unstable();
            slowest[at].extend(took.get(took.len() * 99 / 100).map(Duration::as_secs_f64));
        }
        cpu.push(times[1] / times[0]);
        wall.push(walls[1] / walls[0]);
        ours.push(times[0] * 1e6 / CALLS as f64);
    }
    let ratio = median(&mut cpu);
    println!(
        "{name}: {:.1} µs of the processor a call, rmcp : ours {ratio:.2} (must: {MUST}, {}); calls a second ours : rmcp {:.2}",
        median(&mut ours),
        verdict(ratio >= MUST),
        median(&mut wall)
    );
    if let [own, plain] = &mut slowest
        && !own.is_empty()
    {
        let (own, plain) = (median(own) * 1e3, median(plain) * 1e3);
        println!("{name}: 99 of 100 answers within {own:.2} ms, those of rmcp within {plain:.2} ms");
    }
    drop(servers);
    for program in PROGRAMS {
        let mut server = start(program)?;
        server.calls(FEW)?;
        let (_, few) = server.usage()?;
        server.calls(MANY - FEW)?;
        let (_, many) = server.usage()?;
        let growth = many / few;
        let held = if program == PROGRAMS[0] {
            format!(" (must: {FLAT}, {})", verdict(growth <= FLAT))
        } else {
            String::new()
        };
        println!(
            "{name}, {program}: {few:.1} MiB after {FEW} calls, {many:.1} MiB after {MANY}: {growth:.2}{held}"
        );
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    for form in ["newest", "progress", "older"] {
        direct(form, rounds)?;
    }
    beside("HTTP", HttpServer::start, rounds)?;
    beside("stdio", StdioServer::start, rounds)
}

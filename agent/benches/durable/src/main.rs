//! What durable runs cost. See `run.sh`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use agent::durable::{Client, Service};
use agent::message::{AssistantMessage, Message, Part};
use agent::model::{Model, ModelError, ModelRequest, ModelStream, StepCx};
use agent::{Assistant, json, tool, tools};
use restate_sdk::context::RequestTarget;
use restate_sdk::prelude::*;

type Outcome<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 7;
const TURNS: usize = 40;
const AT_ONCE: usize = 1000;

/// The steps that a turn of ours has, by a handler of its own: two results that are kept, one question to an object.
struct Bare;

#[restate_sdk::service]
impl Bare {
    #[handler]
    async fn turns(&self, ctx: Context<'_>, turns: Json<usize>) -> Result<Json<usize>, HandlerError> {
        for turn in 0..turns.0 {
            let reply = format!("reply {turn} {}", "x".repeat(300));
            let _: String = ctx.run(move || async move { Ok(reply) }).name(format!("model/{turn}")).await?;
            let result = format!("result {turn} {}", "x".repeat(300));
            let _: String = ctx.run(move || async move { Ok(result) }).name(format!("tool/{turn}")).await?;
            let asked = RequestTarget::object("BareInbox", "bare", "drain");
            let _: Json<Vec<String>> = ctx.request::<(), Json<Vec<String>>>(asked, ()).call().await?;
        }
        Ok(Json(turns.0))
    }

    #[handler]
    async fn steps(&self, ctx: Context<'_>, steps: Json<usize>) -> Result<Json<usize>, HandlerError> {
        for step in 0..steps.0 {
            let result = format!("result {step} {}", "x".repeat(300));
            let _: String = ctx.run(move || async move { Ok(result) }).name(format!("step/{step}")).await?;
        }
        Ok(Json(steps.0))
    }
}

struct BareInbox;

#[restate_sdk::object]
impl BareInbox {
    #[handler]
    async fn drain(&self, ctx: ObjectContext<'_>) -> Result<Json<Vec<String>>, HandlerError> {
        let kept = ctx.get::<Json<Vec<String>>>("inbox").await?;
        ctx.set("inbox", kept.unwrap_or(Json(Vec::new())));
        Ok(Json(Vec::new()))
    }
}

/// Says something.
#[tool(effect = "idempotent")]
async fn work(ms: u64, turn: usize) -> String {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    format!("result {turn} {}", "x".repeat(300))
}

/// The prompt says how many turns, and how long a reply and a call take.
struct Script;

impl Model for Script {
    fn stream(&self, cx: &StepCx, request: &ModelRequest) -> ModelStream {
        let prompt = request.messages.first().map(|message| message.text()).unwrap_or_default();
        let script: serde_json::Value = serde_json::from_str(&prompt).unwrap_or_default();
        let turn =
            request.messages.iter().filter(|message| matches!(***message, Message::Assistant(_))).count();
        ModelStream::from_reply(cx, self.info(), async move {
            let ms = |name: &str| script[name].as_u64().unwrap_or_default();
            if ms("model_ms") > 0 {
                tokio::time::sleep(Duration::from_millis(ms("model_ms"))).await;
            }
            Ok::<_, ModelError>(if turn as u64 >= ms("turns") {
                AssistantMessage::from("done")
            } else {
                let args = json!({"ms": ms("tool_ms"), "turn": turn});
                let said = Part::text("x".repeat(200));
                AssistantMessage::from(vec![said, Part::tool_call(format!("c{turn}"), "work", args)])
            })
        })
    }
}

async fn serve(ours: u16, bare: u16) -> Outcome<()> {
    let assistant =
        Assistant::builder(Script).tools(tools![work]).max_turns(1000).loop_guard(None).build()?;
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let endpoint = Endpoint::builder().bind(Bare).bind(BareInbox).build();
    let (served, ()) = tokio::join!(
        Service::new(&assistant)?.serve(at(ours)),
        HttpServer::new(endpoint).listen_and_serve(at(bare))
    );
    Ok(served?)
}

/// A request by hand: no client in the way.
async fn post(ingress: &str, path: &str, body: &str) -> Outcome<Duration> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = ingress.trim_start_matches("http://");
    let begun = Instant::now();
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&answer).into_owned().into());
    }
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn measure(ingress: &str) -> Outcome<()> {
    let (mut ours, mut same, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let run = json!({"run": format!("bench-{round}"), "prompt": json!({"turns": TURNS}).to_string()});
        let times = (
            post(ingress, "/Agent/run", &run.to_string()).await?,
            post(ingress, "/Bare/turns", &TURNS.to_string()).await?,
            post(ingress, "/Bare/steps", &(3 * TURNS).to_string()).await?,
        );
        // The first one warms up.
        if round > 0 {
            ours.push(times.0);
            same.push(times.1);
            runs.push(times.2);
        }
    }
    let (ours, same, runs) = (median(ours), median(same), median(runs));
    // Ours has a last reply, its poll, and the run's own begin and end besides.
    let each = |time: Duration| time.as_secs_f64() * 1e6 / (3 * TURNS) as f64;
    println!("a bare ctx.run                              {:7.0} us", each(runs));
    println!("a step of a bare handler, a turn's mixture   {:7.0} us", each(same));
    println!(
        "a step of a durable run                     {:7.0} us, {:.2}x the bare mixture",
        each(ours),
        each(ours) / each(same)
    );

    let engine = Client::new(ingress)?;
    let (model_ms, tool_ms, turns) = (500, 100, 3);
    let prompt = json!({"turns": turns, "model_ms": model_ms, "tool_ms": tool_ms}).to_string();
    let ideal = Duration::from_millis(model_ms * (turns + 1) + tool_ms * turns);
    let begun = Instant::now();
    let all: Vec<_> = (0..AT_ONCE)
        .map(|at| {
            let (engine, prompt) = (engine.clone(), prompt.clone());
            tokio::spawn(async move { engine.start(format!("many-{at}"), prompt).await?.outcome().await })
        })
        .collect();
    for one in all {
        let outcome = one.await??;
        assert!(outcome.is_completed(), "{outcome:?}");
    }
    let took = begun.elapsed();
    println!(
        "{AT_ONCE} runs at once, of {:.1} s each          {:.2} s, {:.2}x the ideal time",
        ideal.as_secs_f64(),
        took.as_secs_f64(),
        took.as_secs_f64() / ideal.as_secs_f64()
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", ours, bare] => serve(ours.parse()?, bare.parse()?).await,
        ["measure", ingress] => measure(ingress).await,
        _ => Err("durable serve PORT PORT | durable measure INGRESS".into()),
    }
}

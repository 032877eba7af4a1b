//! What durable runs cost. See `run.sh`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use agent::durable::{DurableClient, Service};
use agent::message::{AssistantMessage, Message, Part};
use agent::model::{Model, ModelError, ModelRequest, ModelStream, StepCx};
use agent::{Assistant, json, tool, tools};
use restate_sdk::prelude::*;

type Outcome<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 7;
const TURNS: usize = 40;
const AT_ONCE: usize = 1000;

/// The steps of a run of ours, by handlers of their own that do nothing else: two results for each turn and one at the end.
struct Bare;

/// The same in a workflow, with what a run has besides: it can be told something, until it closes that.
struct Flow;

/// The turns of a run, and how long a reply and a call take.
#[derive(serde::Serialize, serde::Deserialize)]
struct Turns {
    turns: usize,
    #[serde(default)]
    model_ms: u64,
    #[serde(default)]
    tool_ms: u64,
}

macro_rules! step {
    ($ctx:expr, $what:expr, $at:expr, $ms:expr) => {{
        let (name, ms) = (format!("{}/{}", $what, $at), $ms);
        let result = format!("{name} {}", "x".repeat(300));
        let work = move || async move {
            if ms > 0 {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            Ok(result)
        };
        let _: String = $ctx.run(work).name(name).await?;
    }};
}

macro_rules! turns {
    ($ctx:expr, $script:expr) => {{
        for turn in 0..$script.turns {
            step!($ctx, "model", turn, $script.model_ms);
            step!($ctx, "tool", turn, $script.tool_ms);
        }
        step!($ctx, "model", $script.turns, $script.model_ms);
    }};
}

#[restate_sdk::service]
impl Bare {
    #[handler]
    async fn run(&self, ctx: Context<'_>, script: Json<Turns>) -> Result<Json<usize>, HandlerError> {
        turns!(ctx, script.0);
        Ok(Json(script.0.turns))
    }
}

#[restate_sdk::workflow]
impl Flow {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, script: Json<Turns>) -> Result<Json<usize>, HandlerError> {
        let told = ctx.promise::<Json<String>>("told");
        turns!(ctx, script.0);
        ctx.resolve_promise("told", Json("closed".to_owned()));
        let _ = told.await?;
        Ok(Json(script.0.turns))
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
        Assistant::builder(Script).tools(tools![work]).max_turns(1000).without_loop_guard().build()?;
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let endpoint = Endpoint::builder().bind(Bare).bind(Flow).build();
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

async fn one_by_one(ingress: &str) -> Outcome<()> {
    let (mut ours, mut same, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let run = json!({"prompt": json!({"turns": TURNS}).to_string()});
        let bare = json!({"turns": TURNS}).to_string();
        let times = (
            post(ingress, &format!("/Agent/bench-{round}/run"), &run.to_string()).await?,
            post(ingress, &format!("/Flow/bench-{round}/run"), &bare).await?,
            post(ingress, "/Bare/run", &bare).await?,
        );
        // The first one warms up.
        if round > 0 {
            ours.push(times.0);
            same.push(times.1);
            runs.push(times.2);
        }
    }
    let (ours, same, runs) = (median(ours), median(same), median(runs));
    let each = |time: Duration| time.as_secs_f64() * 1e6 / (2 * TURNS + 1) as f64;
    println!("a step of a bare handler                    {:7.0} us", each(runs));
    println!("the same in a workflow that can be told        {:7.0} us", each(same));
    println!(
        "a step of a durable run                     {:7.0} us, {:.2}x the bare step",
        each(ours),
        each(ours) / each(runs)
    );
    Ok(())
}

/// The engine's own client of a handler, as ours: started, then waited for.
async fn bare(engine: Http, start: String, wait: String, key: Option<String>, script: String) -> Outcome<()> {
    let mut sent = engine.client.post(format!("{}/{start}/send", engine.ingress));
    sent = sent.header("content-type", "application/json");
    if let Some(key) = key {
        sent = sent.header("idempotency-key", key);
    }
    sent.body(script).send().await?.error_for_status()?;
    let ended = format!("{}/restate/{wait}/attach", engine.ingress);
    engine.client.get(ended).send().await?.error_for_status()?.bytes().await?;
    Ok(())
}

#[derive(Clone)]
struct Http {
    client: reqwest::Client,
    ingress: String,
}

async fn at_once<F>(what: &str, ideal: Duration, run: impl Fn(usize) -> F) -> Outcome<()>
where
    F: Future<Output = Outcome<()>> + Send + 'static,
{
    let begun = Instant::now();
    let all: Vec<_> = (0..AT_ONCE).map(|at| tokio::spawn(run(at))).collect();
    for one in all {
        one.await??;
    }
    let took = begun.elapsed().as_secs_f64();
    println!("{what:44} {took:7.2} s, {:.2}x the ideal time", took / ideal.as_secs_f64());
    Ok(())
}

async fn many(ingress: &str) -> Outcome<()> {
    let (model_ms, tool_ms, turns) = (500, 100, 3);
    let ideal = Duration::from_millis(model_ms * (turns + 1) + tool_ms * turns);
    println!("{AT_ONCE} runs at once, of {:.1} s each:", ideal.as_secs_f64());
    let script = json!({"turns": turns, "model_ms": model_ms, "tool_ms": tool_ms});
    let http = Http { client: reqwest::Client::new(), ingress: ingress.to_owned() };
    let engine = DurableClient::new(ingress)?;
    for round in 0..3 {
        at_once("  bare handlers", ideal, |at| {
            let (name, script) = (format!("many-{round}-{at}"), script.to_string());
            bare(
                http.clone(),
                "Bare/run".to_owned(),
                format!("invocation/Bare/run/{name}"),
                Some(name),
                script,
            )
        })
        .await?;
        at_once("  the same in a workflow that can be told", ideal, |at| {
            let (name, script) = (format!("many-{round}-{at}"), script.to_string());
            bare(http.clone(), format!("Flow/{name}/run"), format!("workflow/Flow/{name}"), None, script)
        })
        .await?;
        at_once("  durable runs", ideal, |at| {
            let (engine, prompt) = (engine.clone(), script.to_string());
            async move {
                let run = format!("many-{round}-{at}");
                engine.start(&*run, prompt).await?;
                let outcome = engine.outcome(&run).await?;
                if outcome.is_completed() { Ok(()) } else { Err(format!("{outcome:?}").into()) }
            }
        })
        .await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", ours, bare] => serve(ours.parse()?, bare.parse()?).await,
        ["measure", ingress] => {
            one_by_one(ingress).await?;
            many(ingress).await
        }
        _ => Err("durable serve PORT PORT | durable measure INGRESS".into()),
    }
}

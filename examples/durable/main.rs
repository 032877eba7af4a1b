//! Runs on Restate that survive the death of their process. The README says how to install and start the server.
//!
//! ```sh
//! cargo run -p agent-examples --example durable --features durable-restate -- serve       # the service, on 127.0.0.1:9080
//! cargo run -p agent-examples --example durable --features durable-restate -- run trip-1  # starts a run, or finds it, and waits for it
//! ```
//!
//! Kill the service while it works, start it again, and watch the run finish: completed bookings are not repeated. Other commands:
//! `steer RUN TEXT`, `cancel RUN`, `pending RUN`, `allow RUN`, `deny RUN REASON`. The engine's ingress is 127.0.0.1:8080, or the value of
//! `RESTATE_INGRESS`.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

mod script;

use std::error::Error;
use std::time::Duration;

use agent::durable::{DurableClient, PendingAsk, Service};
use agent::{Assistant, Decision, ToolContext, ToolError, tool, tools};
use script::Script;
use tokio::time::sleep;

/// Looks for a hotel.
#[tool(read_only, timeout = "10s")]
async fn find_hotel(city: String) -> String {
    sleep(Duration::from_secs(2)).await;
    println!("  found a hotel in {city}");
    format!("Hotel Lutetia, {city}, 120 EUR a night")
}

/// Books a train. The key is the same on every attempt: a booking system that knows it books once.
#[tool(effect = "idempotent", timeout = "30s")]
async fn book_train(to: String, cx: &ToolContext) -> Result<String, ToolError> {
    for part in 1..=5 {
        tokio::select! {
            () = sleep(Duration::from_secs(1)) => println!("  booking a train to {to}, part {part} of 5"),
            // Whoever cancels the run is heard here.
            () = cx.cancelled() => return Err(ToolError::new("the booking was given up")),
        }
    }
    Ok(format!("booked a train to {to} under {}", cx.idempotency_key()))
}

/// Pays. It must not happen twice, and somebody has to allow it.
#[tool(effect = "once", timeout = "30s", approval = "always")]
async fn pay(amount: u32) -> String {
    sleep(Duration::from_secs(1)).await;
    println!("  paid {amount} EUR");
    format!("paid {amount} EUR")
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let assistant = Assistant::builder(Script)
        .system("Plan trips.")
        .tools(tools![find_hotel, book_train, pay])
        .build()?;
    println!("process {} serves on 127.0.0.1:9080", std::process::id());
    Ok(Service::new(&assistant)?.serve("127.0.0.1:9080".parse()?).await?)
}

async fn decide(engine: &DurableClient, run: &str, decision: &Decision) -> Result<(), Box<dyn Error>> {
    for ask in engine.pending(run).await? {
        if let PendingAsk::Approval { request, .. } = ask {
            engine.decide(run, &request, decision.clone()).await?;
            println!("{}: {decision:?}", request.call.name);
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(|arg| &**arg).collect();
    let ingress = std::env::var("RESTATE_INGRESS").unwrap_or_else(|_| "http://127.0.0.1:8080".to_owned());
    let engine = DurableClient::new(&ingress)?;
    match &args[..] {
        ["serve"] => serve().await?,
        ["run", run] => {
            engine.start(*run, "Book me a trip to Paris.").await?;
            let outcome = engine.outcome(run).await?;
            for message in &outcome.messages {
                println!("{}: {}", message.role(), message.text());
            }
            println!("{}, {} turns", outcome.stop, outcome.turns);
        }
        ["steer", run, text] => engine.steer(run, *text).await?,
        ["cancel", run] => println!("{}", engine.cancel(run, "the user gave up").await?),
        ["pending", run] => {
            for ask in engine.pending(run).await? {
                println!("{}", serde_json::to_string(&ask)?);
            }
        }
        ["allow", run] => decide(&engine, run, &Decision::Allow).await?,
        ["deny", run, reason] => decide(&engine, run, &Decision::Deny((*reason).to_owned())).await?,
        _ => return Err("durable serve | run RUN | steer RUN TEXT | cancel RUN | pending RUN | allow RUN | deny RUN REASON".into()),
    }
    Ok(())
}

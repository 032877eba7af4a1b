//! Task: run small payments immediately, and ask for approval of large ones.
//!
//! ```sh
//! cargo run --example approve_big_amounts              # asks; `y` allows, a number allows that amount, anything else denies
//! echo 200 | cargo run --example approve_big_amounts   # the same in a pipe
//! ```
//!
//! Without `on_approval` the run would be suspended instead. `RunOutput::snapshot` can be stored, and `Assistant::resume` continues it
//! when the decision has been made, also in another process.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::model::reply;
use agent::run::ApprovalRequest;
use agent::{Assistant, Decision, EventKind, ScriptedModel, json, tool, tools};
use std::error::Error;

/// Sends money.
#[tool(approval = when(|amount: &u64| *amount > 100))]
fn send_money(
    /// Who gets it.
    to: String,
    /// In euros.
    #[arg(range(1..=10_000))]
    amount: u64,
) -> String {
    format!("{amount} EUR sent to {to}")
}

/// Asks whoever sits there. The arguments are checked and coerced before anybody is asked.
async fn ask(request: ApprovalRequest) -> Decision {
    let (to, amount) = match (request.arg::<String>("to"), request.arg::<u64>("amount")) {
        (Ok(to), Ok(amount)) => (to, amount),
        (Err(error), _) | (_, Err(error)) => return Decision::Deny(error.to_string()),
    };
    println!("? May `{}` send {amount} EUR to {to}? [y/amount/N]", request.call.name);
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    match line.await {
        Ok(Ok(line)) if line.trim() == "y" => Decision::Allow,
        // Another amount is checked like any argument, and the model is told of it.
        Ok(Ok(line)) if line.trim().parse::<u64>().is_ok() => {
            Decision::AllowWith(json!({"to": to, "amount": line.trim()}))
        }
        _ => Decision::Deny("the owner of the account said no".to_owned()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        reply()
            .tool_call("send_money", r#"{"to": "Ann", "amount": 20}"#)
            .tool_call("send_money", r#"{"to": "Bo", "amount": "500"}"#),
        reply().text("That is done."),
    ]);
    let assistant = Assistant::builder(model)
        .tools(tools![send_money])
        .on_approval(ask)
        .on_event(|event| {
            if let EventKind::ToolExecutionEnd { result, .. } = &event.kind {
                println!("{}", result.outcome.text());
            }
        })
        .build()?;
    println!("{}", assistant.prompt("20 to Ann and 500 to Bo, please.").await?.text());
    Ok(())
}

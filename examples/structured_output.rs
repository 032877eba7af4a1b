//! Task: get a typed answer from a model, validated like the arguments of a tool.
//!
//! ```sh
//! cargo run --example structured_output     # prints the answer as it streams, then the first valid one
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::model::reply;
use agent::{Assistant, ScriptedModel, ToolArgs};
use std::error::Error;

#[derive(ToolArgs)]
struct Invoice {
    /// As printed, without spaces.
    #[arg(pattern = "^[A-Z]{2}[0-9]{4}$")]
    number: String,
    #[arg(length(1..=100))]
    items: Vec<Item>,
    currency: Currency,
}

#[derive(ToolArgs)]
struct Item {
    name: String,
    /// In cents.
    price: u64,
}

#[derive(ToolArgs)]
enum Currency {
    #[serde(rename = "EUR")]
    Euro,
    #[serde(rename = "USD")]
    Dollar,
}

impl Currency {
    fn cents(&self) -> &'static str {
        match self {
            Self::Euro => "euro cents",
            Self::Dollar => "cents",
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        // A currency that is none: the model gets the report, and another try.
        reply().text(r#"{"number": "RE2041", "items": [{"name": "tea", "price": 350}], "currency": "euro"}"#),
        reply()
            .text(r#"{"number": "RE2041", "items": [{"name": "tea", "price": "350"}], "currency": "EUR"}"#),
        reply().text(r#"{"result": ["tea", "coffee"]}"#),
    ]);
    let assistant = Assistant::builder(model).build()?;

    let mut run = assistant.prompt("Invoice RE 2041: one tea at 3.50 EUR").output::<Invoice>().stream();
    let mut shown = None;
    while run.next().await.is_some() {
        let partial = run.partial();
        if partial.is_some() && partial != shown {
            println!("so far: {}", partial.clone().unwrap_or_default());
            shown = partial;
        }
    }
    let answer = run.output().await?;
    let Invoice { number, items, currency } = answer.value;
    println!("{number} in {} replies:", answer.turns);
    for Item { name, price } in items {
        println!("  {name}: {price} {}", currency.cents());
    }

    // Any type will do; what is no object is wrapped in one on the way.
    let drinks: Vec<String> = assistant.prompt("What do you have?").output().await?.value;
    println!("{}", drinks.join(", "));
    Ok(())
}

//! Task: give tools access to a database, a clock and the current user, which the model must not choose.
//!
//! ```sh
//! cargo run --example shared_state     # prints what two users of the same shop see
//! ```
//!
//! Parameters taken by reference are injected by type and are not part of the schema: `&Orders` comes from `.state(…)`, `&dyn Clock` from
//! `.shared_state(…)`, and `&User` from each prompt. If one is missing, `build()` fails before any model is asked.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::model::{reply, reply_with};
use agent::{Assistant, ScriptedModel, tool, tools};
use std::error::Error;
use std::sync::{Arc, Mutex};

/// State of the application: one value for all users.
struct Orders(Mutex<Vec<(&'static str, String)>>);

/// State of one prompt: the user who is logged in.
struct User(&'static str);

/// A trait whose object is shared state: tools take `&dyn Clock`.
trait Clock: Send + Sync {
    fn today(&self) -> String;
}

struct Fixed;

impl Clock for Fixed {
    fn today(&self) -> String {
        "2026-11-22".to_owned()
    }
}

/// Orders an article.
#[tool]
fn order(
    /// What it is called in the catalogue.
    article: String,
    user: &User,
    orders: &Orders,
    clock: &dyn Clock,
) -> Result<String, String> {
    let mut orders = orders.0.lock().map_err(|_| "the books are closed")?;
    orders.push((user.0, article));
    Ok(format!("order {} of {}, {}", orders.len(), user.0, clock.today()))
}

/// Lists the user's orders.
#[tool(read_only)]
fn my_orders(user: &User, orders: &Orders) -> Result<Vec<String>, String> {
    let orders = orders.0.lock().map_err(|_| "the books are closed")?;
    Ok(orders.iter().filter(|(of, _)| *of == user.0).map(|(_, article)| article.clone()).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The scripted model makes a call, then repeats the result as its answer.
    let said =
        || reply_with(|request| reply().text(request.messages.last().map_or_else(String::new, |m| m.text())));
    let model = ScriptedModel::new([
        reply().tool_call("order", r#"{"article": "teapot"}"#),
        said(),
        reply().tool_call("my_orders", "{}"),
        said(),
    ]);
    let assistant = Assistant::builder(model)
        .tools(tools![order, my_orders])
        .state(Orders(Mutex::new(vec![("Bo", "kettle".to_owned())])))
        .shared_state::<dyn Clock>(Arc::new(Fixed))
        .state_per_prompt::<User>()
        .build()?;

    let ordered = assistant.prompt("A teapot, please.").with_state(User("Ann")).await?;
    println!("Ann: {}", ordered.text());
    let listed = assistant.fork().prompt("What did I order?").with_state(User("Bo")).await?;
    println!("Bo: {}", listed.text());
    Ok(())
}

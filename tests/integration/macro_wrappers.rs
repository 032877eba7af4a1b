//! One form for a type of another crate in the whole program: a newtype that is an argument, a field and a result.

use agent::message::ToolCall;
use agent::{Registry, ToolArgs, ToolContext, ToolOutput, json, tool, tools};

mod bank {
    /// A type that knows neither serde nor schemars.
    #[derive(Clone, Copy)]
    pub(super) struct Cents(pub(super) i64);
}

use bank::Cents;

/// An amount of money, such as `12.50`.
#[derive(Clone, ToolArgs, ToolOutput)]
#[serde(try_from = "String", into = "String")]
struct Money(Cents);

impl TryFrom<String> for Money {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once('.').filter(|(_, cents)| cents.len() == 2);
        let cents = parts.and_then(|(whole, cents)| format!("{whole}{cents}").parse().ok());
        cents
            .map(|cents| Money(Cents(cents)))
            .ok_or_else(|| format!("`{text}` is not an amount such as `12.50`"))
    }
}

impl From<Money> for String {
    fn from(Money(Cents(cents)): Money) -> Self {
        format!("{}.{:02}", cents / 100, cents % 100)
    }
}

/// Adds up amounts.
#[tool(read_only)]
fn total(amounts: Vec<Money>) -> Money {
    Money(Cents(amounts.iter().map(|Money(Cents(cents))| cents).sum()))
}

/// An invoice.
#[derive(ToolArgs, ToolOutput)]
struct Invoice {
    /// For whom.
    to: String,
    /// How much.
    amount: Money,
}

/// Doubles an invoice.
#[tool(read_only)]
fn double(invoice: Invoice) -> Invoice {
    let Money(Cents(cents)) = invoice.amount;
    Invoice { amount: Money(Cents(cents * 2)), ..invoice }
}

#[tokio::test]
async fn a_newtype_has_one_form_wherever_it_occurs() {
    let registry = Registry::new(tools![total, double]).unwrap();
    let call = |tool: &str, args: &str| ToolCall::new("1", tool, args);
    let cx = ToolContext::new();
    let result = registry.call(&call("total", r#"{"amounts": ["12.50", "1.50"]}"#), &cx).await;
    assert_eq!(result.outcome.text(), "14.00");
    let result = registry.call(&call("double", r#"{"to": "Ann", "amount": "1.05"}"#), &cx).await;
    assert_eq!(result.outcome.output().unwrap().structured, Some(json!({"to": "Ann", "amount": "2.10"})));
    let definitions = registry.definitions();
    assert_eq!(definitions[0].parameters()["properties"]["amounts"]["items"]["type"], "string");
    assert_eq!(definitions[1].parameters()["properties"]["amount"]["type"], "string");
    let report =
        registry.validate(&call("total", r#"{"amounts": ["12.50", "12,5"]}"#)).unwrap_err().to_string();
    assert!(report.contains("/amounts/1: `12,5` is not an amount"), "{report}");
}

//! Keys, models and addresses from the environment, and what a program says once for all of its models.

use std::process::Command;

use agent::model::{Model as _, StepCx};
use agent::provider::http::HttpOptions;
use agent::provider::{Catalogue, ModelFacts, Prices};

use crate::provider_support::*;

/// Every provider, and what its variables begin with. Those of rasti-ai (openai, gemini, anthropic) and `RubyPi` (openai, openrouter,
/// groq, cerebras, xai) are the same.
const PROVIDERS: [(&str, &str); 20] = [
    ("anthropic", "ANTHROPIC"),
    ("openai", "OPENAI"),
    ("openai-responses", "OPENAI"),
    ("gemini", "GEMINI"),
    ("openrouter", "OPENROUTER"),
    ("groq", "GROQ"),
    ("cerebras", "CEREBRAS"),
    ("xai", "XAI"),
    ("deepseek", "DEEPSEEK"),
    ("mistral", "MISTRAL"),
    ("together", "TOGETHER"),
    ("fireworks", "FIREWORKS"),
    ("azure", "AZURE_OPENAI"),
    ("moonshot", "MOONSHOT"),
    ("zai", "ZAI"),
    ("alibaba", "DASHSCOPE"),
    ("ollama", "OLLAMA"),
    ("llamacpp", "LLAMACPP"),
    ("vllm", "VLLM"),
    ("lmstudio", "LMSTUDIO"),
];

#[test]
fn the_list_is_the_catalogue() {
    let catalogue = Catalogue::default();
    let names: Vec<_> = catalogue.providers().map(|provider| provider.name().to_owned()).collect();
    assert_eq!(names, PROVIDERS.map(|(name, _)| name));
}

/// A variable can only be set for another process.
#[tokio::test]
async fn keys_models_and_addresses_come_from_the_environment() {
    let server = Server::new([answer(401, &[], "{}")]).await;
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "provider_catalogue::in_a_process_with_variables", "--nocapture"]);
    process.env("AGENT_TEST_VARIABLES", "1");
    for (_, prefix) in PROVIDERS {
        process.env(format!("{prefix}_API_KEY"), format!("key-of-{prefix}"));
        process.env(format!("{prefix}_DEFAULT_MODEL"), format!("model-of-{prefix}"));
        process.env(format!("{prefix}_BASE_URL"), &server.url);
    }
    let output = tokio::task::spawn_blocking(move || process.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), PROVIDERS.len());
    for ((name, prefix), request) in PROVIDERS.iter().zip(requests) {
        for expected in [format!("key-of-{prefix}"), format!("model-of-{prefix}")] {
            assert!(request.contains(&expected), "{name}: no {expected} in {request}");
        }
        let line = request.lines().next().unwrap();
        assert!(!line.contains("key-of"), "{name}: the key is in the address: {line}");
    }
}

#[tokio::test]
async fn in_a_process_with_variables() {
    if std::env::var_os("AGENT_TEST_VARIABLES").is_none() {
        return;
    }
    for (name, prefix) in PROVIDERS {
        let model = agent::model(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((&*model.info().provider, &*model.info().model), (name, &*format!("model-of-{prefix}")));
        let error = model.call(&StepCx::new(), &hi()).await.unwrap_err();
        assert!(error.is_auth(), "{name}: {error:?}");
        assert!(!format!("{model:?} {error:?} {error}").contains("key-of"), "{name}");
    }
    // What is said in the program goes before the environment.
    let catalogue = Catalogue::default().with_key("openai", "mine");
    assert!(catalogue.model("openai/gpt-5").is_ok());
    let named = agent::model("openai/gpt-5").unwrap();
    assert_eq!(named.info().model, "gpt-5");
}

/// Said once, for every model of a program; and a handle that is passed on, no global.
#[tokio::test]
async fn one_value_configures_every_model() {
    let server = Server::new([answer(500, &[], "{}"), answer(200, &[], CHAT)]).await;
    let mut once = HttpOptions::default();
    once.max_retries = 0;
    let facts = ModelFacts::default().with_context_window(7);
    let catalogue = Catalogue::default()
        .with_options(once)
        .with_key("openai", "sk-1")
        .with_key("groq", "sk-2")
        .with_model("groq/own", facts.clone());
    let other = catalogue.clone();
    let model = catalogue.builder("openai/gpt-4o").base_url(format!("{}/v1", server.url)).build().unwrap();
    model.call(&StepCx::new(), &hi()).await.unwrap_err();
    let model = other.builder("groq/own").base_url(format!("{}/v1", server.url)).build().unwrap();
    assert_eq!(model.call(&StepCx::new(), &hi()).await.unwrap().text(), "Hello");
    let requests = server.requests();
    assert!(requests[0].contains("Bearer sk-1") && requests[1].contains("Bearer sk-2"));
    assert_eq!(requests.len(), 2, "what is configured once holds for each");
    assert_eq!(catalogue.facts("groq/own"), Some(facts));
    assert_eq!(Catalogue::default().facts("groq/own"), None, "nothing is global");
}

#[test]
fn what_a_reply_cost_is_known_where_the_price_is() {
    let facts = Catalogue::default().facts("anthropic/claude-opus-5-5").unwrap();
    let usage = agent::message::Usage::new(1_000_000, 100_000);
    let cost = facts.prices.unwrap().cost(&usage);
    assert_eq!((cost.input, cost.output, cost.total), (4.0, 2.0, 6.0));
    assert!(Catalogue::default().facts("anthropic/claude-unheard-of").is_none());
    let own = ModelFacts::default().with_prices(Prices::new(1.0, 1.0));
    let catalogue = Catalogue::default().with_model("anthropic/claude-opus-5-5", own);
    assert_eq!(catalogue.facts("anthropic/claude-opus-5-5").unwrap().prices, Some(Prices::new(1.0, 1.0)));
}

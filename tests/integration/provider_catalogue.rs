//! Keys, models and addresses from the environment, and what a program says once for all of its models.

use std::process::Command;

use agent::json;
use agent::model::{Model as _, StepCx, Thinking};
use agent::provider::http::{HttpModel, HttpOptions};
use agent::provider::openai::{OpenAiChat, OpenAiResponses};
use agent::provider::{Catalogue, ModelFacts, Prices, ProviderEntry};
use std::time::Duration;

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
    // So does the address of one model, which the other server never hears of.
    let elsewhere = Server::new([answer(200, &[], CHAT)]).await;
    let own = HttpModel::builder("openai/own").base_url(format!("{}/v1", elsewhere.url));
    let model = Catalogue::default().configure(own).model("openai/own").unwrap();
    assert_eq!(model.call(&StepCx::new(), &hi()).await.unwrap().text(), "Hello");
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

#[tokio::test]
async fn a_model_has_an_address_and_headers_of_its_own() {
    let shared = Server::new([answer(200, &[], CHAT)]).await;
    let own = Server::new([answer(200, &[], CHAT)]).await;
    let acme = ProviderEntry::new("acme", OpenAiChat::default())
        .with_base_url(format!("{}/v1", shared.url))
        .with_header("x-team", "of the provider")
        .with_header("x-region", "eu")
        .without_key();
    let large = HttpModel::builder("acme/large")
        .base_url(format!("{}/large/v1", own.url))
        .header("X-Team", "of the model")
        .header("x-size", "large");
    let catalogue = Catalogue::default().with_provider(acme).configure(large);
    for name in ["acme/small", "acme/large"] {
        catalogue.model(name).unwrap().call(&StepCx::new(), &hi()).await.unwrap();
    }
    let built = catalogue.builder("acme/large").header("x-team", "of the builder").build().unwrap();
    built.call(&StepCx::new(), &hi()).await.unwrap();

    let small = shared.requests().remove(0).to_lowercase();
    assert!(small.contains("x-team: of the provider") && !small.contains("x-size"), "{small}");
    let large: Vec<String> = own.requests().iter().map(|request| request.to_lowercase()).collect();
    assert!(large[0].starts_with("post /large/v1/chat/completions"), "{}", large[0]);
    for (request, team) in large.iter().zip(["of the model", "of the builder"]) {
        assert_eq!(request.matches("x-team").count(), 1, "{request}");
        for header in [&*format!("x-team: {team}"), "x-region: eu", "x-size: large"] {
            assert!(request.contains(header), "no {header} in {request}");
        }
    }
    // What is at another address than the provider's own may not keep to a schema.
    let gpt = || HttpModel::builder("openai/gpt-5");
    let openai = |model| Catalogue::default().with_key("openai", "k").configure(model);
    let native =
        |catalogue: Catalogue| catalogue.model("openai/gpt-5").unwrap().info().capabilities.native_output;
    assert!(native(openai(gpt())));
    assert!(!native(openai(gpt().base_url(&own.url))));
    // It may have a key and a protocol of its own, too.
    let other = Catalogue::default().configure(gpt().key("k").protocol(OpenAiResponses::default()));
    assert_eq!(other.model("openai/gpt-5").unwrap().info().api, "openai-responses");
}

#[tokio::test]
async fn secret_headers_of_a_model_are_never_shown() {
    let echo = r#"{"error": {"message": "no such token: s3cret-of-the-gateway"}}"#;
    let server = Server::new([answer(401, &[], echo)]).await;
    let own = HttpModel::builder("ollama/own")
        .base_url(format!("{}/v1?key=s3cret-of-the-address", server.url))
        .header("x-gateway-token", "s3cret-of-the-gateway");
    let shown = format!("{own:?}");
    let catalogue = Catalogue::default().configure(own);
    let model = catalogue.model("ollama/own").unwrap();
    let error = model.call(&StepCx::new(), &hi()).await.unwrap_err();
    assert!(error.is_auth(), "{error:?}");
    assert!(server.requests()[0].contains("s3cret-of-the-gateway"));
    let shown = format!("{shown} {catalogue:?} {model:?} {error:?} {error} {:?}", error.body());
    assert!(!shown.contains("s3cret"), "{shown}");
    let bad = HttpModel::builder("ollama/own").base_url("ftp://ann:s3cret@host/x?key=s3cret");
    let error = Catalogue::default().configure(bad).model("ollama/own").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
}

/// The limit of a reply is a limit where the application set it. What is known of a model is not.
#[tokio::test]
async fn the_configured_limits_of_a_model_hold() {
    let server = Server::new([answer(200, &[], CHAT)]).await;
    let model = |name: &str| HttpModel::builder(name).base_url(format!("{}/v1", server.url));
    let catalogue = Catalogue::default()
        .with_key("openai", "k")
        // In any order: facts stay where only the address is set.
        .with_model("ollama/limited", ModelFacts::default().with_max_output(100).with_context_window(2_000))
        .configure(model("ollama/limited"))
        .configure(model("ollama/unlimited"))
        .with_model("ollama/unlimited", ModelFacts::default())
        .configure(model("openai/gpt-4o"));
    assert_eq!(catalogue.facts("ollama/limited").unwrap().context_window, Some(2_000));
    assert!(catalogue.facts("openai/gpt-4o").unwrap().max_output.is_some(), "an address changes no facts");
    for (name, asked) in [
        ("ollama/limited", None),
        ("ollama/limited", Some(5_000)),
        ("ollama/limited", Some(50)),
        ("ollama/unlimited", Some(5_000)),
        ("openai/gpt-4o", None),
    ] {
        let mut request = hi();
        request.max_tokens = asked;
        catalogue.model(name).unwrap().call(&StepCx::new(), &request).await.unwrap();
    }
    let sent = |request: &String| {
        let body: agent::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        body.get("max_tokens").or_else(|| body.get("max_completion_tokens")).cloned()
    };
    let sent: Vec<_> = server.requests().iter().map(sent).collect();
    assert_eq!(sent, [Some(json!(100)), Some(json!(100)), Some(json!(50)), Some(json!(5_000)), None]);

    // A budget that does not fit is an error before the request, as where the request itself sets the limit.
    let facts = ModelFacts::default().with_max_output(2_000);
    let catalogue =
        Catalogue::default().with_key("anthropic", "k").with_model("anthropic/claude-sonnet-4-5", facts);
    let request = hi().with_thinking(Thinking::Budget(4_000));
    let model = catalogue.model("anthropic/claude-sonnet-4-5").unwrap();
    let error = model.call(&StepCx::new(), &request).await.unwrap_err();
    assert!(error.to_string().contains("does not fit into max_tokens 2000"), "{error}");
}

#[tokio::test]
async fn a_model_has_timeouts_and_retries_of_its_own() {
    let server = Server::new([answer(500, &[], "{}")]).await;
    let mut hasty = HttpOptions::default().with_max_retries(2);
    hasty.first_delay = Duration::from_millis(1);
    let model = |name: &str| HttpModel::builder(name).base_url(format!("{}/v1", server.url));
    let catalogue = Catalogue::default()
        .with_options(hasty)
        .configure(model("ollama/small"))
        .configure(model("ollama/large").options(HttpOptions::default().with_max_retries(0)));
    for (name, requests) in [("ollama/large", 1), ("ollama/small", 4)] {
        catalogue.model(name).unwrap().call(&StepCx::new(), &hi()).await.unwrap_err();
        assert_eq!(server.requests().len(), requests, "{name}");
    }
    // The same through the builder that is given the catalogue; what the builder sets itself counts more.
    for (options, requests) in [(None, 7), (Some(HttpOptions::default().with_max_retries(0)), 8)] {
        let builder = HttpModel::builder("ollama/small").catalogue(catalogue.clone());
        let builder = match options {
            Some(options) => builder.options(options),
            None => builder,
        };
        builder.build().unwrap().call(&StepCx::new(), &hi()).await.unwrap_err();
        assert_eq!(server.requests().len(), requests);
    }
}

//! Real servers on this machine, if there are some: `.ci/peers` starts them and says where they are.
//!
//! Their defects are known: a reply that the length limit cut may end as if it were whole, a server writes more calls than it was
//! asked for, a proxy leaves usage and the reason for the end out. What is checked is what holds all the same.

use std::sync::Arc;

use agent::message::{Message, StopReason, ToolResultMessage};
use agent::model::{Model as _, ModelRequest, StepCx, ToolChoice};
use agent::provider::gemini::Gemini;
use agent::provider::http::{ApiKey, HttpModel, HttpModelBuilder};
use agent::provider::openai::OpenAiResponses;
use agent::run::Limit;
use agent::{Assistant, Registry, RunError, ToolContext, json, tool, tools};

/// Adds two numbers.
#[tool]
fn add(a: i32, b: i32) -> i64 {
    i64::from(a) + i64::from(b)
}

/// A call is forced, streamed, run and answered.
async fn loops(name: &str, model: HttpModelBuilder) {
    let model = model.build().unwrap();
    let registry = Registry::new(tools![add]).unwrap();
    let first = ModelRequest::new([Message::user("What is 2 plus 3?")])
        .with_system("You use the functions you have.")
        .with_tools(registry.definitions())
        .with_tool_choice(ToolChoice::Required)
        .with_parallel_tool_calls(false)
        .with_max_tokens(200);
    let mut stream = model.stream(&StepCx::new(), &first);
    let mut pieces = 0;
    while let Some(event) = stream.next().await {
        pieces += usize::from(event.unwrap_or_else(|error| panic!("{name}: {error:?}")).delta().is_some());
    }
    let reply = stream.reply().await.unwrap();
    let call = reply.tool_calls().next().unwrap_or_else(|| panic!("{name}: no call in {reply:?}")).clone();
    assert_eq!(call.name, "add", "{name}");
    assert!(pieces > 0, "{name}: the arguments came as a whole");
    let result = registry.call(&call, &ToolContext::new()).await;
    assert!(
        result.outcome.kind().is_some_and(|kind| !kind.is_error()),
        "{name}: {} for {}",
        result.outcome.text(),
        call.args.text()
    );

    // One call of it is answered: some servers write more of them than they were asked for.
    let mut asked = reply.clone();
    let mut is_first = true;
    asked.content.retain(|part| part.as_tool_call().is_none() || std::mem::take(&mut is_first));
    let answered = ToolResultMessage::new(call.id.as_str(), "add", agent::message::OutcomeKind::Completed)
        .with_content(result.outcome.text().into_owned());
    let second = ModelRequest::new([Message::user("What is 2 plus 3?"), asked.into(), answered.into()])
        .with_max_tokens(60);
    // So small a model sometimes has nothing to say.
    let mut attempt = 1;
    let answer = loop {
        let answer = model.call(&StepCx::new(), &second).await;
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        if !answer.text().is_empty() {
            break answer;
        }
        attempt += 1;
        assert!(attempt <= 5, "{name}: {answer:?}");
    };
    assert!(answer.usage.output > 0 || name.contains("gemini"), "{name}: no usage");
    println!("{name}: `{}` with {}, then {} characters", call.name, call.args.text(), answer.text().len());
}

/// The same agent for every peer: told to call, it calls, the tool runs, and it answers from the result.
///
/// A server that does not know how to ask for one call writes calls until the limit cuts it; then none of them may run, and it is
/// asked again. If it writes the same call until the limit of repeated calls ends the run, it is asked again too.
async fn agent_runs(name: &str, model: impl Fn() -> HttpModelBuilder) {
    for attempt in 1..=5 {
        if agent_ran(name, model()).await {
            println!("{name}: an agent ran, at attempt {attempt}");
            return;
        }
    }
    panic!("{name}: each reply was cut or repeated one call");
}

async fn agent_ran(name: &str, model: HttpModelBuilder) -> bool {
    let assistant = Assistant::builder(model.build().unwrap())
        .system("You use the functions you have.")
        .tools(tools![add])
        .request(|request| request.with_parallel_tool_calls(false))
        .before_request(|mut request, _| async move {
            let is_asked =
                matches!(request.messages.last().map(|message| &**message), Some(Message::User(_)));
            (request.tool_choice, request.max_tokens) =
                if is_asked { (ToolChoice::Required, Some(200)) } else { (ToolChoice::Auto, Some(60)) };
            if !is_asked {
                request.tools = Arc::default();
            }
            Ok(request)
        })
        .max_turns(4)
        .build()
        .unwrap();
    let output = assistant.prompt("What is 2 plus 3?").await;
    let messages = assistant.messages();
    if matches!(&output, Err(RunError::Limit(reached)) if reached.limit == Limit::RepeatedCalls) {
        return false;
    }
    let output = output.unwrap_or_else(|error| panic!("{name}: {error:?}, {messages:#?}"));
    assert!(!output.text().is_empty(), "{name}: no answer: {messages:#?}");
    let reply = messages.get(1).and_then(|message| message.as_assistant()).unwrap().clone();
    let results: Vec<_> = messages.iter().filter_map(|message| message.as_tool_result().cloned()).collect();
    let ids: Vec<_> = results.iter().map(|result| result.call_id.clone()).collect();
    assert_eq!(
        reply.tool_calls().map(|call| call.id.clone()).collect::<Vec<_>>(),
        ids,
        "{name}: {messages:#?}"
    );
    assert!(!ids.is_empty(), "{name}: no call: {messages:#?}");
    if reply.stop_reason == StopReason::MaxTokens {
        assert!(
            results.iter().all(|result| result.code.as_deref() == Some("truncated")),
            "{name}: {messages:#?}"
        );
        return false;
    }
    let sum = |result: &ToolResultMessage| !result.is_error && result.text().parse::<i64>().is_ok();
    assert!(results.iter().any(sum), "{name}: no call ran well: {messages:#?}");
    true
}

async fn both(name: &str, model: impl Fn() -> HttpModelBuilder) {
    loops(name, model()).await;
    agent_runs(name, model).await;
}

fn peer(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names no server; `.ci/peers` starts them"))
}

#[tokio::test]
#[ignore = "peers: needs servers, which `.ci/peers` starts"]
async fn a_llama_server_calls_a_tool_by_every_protocol_it_speaks() {
    let url = peer("AGENT_PEER_LLAMA");
    both("chat", || HttpModel::builder("llamacpp/local").base_url(format!("{url}/v1"))).await;
    let responses = || HttpModel::builder("openai-responses/local").protocol(OpenAiResponses::default());
    both("responses", || responses().base_url(format!("{url}/v1")).key(ApiKey::none())).await;
    both("messages", || HttpModel::builder("anthropic/local").base_url(&url).key(ApiKey::none())).await;
}

/// The models of the proxy by all four protocols. It leaves `finishReason` out.
fn proxied(model: &str, url: &str, key: &str) -> [(&'static str, HttpModelBuilder); 4] {
    let builder = |provider: &str| HttpModel::builder(format!("{provider}/{model}")).key(key);
    [
        ("chat by the proxy", builder("openai").base_url(format!("{url}/v1"))),
        ("responses by the proxy", builder("openai-responses").base_url(format!("{url}/v1"))),
        ("messages by the proxy", builder("anthropic").base_url(url)),
        (
            "gemini by the proxy",
            builder("gemini").protocol(Gemini::default().with_lenient_end()).base_url(url),
        ),
    ]
}

#[tokio::test]
#[ignore = "peers: needs servers, which `.ci/peers` starts"]
async fn a_proxy_answers_by_every_protocol() {
    let url = peer("AGENT_PEER_PROXY");
    let key = std::env::var("AGENT_PEER_PROXY_KEY").unwrap();
    for (name, model) in proxied("mock", &url, &key) {
        let mut request = ModelRequest::new([Message::user("Hi")]).with_max_tokens(50);
        if name.starts_with("responses") {
            // Its Responses cannot stream a fixed answer.
            request = request.with_provider_options("openai-responses", json!({"stream": false}));
        }
        let answer = model.build().unwrap().call(&StepCx::new(), &request).await;
        let answer = answer.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(answer.text(), "A fixed answer.", "{name}");
        println!("{name}: a fixed answer");
    }
}

#[tokio::test]
#[ignore = "peers: needs servers, which `.ci/peers` starts"]
async fn a_proxy_calls_a_tool_by_every_protocol() {
    peer("AGENT_PEER_LLAMA");
    let url = peer("AGENT_PEER_PROXY");
    let key = std::env::var("AGENT_PEER_PROXY_KEY").unwrap();
    for at in 0..4 {
        let name = proxied("local", &url, &key)[at].0;
        both(name, || proxied("local", &url, &key).into_iter().nth(at).unwrap().1).await;
    }
}

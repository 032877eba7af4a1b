//! Real servers on this machine, if there are some: `.ci/peers` starts them and says where they are.

use agent::message::{Message, ToolResultMessage};
use agent::model::{Model as _, ModelRequest, StepCx, ToolChoice};
use agent::provider::gemini::Gemini;
use agent::provider::http::{ApiKey, HttpModel, HttpModelBuilder};
use agent::provider::openai::OpenAiResponses;
use agent::{Registry, ToolContext, tool, tools};

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
    let answer =
        model.call(&StepCx::new(), &second).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    assert!(!answer.text().is_empty(), "{name}: {answer:?}");
    assert!(answer.usage.output > 0 || name == "gemini", "{name}: no usage");
    println!("{name}: `{}` with {}, then {} characters", call.name, call.args.text(), answer.text().len());
}

fn peer(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        println!("skipped: {variable} names no server (`AGENT_E2E=1 .ci/peers` starts them)");
    }
    url
}

#[tokio::test]
async fn a_llama_server_calls_a_tool_by_every_protocol_it_speaks() {
    let Some(url) = peer("AGENT_PEER_LLAMA") else { return };
    let chat = HttpModel::builder("llamacpp/local").base_url(format!("{url}/v1"));
    loops("chat", chat).await;
    let responses = HttpModel::builder("openai-responses/local").protocol(OpenAiResponses::default());
    loops("responses", responses.base_url(format!("{url}/v1")).key(ApiKey::none())).await;
    let messages = HttpModel::builder("anthropic/local").base_url(&url).key(ApiKey::none());
    loops("messages", messages).await;
}

#[tokio::test]
async fn a_proxy_answers_by_every_protocol() {
    let Some(url) = peer("AGENT_PEER_PROXY") else { return };
    let key = std::env::var("AGENT_PEER_PROXY_KEY").unwrap();
    for model in [
        HttpModel::builder("openai/mock").base_url(format!("{url}/v1")),
        HttpModel::builder("openai-responses/mock").base_url(format!("{url}/v1")),
        HttpModel::builder("anthropic/mock").base_url(&url),
        HttpModel::builder("gemini/mock").protocol(Gemini::default().with_lenient_end()).base_url(&url),
    ] {
        let model = model.key(key.as_str()).build().unwrap();
        let request = ModelRequest::new([Message::user("Hi")]).with_max_tokens(50);
        let answer = model.call(&StepCx::new(), &request).await;
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error:?}", model.info().api));
        assert_eq!(answer.text(), "A fixed answer.", "{}", model.info().api);
    }
}

#[tokio::test]
async fn a_proxy_calls_a_tool_by_gemini() {
    if peer("AGENT_PEER_LLAMA").is_none() {
        return;
    }
    let Some(url) = peer("AGENT_PEER_PROXY") else { return };
    let key = std::env::var("AGENT_PEER_PROXY_KEY").unwrap();
    // The proxy leaves `finishReason` out.
    let gemini = HttpModel::builder("gemini/gemini-local").protocol(Gemini::default().with_lenient_end());
    loops("gemini", gemini.base_url(&url).key(key)).await;
}

//! Tools that providers run: their requests, their refusals and their results.

use serde_json::{Value, json};

use super::support::{body, reply};
use crate::message::ResourceLink;
use crate::model::{ManagedResult, ManagedTool, ModelInfo, ModelRequest};
use crate::provider::{Protocol, managed_results};

fn all() -> [ManagedTool; 4] {
    [
        ManagedTool::web_search(),
        ManagedTool::web_fetch(),
        ManagedTool::CodeExecution,
        ManagedTool::ImageGeneration,
    ]
}

/// Encodes a request for each managed tool, and checks that `without_rendering` does not change the request.
fn sent(protocol: &dyn Protocol, provider: &str, model: &str) -> [Result<Value, String>; 4] {
    let info = ModelInfo::new(provider, protocol.api(), model);
    all().map(|tool| {
        let encode = |tool: ManagedTool| {
            let request = ModelRequest::default().with_managed_tools([tool]);
            let encoded = protocol.encode(&info, &request).map_err(|error| error.message().to_owned());
            encoded.map(|request| request.json())
        };
        let sent = encode(tool.clone());
        let unrendered = tool.clone().without_rendering();
        assert_eq!(unrendered.name(), tool.name());
        assert_eq!(info.runs(&unrendered), info.runs(&tool));
        assert_eq!(encode(unrendered), sent, "what user interfaces show is not the provider's business");
        sent
    })
}

fn known(protocol: &dyn Protocol, model: &str) -> [bool; 4] {
    let info = ModelInfo::new("test", protocol.api(), model).with_capabilities(protocol.capabilities(model));
    all().map(|tool| info.runs(&tool))
}

fn page(url: &str, title: &str) -> ResourceLink {
    let mut page = ResourceLink::new(url);
    page.title = Some(title.to_owned());
    page
}

fn search(queries: &[&str], sources: &[(&str, &str)]) -> ManagedResult {
    let sources = sources.iter().map(|(url, title)| page(url, title)).collect();
    let queries = queries.iter().map(|&query| query.to_owned()).collect();
    ManagedResult::WebSearch { queries, sources, error: None }
}

fn image(result: &ManagedResult) -> Option<(&str, &[u8])> {
    let ManagedResult::ImageGeneration { image: Some(image), .. } = result else {
        return None;
    };
    let crate::message::MediaSource::Data(bytes) = &image.source else { return None };
    Some((image.mime_type.as_deref()?, bytes))
}

#[cfg(feature = "anthropic")]
#[test]
fn anthropic() {
    let api = crate::provider::anthropic::AnthropicMessages::default();
    let [search_tool, fetch, code, picture] = sent(&api, "anthropic", "claude-opus-5");
    let kind = |body: Result<Value, String>| body.unwrap()["tools"][0]["type"].clone();
    assert_eq!(kind(search_tool), "web_search_20250305");
    assert_eq!(kind(fetch), "web_fetch_20250910");
    assert_eq!(kind(code), "code_execution_20250825");
    assert_eq!(
        picture.unwrap_err(),
        "`anthropic` cannot run image generation: the protocol it is asked by has no such tool"
    );
    assert_eq!(known(&api, "claude-opus-5"), [true, true, true, false]);
    assert_eq!(known(&api, "claude-3-5-haiku-latest"), [false; 4]);
    assert_eq!(known(&api, "some-model"), [false; 4]);

    let answer = json!({"type": "message", "stop_reason": "end_turn", "content": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "rust"}},
        {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {"url": "https://b.example"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
            {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "x", "page_age": null}]},
        {"type": "web_fetch_tool_result", "tool_use_id": "s2", "content": {"type": "web_fetch_result", "url": "https://b.example",
            "content": {"type": "document", "title": "B", "source": {"type": "text", "media_type": "text/plain", "data": "Hello"}}}},
        {"type": "server_tool_use", "id": "s3", "name": "bash_code_execution", "input": {"command": "ls"}},
        {"type": "bash_code_execution_tool_result", "tool_use_id": "s3", "content": {"type": "bash_code_execution_result",
            "stdout": "a.png\n", "stderr": "!", "return_code": 1, "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}]}},
        {"type": "server_tool_use", "id": "s4", "name": "web_search", "input": {"query": "more"}},
        {"type": "web_search_tool_result", "tool_use_id": "s4", "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
        {"type": "server_tool_use", "id": "s5", "name": "code_execution", "input": {"code": "1"}}]});
    let results = managed_results(&reply(&api, &answer.to_string()));
    let [first, page, ran, failed, open] = &results[..] else { panic!("{results:?}") };
    assert_eq!(*first, search(&["rust"], &[("https://a.example", "A")]));
    let some = |text: &str| Some(text.to_owned());
    let (url, title, text) = (some("https://b.example"), some("B"), some("Hello"));
    assert_eq!(*page, ManagedResult::WebFetch { url, title, text, error: None });
    let code = |code: &str, stdout: &str, stderr: &str, exit_code, files| ManagedResult::CodeExecution {
        code: some(code),
        stdout: stdout.into(),
        stderr: stderr.into(),
        exit_code,
        files,
        error: None,
    };
    assert_eq!(*ran, code("ls", "a.png\n", "!", Some(1), vec![crate::message::Media::file_id("file_1")]));
    let ManagedResult::WebSearch { error, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(error.as_deref(), Some("max_uses_exceeded"));
    // The reply has no result for the call `s5`.
    assert_eq!(*open, code("1", "", "", None, Vec::new()));
}

#[cfg(feature = "openai")]
#[test]
fn openai_responses() {
    let api = crate::provider::openai::OpenAiResponses::default();
    let [search_tool, fetch, code, picture] = sent(&api, "openai", "gpt-5.2");
    let kind = |body: Result<Value, String>| body.unwrap()["tools"][0]["type"].clone();
    assert_eq!(kind(search_tool), "web_search");
    assert!(fetch.unwrap_err().starts_with("`openai` cannot run web fetch"));
    assert_eq!(kind(code), "code_interpreter");
    assert_eq!(kind(picture), "image_generation");
    assert_eq!(known(&api, "gpt-5.2"), [true, false, true, true]);
    assert_eq!(known(&api, "gpt-4"), [false; 4]);
    assert_eq!(known(&api, "gpt-oss-120b"), [false; 4]);

    let cites = json!([{"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2},
        {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 3, "end_index": 5},
        {"type": "url_citation", "url": "https://b.example", "title": "B", "start_index": 6, "end_index": 7}]);
    let answer = json!({"status": "completed", "output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust",
            "sources": [{"type": "url", "url": "https://c.example"}]}},
        {"type": "web_search_call", "id": "ws_2", "status": "completed", "action": {"type": "open_page", "url": "https://a.example"}},
        {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "print(1)", "container_id": "c",
            "outputs": [{"type": "logs", "logs": "1\n"}, {"type": "image", "url": "https://d.example/plot.png"}]},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "webp",
            "revised_prompt": "A cat.", "result": "Y2F0"},
        {"type": "image_generation_call", "id": "ig_2", "status": "failed", "result": null},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "A and B.", "annotations": cites}]}]});
    let results = managed_results(&reply(&api, &answer.to_string()));
    let [found, opened, ran, drawn, failed] = &results[..] else { panic!("{results:?}") };
    let mut expected = search(
        &["rust"],
        &[("https://c.example", ""), ("https://a.example", "A"), ("https://b.example", "B")],
    );
    if let ManagedResult::WebSearch { sources, .. } = &mut expected {
        sources[0].title = None;
    }
    assert_eq!(*found, expected);
    assert!(matches!(opened, ManagedResult::WebFetch { url: Some(url), .. } if url == "https://a.example"));
    let ManagedResult::CodeExecution { code, stdout, files, .. } = ran else { panic!("{ran:?}") };
    assert_eq!((code.as_deref(), &**stdout, files.len()), (Some("print(1)"), "1\n", 1));
    assert_eq!(image(drawn), Some(("image/webp", &b"cat"[..])));
    let ManagedResult::ImageGeneration { image: None, error, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(error.as_deref(), Some("failed"));
}

#[cfg(feature = "openai")]
#[test]
fn chat_completions() {
    use crate::provider::openai::{Compat, OpenAiChat};

    let api = OpenAiChat::default();
    let web = ModelRequest::default().with_managed_tools([ManagedTool::web_search()]);
    assert_eq!(body(&api, "gpt-4o-search-preview", &web)["web_search_options"], json!({}));
    let [search_tool, fetch, code, picture] = sent(&api, "openai", "gpt-5.2");
    assert!(search_tool.unwrap_err().contains("`openai-responses/gpt-5.2`"));
    for (error, name) in [(fetch, "web fetch"), (code, "code execution"), (picture, "image generation")] {
        assert!(error.unwrap_err().starts_with(&format!("`openai` cannot run {name}")));
    }
    assert_eq!(known(&api, "gpt-4o-search-preview"), [true, false, false, false]);
    assert_eq!(known(&api, "gpt-5.2"), [false; 4]);
    // Servers with a web search have different fields for it. For other servers, the request is refused.
    for (field, value) in [("plugins", json!([{"id": "web"}])), ("enable_search", json!(true))] {
        let api = OpenAiChat::default().with_compat(Compat::plain().with_web_search(field));
        assert_eq!(body(&api, "m", &web)[field], value);
        assert_eq!(known(&api, "m"), [true, false, false, false]);
    }
    let plain = OpenAiChat::default().with_compat(Compat::plain());
    let [refused, ..] = sent(&plain, "groq", "m");
    assert_eq!(
        refused.unwrap_err(),
        "`groq` cannot run web search: the protocol it is asked by has no such tool"
    );
    let narrow = ManagedTool::web_search().allowed_domains(["a.example"]);
    let narrow = ModelRequest::default().with_managed_tools([narrow]);
    let info = ModelInfo::new("openai", api.api(), "gpt-4o-search-preview");
    assert!(api.encode(&info, &narrow).unwrap_err().message().contains("which pages"));

    let answer = json!({"choices": [{"message": {"content": "A.",
        "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}],
        "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,Y2F0"}}]}, "finish_reason": "stop"}]});
    let results = managed_results(&reply(&api, &answer.to_string()));
    let [cited, drawn] = &results[..] else { panic!("{results:?}") };
    assert_eq!(*cited, search(&[], &[("https://a.example", "A")]));
    assert_eq!(image(drawn), Some(("image/png", &b"cat"[..])));
}

#[cfg(feature = "gemini")]
#[test]
fn gemini() {
    let api = crate::provider::gemini::Gemini::default();
    let [search_tool, fetch, code, picture] = sent(&api, "gemini", "gemini-3-flash-preview");
    for (body, key) in [(search_tool, "googleSearch"), (fetch, "urlContext"), (code, "codeExecution")] {
        assert!(body.unwrap()["tools"][0][key].is_object(), "{key}");
    }
    assert!(picture.unwrap_err().starts_with("`gemini` cannot run image generation"));
    let [.., picture] = sent(&api, "gemini", "gemini-2.5-flash-image");
    let picture = picture.unwrap();
    assert_eq!(picture["generationConfig"]["responseModalities"], json!(["TEXT", "IMAGE"]));
    assert!(picture.get("tools").is_none());
    assert_eq!(known(&api, "gemini-3.8-flash"), [true, true, true, false]);
    // Gemini 2.5 does not support tools of the provider together with functions.
    assert_eq!(known(&api, "gemini-2.5-pro"), [false; 4]);
    assert_eq!(known(&api, "gemini-3-pro-image-preview"), [false, false, false, true]);

    let answer = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
            {"executableCode": {"language": "PYTHON", "code": "1/0", "id": "x"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError", "id": "x"}},
            {"text": "One."}, {"inlineData": {"mimeType": "image/png", "data": "Y2F0"}}]},
        "groundingMetadata": {"webSearchQueries": ["rust"], "groundingChunks": [
            {"web": {"uri": "https://r.example/1", "title": "a.example"}}, {"retrievedContext": {"text": "no page"}}]},
        "urlContextMetadata": {"urlMetadata": [
            {"retrievedUrl": "https://b.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"},
            {"retrievedUrl": "https://c.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_ERROR"}]}}]});
    let results = managed_results(&reply(&api, &answer.to_string()));
    let [ran, failed, found, read, unread, drawn] = &results[..] else { panic!("{results:?}") };
    let code = |result: &ManagedResult| match result {
        ManagedResult::CodeExecution { code, stdout, error, .. } => {
            (code.clone().unwrap(), stdout.clone(), error.clone())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(code(ran), ("print(1)".into(), "1\n".into(), None));
    assert_eq!(code(failed), ("1/0".into(), "ZeroDivisionError".into(), Some("OUTCOME_FAILED".into())));
    assert_eq!(*found, search(&["rust"], &[("https://r.example/1", "a.example")]));
    assert!(matches!(read, ManagedResult::WebFetch { error: None, .. }));
    assert!(
        matches!(unread, ManagedResult::WebFetch { error: Some(error), .. } if error == "URL_RETRIEVAL_STATUS_ERROR")
    );
    assert_eq!(image(drawn), Some(("image/png", &b"cat"[..])));
    // From Gemini 3 on, a search is also reported as parts.
    let answer = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["rust"]}, "id": "1"}, "thoughtSignature": "c2ln"},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "1"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["serde"]}, "id": "2"}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "2"}}, {"text": "Hi."}]}}]});
    assert_eq!(managed_results(&reply(&api, &answer.to_string())), [search(&["rust", "serde"], &[])]);
}

#[cfg(feature = "anthropic")]
#[test]
fn a_count_without_managed_tools_forces_none_of_them() {
    let api = crate::provider::anthropic::AnthropicMessages::default();
    let model = ModelInfo::new("anthropic", api.api(), "claude-sonnet-4-5");
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let request = ModelRequest::default()
        .with_tools([super::support::tool("add", &schema)])
        .with_managed_tools([ManagedTool::web_search()])
        .with_tool_choice(crate::model::ToolChoice::Tool("web_search".into()));
    let (http, _) = api.encode_count(&model, &request).unwrap().unwrap();
    assert_eq!(http.json()["tool_choice"], json!({"type": "any"}));
}

#[cfg(all(feature = "openai", feature = "anthropic"))]
#[test]
fn a_stored_reply_tells_the_same() {
    let api = crate::provider::openai::OpenAiResponses::default();
    let answer = json!({"status": "completed", "output": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust"}}]});
    let reply = reply(&api, &answer.to_string());
    let stored = serde_json::to_string(&crate::message::Message::from(reply)).unwrap();
    let loaded: crate::message::Message = serde_json::from_str(&stored).unwrap();
    assert_eq!(managed_results(loaded.as_assistant().unwrap()), [search(&["rust"], &[])]);
    let foreign = crate::message::AssistantMessage::from("Hi.");
    assert!(managed_results(&foreign).is_empty());
}

//! Edge cases of what providers accept, tested with every protocol.

use serde_json::{Value, json};

use super::support::{body, read};
use crate::args::{Plan, PlanOptions};
use crate::message::{
    AssistantMessage, Content, Conversation, HandOff, Media, Message, OutcomeKind, Part, Recipient, Resource,
    ToolResultMessage,
};
use crate::model::{ModelError, ModelErrorKind, ModelInfo, ModelRequest, OutputSchema, Thinking};
use crate::provider::Protocol;
use crate::provider::parts::OPENING;
use crate::tool::definition::ToolDefinition;

pub(super) fn protocols() -> Vec<Box<dyn Protocol>> {
    vec![
        #[cfg(feature = "openai")]
        Box::new(crate::provider::openai::OpenAiChat::default()),
        #[cfg(feature = "openai")]
        Box::new(crate::provider::openai::OpenAiResponses::default()),
        #[cfg(feature = "anthropic")]
        Box::new(crate::provider::anthropic::AnthropicMessages::default()),
        #[cfg(feature = "gemini")]
        Box::new(crate::provider::gemini::Gemini::default()),
    ]
}

fn messages<'b>(api: &dyn Protocol, body: &'b Value) -> &'b Vec<Value> {
    let key = match api.api() {
        "openai-responses" => "input",
        "gemini-generate-content" => "contents",
        _ => "messages",
    };
    body[key].as_array().unwrap()
}

fn refused(api: &dyn Protocol, model: &str, request: &ModelRequest) -> ModelError {
    let error = api.encode(&ModelInfo::new("test", api.api(), model), request).unwrap_err();
    assert_eq!(error.kind(), ModelErrorKind::InvalidRequest, "{error}");
    error
}

fn result(id: &str, content: impl IntoIterator<Item = Part>) -> ToolResultMessage {
    ToolResultMessage::new(id, "look", OutcomeKind::Completed)
        .with_content(content.into_iter().collect::<Vec<_>>())
}

fn failed(content: Vec<Part>) -> ToolResultMessage {
    ToolResultMessage::new("c1", "look", OutcomeKind::Failed).with_content(content)
}

fn long() -> Vec<Message> {
    let calls = |ids: [&str; 2], said: &str| {
        let calls = ids.map(|id| Part::tool_call(id, "look", "{}"));
        Message::assistant([Part::text(said), calls[0].clone(), calls[1].clone()])
    };
    vec![
        Message::user("first"),
        calls(["a1", "a2"], "I look."),
        result("a1", [Part::text("one")]).into(),
        result("a2", [Part::text("two")]).into(),
        Message::assistant("It is there."),
        Message::user("again"),
        calls(["b1", "b2"], "I look again."),
        result("b1", [Part::text("three")]).into(),
        result("b2", [Part::text("four")]).into(),
        Message::assistant("Still there."),
        Message::user("thanks"),
    ]
}

#[test]
fn every_window_of_a_conversation_begins_as_the_protocol_requires() {
    for api in protocols() {
        for from in 0..long().len() {
            let mut window = Conversation::from_iter(long().split_off(from));
            window.repair();
            let recipient = Recipient::new("test", api.api(), "model-1");
            let handed = HandOff::of(&window, recipient);
            let request = ModelRequest { messages: handed.messages().clone(), ..ModelRequest::default() };
            let body = body(&*api, "model-1", &request);
            let sent = messages(&*api, &body);
            let begins_with_assistant = handed.messages()[0].role() == "assistant";
            let needs_user = ["anthropic-messages", "gemini-generate-content"].contains(&api.api());
            let first = sent[0].to_string();
            if needs_user {
                assert_eq!(sent[0]["role"], "user", "{} from {from}: {body}", api.api());
                assert_eq!(first.contains(OPENING), begins_with_assistant, "{} from {from}", api.api());
            } else {
                assert!(!body.to_string().contains(OPENING), "{} takes any beginning", api.api());
            }
            // A result is in the request body exactly if its call is.
            let text = body.to_string();
            for (call, answers) in [("I look.", ["one", "two"]), ("I look again.", ["three", "four"])] {
                let is_there = text.contains(call);
                for answer in answers {
                    assert_eq!(
                        text.contains(&format!("\"{answer}\"")),
                        is_there,
                        "{} from {from}: {text}",
                        api.api()
                    );
                }
            }
        }
    }
}

#[test]
fn a_failed_result_is_marked_whatever_parts_it_has() {
    let image = || Part::image(b"png", "image/png");
    let resource = || Part::new(Content::Resource(Resource::text("file:///a", "{\"a\": 1}")));
    for content in [
        vec![],
        vec![Part::text("no")],
        vec![Part::text("no"), Part::text("really")],
        vec![image()],
        vec![Part::text("no"), image()],
        vec![resource()],
        vec![resource(), resource(), image()],
        vec![Part::document(b"%PDF", "application/pdf")],
    ] {
        let call = Message::assistant([Part::tool_call("c1", "look", "{}")]);
        let has_image = content.iter().any(|part| matches!(part.content, Content::Image(_)));
        let has_file = content.iter().any(|part| matches!(part.content, Content::Document(_)));
        let request =
            ModelRequest::new([Message::user("Look."), call, failed(content).into(), Message::user("And?")]);
        for api in protocols() {
            let body = body(&*api, "model-1", &request);
            let text = body.to_string();
            assert!(!has_image || text.contains("cG5n"), "{}: the image is lost in {text}", api.api());
            assert!(!has_file || text.contains("JVBERg"), "{}: the file is lost in {text}", api.api());
            let sent = messages(&*api, &body);
            match api.api() {
                "openai-chat" => {
                    assert_eq!(sent[2]["role"], "tool");
                    let said = sent[2]["content"].as_str().unwrap();
                    assert!(said.starts_with("Error: ") && said.len() > 7, "{said}");
                }
                "openai-responses" => {
                    let output = &sent[2]["output"];
                    let first = output.as_str().or_else(|| output[0]["text"].as_str()).unwrap();
                    assert!(first.starts_with("Error:"), "{output}");
                }
                "anthropic-messages" => {
                    let blocks = sent[2]["content"].as_array().unwrap();
                    assert_eq!(blocks[0]["is_error"], true);
                    // Anthropic accepts only text in failed results. Media follow all results, before the user's text.
                    let inner = blocks[0]["content"].as_array().cloned().unwrap_or_default();
                    assert!(inner.iter().all(|block| block["type"] == "text"), "{blocks:?}");
                    let kinds: Vec<&str> =
                        blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
                    if has_image || has_file {
                        assert_eq!(kinds[1], "text", "{kinds:?}");
                        assert_eq!(blocks[1]["text"], "What `look` (call c1) shows:");
                        assert_eq!(kinds.last(), Some(&"text"));
                    }
                }
                _ => assert!(
                    sent[2]["parts"][0]["functionResponse"]["response"].get("error").is_some(),
                    "{body}"
                ),
            }
        }
    }
}

fn sent(api: &dyn Protocol, part: &Part) -> Result<Value, ModelError> {
    let request = ModelRequest::new([Message::user([Part::text("See:"), part.clone()])]);
    api.encode(&ModelInfo::new("test", api.api(), "gpt-4o-audio-preview"), &request).map(|http| http.json())
}

#[test]
fn media_of_a_type_that_a_protocol_does_not_take_are_refused_by_name() {
    let image = |mime: &str| Part::image(b"xyz", mime);
    let sound = |mime: &str| Part::audio(b"xyz", mime);
    let file = |mime: &str| Part::document(b"xyz", mime);
    let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    // The last column says which protocols accept the part: Chat Completions, Responses, Anthropic, Gemini.
    for (part, mime, taken) in [
        (image("image/png"), "image/png", [true; 4]),
        (image("image/jpg"), "image/jpeg", [true; 4]),
        (image("image/gif"), "image/gif", [true, true, true, false]),
        (image("image/heic"), "image/heic", [false, false, false, true]),
        (image("image/tiff"), "image/tiff", [false; 4]),
        (image("image/svg+xml"), "image/svg+xml", [false; 4]),
        (sound("audio/wav"), "audio/wav", [true, false, false, true]),
        (sound("audio/mp3"), "audio/mpeg", [true, false, false, true]),
        (sound("audio/ogg"), "audio/ogg", [false, false, false, true]),
        (sound("audio/flac"), "audio/flac", [false, false, false, true]),
        (file("application/pdf"), "application/pdf", [true; 4]),
        (file("text/plain"), "text/plain", [true; 4]),
        (file("text/csv; charset=utf-8"), "text/csv", [true; 4]),
        (file("application/json"), "application/json", [true; 4]),
        (file(docx), docx, [false, true, false, false]),
        (file("application/zip"), "application/zip", [false; 4]),
        (
            Part::new(Content::Image(Media::url("https://a.example/a.tiff").with_mime_type("image/tiff"))),
            "image/tiff",
            [false; 4],
        ),
    ] {
        for api in protocols() {
            let place = ["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate-content"];
            let is_taken = taken[place.iter().position(|name| *name == api.api()).unwrap()];
            match sent(&*api, &part) {
                Ok(body) => {
                    assert!(is_taken, "{} takes {mime}: {body}", api.api());
                    let text = body.to_string();
                    assert!(
                        text.contains("eHl6") || text.contains("xyz"),
                        "{}: {mime} is lost in {text}",
                        api.api()
                    );
                    // The body names the media type or the audio format, or the file is sent as text.
                    let is_text = text.contains("text/plain") || text.contains("xyz");
                    let format =
                        mime.strip_prefix("audio/").map(|word| if word == "mpeg" { "mp3" } else { word });
                    let is_named = text.contains(mime) || format.is_some_and(|word| text.contains(word));
                    assert!(is_named || is_text, "{}: {mime} became {text}", api.api());
                }
                Err(error) => {
                    assert!(!is_taken, "{} refuses {mime}: {error}", api.api());
                    assert_eq!(error.kind(), ModelErrorKind::InvalidRequest);
                    assert!(
                        matches!(error.code(), Some("unsupported_media_type" | "unsupported_part")),
                        "{error}"
                    );
                    let is_kind = error.code() == Some("unsupported_part");
                    assert!(is_kind || error.message().contains(&format!("`{mime}`: it takes `")), "{error}");
                }
            }
        }
    }
}

/// The application cannot change the result of a tool, so an error would fail every further request of the conversation.
#[test]
fn what_a_tool_returned_and_a_protocol_does_not_take_is_described() {
    let blob = Part::new(Content::Resource(Resource::data("file:///a.bin", vec![1, 2])));
    let content = [Part::text("Here."), Part::image(b"xyz", "image/tiff"), blob];
    let call = Message::assistant([Part::tool_call("c1", "look", "{}")]);
    let request = ModelRequest::new([Message::user("Look."), call, result("c1", content).into()]);
    for api in protocols() {
        let body = body(&*api, "model-1", &request).to_string();
        for expected in [
            "Here.",
            "image of type `image/tiff`: it takes `image/",
            "does not take a resource that is not text]",
        ] {
            assert!(body.contains(expected), "{}: {expected} is not in {body}", api.api());
        }
        assert!(!body.contains("eHl6"), "{}: {body}", api.api());
    }
}

#[cfg(feature = "openai")]
#[test]
fn a_server_with_other_limits_gets_media_under_their_own_names() {
    use crate::provider::openai::{Compat, OpenAiChat};
    let api = OpenAiChat::default().with_compat(Compat::plain());
    for (mime, format) in
        [("audio/ogg", "ogg"), ("audio/x-m4a", "m4a"), ("audio/mpeg", "mp3"), ("audio/wave", "wav")]
    {
        let body = sent(&api, &Part::audio(b"xyz", mime)).unwrap();
        assert_eq!(body["messages"][0]["content"][1]["input_audio"]["format"], format);
    }
    let sent = sent(&api, &Part::image(b"xyz", "image/tiff")).unwrap();
    assert_eq!(sent["messages"][0]["content"][1]["image_url"]["url"], "data:image/tiff;base64,eHl6");
    let five = ModelRequest::default().with_stop(["1", "2", "3", "4", "5"]).with_metadata("team", "search");
    let body = body(&api, "m", &five);
    assert_eq!((body["stop"].as_array().unwrap().len(), &body["metadata"]["team"]), (5, &json!("search")));
}

#[test]
fn metadata_are_sent_or_refused() {
    for api in protocols() {
        let user = ModelRequest::default().with_metadata("user_id", "u1");
        let team = ModelRequest::default().with_metadata("user_id", "u1").with_metadata("team", "search");
        let stored = team.clone().with_provider_options("test", json!({"store": true}));
        let number = ModelRequest::default().with_metadata("user_id", 7);
        let is_told =
            |request: &ModelRequest, word: &str| body(&*api, "gpt-5", request).to_string().contains(word);
        match api.api() {
            "openai-chat" => {
                assert!(is_told(&user, "u1") && is_told(&stored, "search"));
                assert!(refused(&*api, "gpt-5", &team).message().contains("`team`"));
            }
            "openai-responses" => assert!(is_told(&user, "u1") && is_told(&team, "search")),
            "anthropic-messages" => {
                assert!(is_told(&user, "u1"));
                assert!(refused(&*api, "gpt-5", &team).message().contains("`team`"));
            }
            _ => assert!(refused(&*api, "gpt-5", &user).message().contains("`user_id`")),
        }
        assert_eq!(refused(&*api, "gpt-5", &number).code(), Some("unsupported_metadata"));
    }
}

#[cfg(feature = "openai")]
#[test]
fn the_cost_that_a_server_reports_is_the_cost() {
    let cost = |usage: Value| {
        let body =
            json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": usage});
        let chat = crate::provider::openai::OpenAiChat::default();
        let reply = read(&chat, "test", 200, body.to_string().as_bytes()).0;
        reply.usage.cost.map(|cost| cost.total)
    };
    assert_eq!(cost(json!({"prompt_tokens": 3, "cost": 0.002_196})), Some(0.002_196));
    assert_eq!(
        cost(json!({"prompt_tokens": 3, "cost": {"input_tokens_cost": 0.1, "total_cost": 0.25}})),
        Some(0.25)
    );
    assert_eq!(cost(json!({"prompt_tokens": 3, "cost_in_usd_ticks": 5_000_000_000_u64})), Some(0.5));
    assert_eq!(cost(json!({"prompt_tokens": 3, "cost": "free"})), None);
    assert_eq!(cost(json!({"prompt_tokens": 3, "cost": -1})), None);
    let body = json!({"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "Hi"}]}], "usage": {"input_tokens": 3, "cost": 0.5}});
    let responses = crate::provider::openai::OpenAiResponses::default();
    let reply = read(&responses, "test", 200, body.to_string().as_bytes()).0;
    assert_eq!(reply.usage.cost.map(|cost| cost.total), Some(0.5));
}

#[cfg(feature = "openai")]
#[test]
fn what_was_read_from_a_request_goes_back_only_over_its_protocol() {
    use crate::provider::openai::{OpenAiChat, OpenAiResponses};
    let chat = OpenAiChat::default();
    let responses = OpenAiResponses::default();
    let long = "call_0123456789abcdef0123456789abcdef0123456789abcdef";
    let from_chat = json!({"model": "gpt-5", "messages": [
        {"role": "developer", "content": "Be kind.", "name": "STATE"},
        {"role": "user", "content": [{"type": "text", "text": "a", "STATE": 1}, {"type": "STATE"}], "name": "STATE"},
        {"role": "assistant", "content": null, "reasoning_content": "STATE", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}, "STATE": 1}]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "b", "STATE": 1}], "STATE": 1}]});
    let from_responses = json!({"model": "gpt-5", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "a", "STATE": 1}, {"type": "STATE"}], "STATE": 1},
        {"type": "reasoning", "id": "STATE", "encrypted_content": "STATE", "summary": []},
        {"type": "function_call", "id": "STATE", "call_id": long, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": long, "output": [{"type": "input_text", "text": "b", "STATE": 1}], "id": "STATE"}]});
    let both: [(&dyn Protocol, &dyn Protocol, &Value); 2] =
        [(&chat, &responses, &from_chat), (&responses, &chat, &from_responses)];
    for (from, to, given) in both {
        let (model, request) = from.parse_request("openai", given).unwrap();
        assert!(
            request.messages.iter().filter_map(|m| m.as_assistant()).all(|reply| reply.api == from.api())
        );
        let conversation: Conversation =
            request.messages.iter().map(|message| Message::clone(message)).collect();
        let handed = |to: &dyn Protocol| {
            let recipient = Recipient::new("openai", to.api(), &*model);
            let request = ModelRequest {
                messages: HandOff::of(&conversation, recipient).messages().clone(),
                ..ModelRequest::default()
            };
            to.encode(&ModelInfo::new("openai", to.api(), &*model), &request).unwrap().json()
        };
        let other = handed(to).to_string();
        assert!(!other.contains("STATE"), "from {} to {}: {other}", from.api(), to.api());
        for neutral in ["\"a\"", "\"b\"", "\"f\""] {
            assert!(other.contains(neutral), "{neutral} is lost in {other}");
        }
        let own = handed(from).to_string();
        assert!(own.matches("STATE").count() >= 5, "its own state is lost in {own}");
        // Provider data keeps its provider and protocol when the conversation is stored and loaded.
        let stored = serde_json::to_string(&conversation).unwrap();
        let read: Conversation = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, conversation);
    }
    // A long id is sent unchanged only over the protocol that made it.
    let reply = |api: &str| {
        let mut reply = AssistantMessage::new([Part::tool_call(long, "f", "{}")]);
        (reply.provider, reply.api) = ("openai".into(), api.into());
        ModelRequest::new([Message::from(reply), result(long, [Part::text("b")]).into()])
    };
    let info = ModelInfo::new("openai", OpenAiChat::API, "gpt-5");
    assert!(chat.encode(&info, &reply(OpenAiChat::API)).unwrap().text().contains(long));
    assert!(!chat.encode(&info, &reply(OpenAiResponses::API)).unwrap().text().contains(long));
}

#[cfg(feature = "openai")]
#[test]
fn a_model_that_reasons_anyway_gets_no_temperature() {
    use crate::provider::openai::{OpenAiChat, OpenAiResponses};
    let asked = |level| ModelRequest::default().with_thinking(level).with_temperature(0.5).with_top_p(0.5);
    for api in [Box::new(OpenAiChat::default()) as Box<dyn Protocol>, Box::new(OpenAiResponses::default())] {
        for (model, level, is_sent) in [
            ("gpt-5", Thinking::None, false),
            ("o3", Thinking::None, false),
            ("gpt-6.1-sol", Thinking::None, false),
            ("gpt-5.1", Thinking::None, true),
            ("gpt-5.1", Thinking::Low, false),
            ("gpt-4.1", Thinking::None, true),
            ("gpt-4.1", Thinking::High, true),
        ] {
            let body = body(&*api, model, &asked(level));
            for key in ["temperature", "top_p"] {
                assert_eq!(body.get(key).is_some(), is_sent, "{} {model} {level:?}: {body}", api.api());
            }
        }
    }
}

#[test]
fn names_of_schemas_and_stop_sequences_are_checked_before_the_request() {
    let named =
        |name: &str| ModelRequest::default().with_output(OutputSchema::new(name, json!({"type": "object"})));
    let stops = |count: usize| ModelRequest::default().with_stop((0..count).map(|n| n.to_string()));
    for api in protocols() {
        let is_openai = api.api().starts_with("openai");
        for name in ["", "my reply", "Vec<Row>", "größe", &"n".repeat(65)] {
            if is_openai {
                assert_eq!(
                    refused(&*api, "gpt-4o", &named(name)).code(),
                    Some("invalid_output_name"),
                    "{name}"
                );
            } else {
                body(&*api, "m", &named(name));
            }
        }
        body(&*api, "gpt-4o", &named("my_reply-2"));
        let most = match api.api() {
            "openai-chat" => 4,
            "gemini-generate-content" => 5,
            _ => 100,
        };
        body(&*api, "gpt-4o", &stops(most));
        if most < 100 {
            assert_eq!(refused(&*api, "gpt-4o", &stops(most + 1)).code(), Some("too_many_stop_sequences"));
        }
        if api.api() == "anthropic-messages" {
            let blank = ModelRequest::default().with_stop(["\n\n"]);
            assert_eq!(refused(&*api, "m", &blank).code(), Some("blank_stop_sequence"));
        }
    }
}

/// Declares a type whose schema can have `x-secret`, as `derive(ToolArgs)` does.
macro_rules! described {
    ($name:ident, $schema:tt) => {
        struct $name;

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

described!(Forecast, {"type": "object", "additionalProperties": false, "properties": {
    "city": {"type": "string"}, "days": {"type": "integer"}, "key": {"type": "string", "x-secret": true}}, "required": ["city"]});
described!(Open, {"type": "object", "properties": {"key": {"type": "string", "x-secret": true}}, "required": ["key"]});

fn definition<T: schemars::JsonSchema>(name: &str) -> ToolDefinition {
    ToolDefinition::new(Plan::for_type::<T>(name, PlanOptions::default()).unwrap(), "Does it.").unwrap()
}

#[test]
fn examples_of_tools_are_sent_without_secrets_and_without_wrong_ones() {
    let forecast = definition::<Forecast>("forecast")
        .configure(|options| {
            let options = options
                .example(json!({"city": "Rome", "days": 3}))
                .example(json!({"city": "Bern", "key": "hunter2"}));
            // The next two examples are not valid, so they are left out.
            options.example(json!({"town": "Oslo"})).example(json!({"city": "Kyiv", "days": "three"}))
        })
        .unwrap();
    let secret =
        definition::<Open>("open").configure(|options| options.example(json!({"key": "hunter2"}))).unwrap();
    let request = ModelRequest::default().with_tools([forecast, secret]);
    for api in protocols() {
        for strict in [false, true] {
            let request = request.clone().with_strict_tools(strict);
            let plain = body(&*api, "gpt-4o", &request);
            let described = body(&*api, "gpt-4o", &request.clone().with_examples_in_descriptions());
            for body in [&plain, &described] {
                let text = body.to_string();
                assert!(!text.contains("hunter2"), "{}: {text}", api.api());
                assert!(!text.contains("Oslo") && !text.contains("Kyiv"), "{}: {text}", api.api());
            }
            if api.api() == "anthropic-messages" {
                let examples = json!([{"city": "Rome", "days": 3}, {"city": "Bern"}]);
                assert_eq!(plain["tools"][0]["input_examples"], examples);
                assert_eq!(plain["tools"][1].get("input_examples"), None);
                assert_eq!(described, plain, "where it has a field, nothing is said twice");
            } else {
                assert!(!plain.to_string().contains("Rome"), "{}", api.api());
                let text = described.to_string();
                let expected = r#"Does it.\n\nExamples of arguments:\n{\"city\":\"Rome\",\"days\":3}\n{\"city\":\"Bern\"}"#;
                assert!(text.contains(expected), "{text}");
            }
        }
    }
}

/// Several texts are sent to Chat Completions as one text, because not every server accepts lists.
#[test]
fn several_texts_are_lines_or_a_list() {
    let call = Message::assistant([Part::tool_call("c1", "look", "{}")]);
    let texts = || vec![Part::text("one"), Part::text("two")];
    let image = Part::image(b"png", "image/png");
    let request = ModelRequest::new([
        Message::user(texts()),
        call,
        result("c1", texts()).into(),
        Message::assistant(texts()),
        Message::user([texts(), vec![image]].concat()),
    ]);
    for api in protocols() {
        let body = body(&*api, "gpt-4o", &request);
        let sent = messages(&*api, &body);
        match api.api() {
            "openai-chat" => {
                assert_eq!(sent[0]["content"], "one\ntwo");
                assert_eq!(sent[2]["content"], "one\ntwo");
                assert_eq!(sent[3]["content"], "onetwo");
                assert_eq!(sent[4]["content"].as_array().unwrap().len(), 3);
            }
            "openai-responses" => {
                let list =
                    json!([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]);
                assert_eq!((&sent[0]["content"], &sent[2]["output"]), (&list, &list));
                assert_eq!(sent[3]["content"], "onetwo");
            }
            "anthropic-messages" => {
                let list = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
                assert_eq!((&sent[0]["content"], &sent[2]["content"][0]["content"]), (&list, &list));
                assert_eq!(sent[3]["content"], list);
            }
            _ => {
                assert_eq!(sent[0]["parts"], json!([{"text": "one"}, {"text": "two"}]));
                assert_eq!(
                    sent[2]["parts"][0]["functionResponse"]["response"],
                    json!({"output": "one\ntwo"})
                );
                assert_eq!(sent[3]["parts"], json!([{"text": "one"}, {"text": "two"}]));
            }
        }
    }
}

#[cfg(feature = "openai")]
#[test]
fn chat_streams_with_late_indexes_other_thinking_and_nothing() {
    let chat = crate::provider::openai::OpenAiChat::default();
    let stream = |chunks: &[Value]| {
        let lines = chunks.iter().map(ToString::to_string).chain(["[DONE]".to_owned()]);
        let text = lines.fold(String::new(), |text, line| text + "data: " + &line + "\n\n");
        read(&chat, "test", 200, text.as_bytes())
    };
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});

    // The first piece of a call has no index, or neither an index nor an id.
    for first in [
        json!({"id": "c1", "function": {"name": "f", "arguments": "{\"a\""}}),
        json!({"function": {"name": "f", "arguments": "{\"a\""}}),
    ] {
        let (reply, error) = stream(&[
            delta(json!({"tool_calls": [first]})),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]})),
            delta(
                json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{}"}}]}),
            ),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": " "}}]})),
            end.clone(),
        ]);
        assert!(error.is_none(), "{error:?}");
        let calls: Vec<_> =
            reply.tool_calls().map(|call| (call.name.clone(), call.args.text().trim().to_owned())).collect();
        assert_eq!(calls, [("f".to_owned(), "{\"a\": 1}".to_owned()), ("g".to_owned(), "{}".to_owned())]);
    }

    let (reply, error) =
        stream(&[delta(json!({"thinking": "Hm. "})), delta(json!({"content": "Yes."})), end]);
    assert!(error.is_none() && reply.thinking() == "Hm. " && reply.text() == "Yes.", "{reply:?}");

    // A reply may be empty, but a stream without any reply is an error that may be retried.
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let (reply, error) = stream(&[stop]);
    assert!(error.is_none() && reply.content.is_empty());
    let (_, error) = stream(&[]);
    assert!(error.is_some_and(|error| error.is_retryable() && error.message().contains("no reply in it")));
}

//! The servers that support Chat Completions, one row each.

use super::chat::Compat;

pub(in crate::provider) struct ChatServer {
    pub(in crate::provider) name: &'static str,
    /// The base URL, or an empty text if each account has a different one.
    pub(in crate::provider) base_url: &'static str,
    pub(in crate::provider) key_variable: &'static str,
    pub(in crate::provider) is_local: bool,
    pub(in crate::provider) compat: fn() -> Compat,
}

const fn remote(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    compat: fn() -> Compat,
) -> ChatServer {
    ChatServer { name, base_url, key_variable, is_local: false, compat }
}

const fn local(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    compat: fn() -> Compat,
) -> ChatServer {
    ChatServer { name, base_url, key_variable, is_local: true, compat }
}

/// The servers with built-in settings. Source: the API documentation of each server.
///
/// Differences in responses (thinking or usage in other fields, lists for content, empty ids) are not in this list, because the decoder
/// handles them for every server.
pub(in crate::provider) const SERVERS: &[ChatServer] = &[
    remote("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", || {
        Compat::plain().with_thinking("reasoning").with_json_schema(true).with_web_search("plugins")
    }),
    remote("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", || {
        Compat::plain().with_max_tokens_field("max_completion_tokens").with_echo_within_turn()
    }),
    remote("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", || {
        Compat::plain().with_max_tokens_field("max_completion_tokens").with_json_schema(true)
    }),
    remote("xai", "https://api.x.ai/v1", "XAI_API_KEY", || {
        Compat::plain().without_thinking().with_json_schema(true)
    }),
    remote("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", || {
        Compat::plain().with_thinking("thinking").with_echo_within_turn()
    }),
    remote("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", || {
        Compat::plain()
            .without_thinking()
            .with_stream_usage(false)
            .with_json_schema(true)
            .with_tool_result_name(true)
            .with_call_id_length(9)
    }),
    remote("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", Compat::plain),
    remote("fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", || {
        Compat::plain().with_json_schema(true)
    }),
    // Each account has a different address, `https://RESOURCE.openai.azure.com/openai/v1`, which the variable AZURE_OPENAI_BASE_URL sets.
    remote("azure", "", "AZURE_OPENAI_API_KEY", Compat::default),
    remote("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", || {
        Compat::plain().with_thinking("thinking").with_parallel_tool_calls(false)
    }),
    remote("zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", || {
        Compat::plain().with_thinking("thinking").with_parallel_tool_calls(false)
    }),
    remote("alibaba", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", || {
        Compat::plain().with_thinking("enable_thinking").with_web_search("enable_search")
    }),
    local("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", || Compat::plain().with_json_schema(true)),
    local("llamacpp", "http://127.0.0.1:8080/v1", "LLAMACPP_API_KEY", || {
        Compat::plain().with_json_schema(true).without_thinking()
    }),
    local("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY", || Compat::plain().with_json_schema(true)),
    local("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY", || {
        Compat::plain().with_json_schema(true).with_system_role("system")
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantMessage, Message, OutcomeKind, Part, ProviderData, ToolResultMessage};
    use crate::model::{ModelInfo, ModelRequest, OutputSchema, Thinking};
    use crate::provider::Protocol as _;
    use crate::provider::openai::OpenAiChat;
    use serde_json::{Value, json};

    fn api(name: &str) -> OpenAiChat {
        let server = SERVERS.iter().find(|server| server.name == name).unwrap();
        OpenAiChat::default().with_compat((server.compat)())
    }

    fn body(name: &str, request: &ModelRequest) -> Value {
        let info = ModelInfo::new(name, OpenAiChat::API, "some-model");
        api(name).encode(&info, request).unwrap().json()
    }

    #[test]
    fn each_server_gets_the_thinking_level_in_its_field() {
        for (name, level, field, expected) in [
            ("openrouter", Thinking::High, "reasoning", json!({"effort": "high"})),
            ("openrouter", Thinking::Budget(500), "reasoning", json!({"max_tokens": 500})),
            ("openrouter", Thinking::None, "reasoning", json!({"effort": "none"})),
            ("deepseek", Thinking::Low, "thinking", json!({"type": "enabled"})),
            ("zai", Thinking::None, "thinking", json!({"type": "disabled"})),
            ("alibaba", Thinking::Budget(500), "thinking_budget", json!(500)),
            ("alibaba", Thinking::None, "enable_thinking", json!(false)),
            ("groq", Thinking::Max, "reasoning_effort", json!("high")),
        ] {
            assert_eq!(body(name, &ModelRequest::default().with_thinking(level))[field], expected, "{name}");
        }
        let written = body("xai", &ModelRequest::default().with_thinking(Thinking::High));
        assert!(written.get("reasoning_effort").is_none());
    }

    #[test]
    fn thinking_is_sent_back_to_servers_that_require_it() {
        for (name, expected) in [("deepseek", [false, true]), ("moonshot", [true, true])] {
            let thought = |text: &str| {
                let data = ProviderData::new(name, json!({"field": "reasoning_content"}));
                AssistantMessage::new([
                    Part::thinking(text).with_provider_data(data),
                    Part::tool_call("c", "f", "{}"),
                ])
            };
            let result = || ToolResultMessage::new("c", "f", OutcomeKind::Completed);
            let request = ModelRequest::new([
                Message::user("1"),
                thought("a").into(),
                result().into(),
                Message::user("2"),
                thought("b").into(),
                result().into(),
            ]);
            let written = body(name, &request);
            let echoed = [1, 4].map(|at| written["messages"][at].get("reasoning_content").is_some());
            assert_eq!(echoed, expected, "{name}");
        }
    }

    #[test]
    fn call_ids_are_made_to_fit() {
        let request = ModelRequest::new([
            Message::assistant([
                Part::tool_call("toolu_01ABCDEF", "f", "{}"),
                Part::tool_call("aB3dE6gH9", "f", "{}"),
            ]),
            ToolResultMessage::new("toolu_01ABCDEF", "f", OutcomeKind::Completed)
                .with_content([Part::image(b"png", "image/png")])
                .into(),
            ToolResultMessage::new("aB3dE6gH9", "f", OutcomeKind::Completed)
                .with_content([Part::image(b"png", "image/png")])
                .into(),
        ]);
        let written = body("mistral", &request);
        let ids =
            [0, 1].map(|at| written["messages"][0]["tool_calls"][at]["id"].as_str().unwrap().to_owned());
        assert!(ids[0].len() == 9 && ids[0].chars().all(|c| c.is_ascii_alphanumeric()), "{}", ids[0]);
        assert_eq!(ids[1], "aB3dE6gH9");
        assert_eq!(written["messages"][1]["tool_call_id"].as_str(), Some(&*ids[0]));
        assert_eq!(written["messages"][1]["name"], "f");
        for (at, id) in [0, 2].into_iter().zip(ids) {
            let note = &written["messages"][3]["content"][at]["text"];
            assert_eq!(note, &format!("What `f` (call {id}) shows:"));
        }
    }

    #[test]
    fn a_schema_that_a_server_does_not_know_is_refused_before_it_is_sent() {
        let request = ModelRequest::default().with_output(OutputSchema::new("x", json!({"type": "object"})));
        let info = ModelInfo::new("deepseek", OpenAiChat::API, "m");
        let error = api("deepseek").encode(&info, &request).unwrap_err();
        assert!(error.message().contains("no schema for its reply"), "{error}");
        assert!(
            !api("deepseek").capabilities("m").native_output && api("ollama").capabilities("m").native_output
        );
    }
}

//! The four protocols on recorded bodies and requests, through the command line.

use agent::{Value, json};

const PROTOCOLS: [&str; 4] = ["anthropic", "openai-chat", "openai-responses", "gemini"];

/// Runs the command on a fixture. Returns the printed line without `file`, or the error.
fn wire(words: &[&str], file: &str) -> Result<Value, String> {
    let file = format!("{}/wire/fixtures/{file}", env!("CARGO_MANIFEST_DIR"));
    let words = words.iter().map(|&word| word.to_owned()).chain([file.clone()]);
    let options = crate::options(words)?;
    let mut line = crate::run(&options, &file).map_err(|error| error.to_string())?;
    line.as_object_mut().unwrap().shift_remove("file");
    Ok(line)
}

#[test]
fn a_stream_comes_to_the_same_by_every_protocol_however_it_is_cut() {
    for api in PROTOCOLS {
        let file = format!("{api}.sse");
        let whole = wire(&["decode", "--api", api], &file).unwrap();
        for chunk in ["1", "2", "3", "7", "64", "1000"] {
            assert_eq!(
                wire(&["decode", "--api", api, "--chunk", chunk], &file).unwrap(),
                whole,
                "{api} by {chunk}"
            );
        }
        let id = if api == "anthropic" { "toolu_1" } else { "call_1" };
        for (field, expected) in [
            ("text", json!("I look – für dich 🙂")),
            ("tool_calls", json!([{"id": id, "name": "find", "args": {"what": "tea"}}])),
            ("stop_reason", json!("tool_use")),
            ("refusal", json!(null)),
            ("other_parts", json!([])),
            ("error", json!(null)),
            ("partial", json!(false)),
        ] {
            assert_eq!(whole[field], expected, "{api}: {field}");
        }
        let thinking = if api == "openai-chat" { json!(null) } else { json!("Where is it?") };
        assert_eq!(whole["thinking"], thinking, "{api}");
        let usage = &whole["usage"];
        let input = if api == "anthropic" { 25 } else { 20 };
        assert_eq!(
            (&usage["input"], &usage["output"], &usage["cache_read"]),
            (&json!(input), &json!(30), &json!(5)),
            "{api}"
        );
        assert!(whole["provider_usage"].is_object(), "{api}");
    }
}

#[test]
fn state_of_a_provider_is_shown_with_what_it_is_on() {
    let opaque =
        |api: &str| wire(&["decode", "--api", api], &format!("{api}.sse")).unwrap()["opaque"].clone();
    assert_eq!(opaque("anthropic"), json!([{"on": "thinking", "value": "c2ln"}]));
    assert_eq!(opaque("gemini"), json!([{"on": "tool_call", "value": "c2ln"}]));
    assert_eq!(opaque("openai-responses")[0], json!({"on": "thinking", "value": "ZW5j"}));
}

#[test]
fn what_broke_off_and_what_failed_is_told() {
    let cut = wire(&["decode", "--api", "anthropic"], "anthropic-cut.sse").unwrap();
    assert_eq!(
        (&cut["error"]["kind"], &cut["partial"], &cut["stop_reason"]),
        (&json!("protocol"), &json!(true), &json!(null))
    );
    assert_eq!(cut["tool_calls"], json!([]), "a call that was still open is none");
    assert_eq!(cut["text"], "I look – für dich 🙂");
    let failed =
        wire(&["decode", "--api", "anthropic", "--status", "529"], "anthropic-overloaded.json").unwrap();
    let error = json!({"kind": "overloaded", "status": 529, "code": "overloaded_error", "message": "Overloaded", "retryable": true});
    assert_eq!((&failed["error"], &failed["partial"]), (&error, &json!(false)));
}

#[test]
fn a_request_is_written_as_it_was_read() {
    for api in PROTOCOLS {
        let file = format!("{api}.request.json");
        let given = std::fs::read(format!("{}/wire/fixtures/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let given: Value = serde_json::from_slice(&given).unwrap();
        assert_eq!(wire(&["roundtrip", "--api", api], &file).unwrap()["body"], given, "{api}");
    }
}

#[test]
fn a_conversation_becomes_a_request_of_every_protocol() {
    for (api, url, field) in [
        ("anthropic", "https://api.anthropic.com/v1/messages", "messages"),
        ("openai-chat", "https://api.openai.com/v1/chat/completions", "messages"),
        ("openai-responses", "https://api.openai.com/v1/responses", "input"),
        (
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/models/unnamed-1:streamGenerateContent?alt=sse",
            "contents",
        ),
    ] {
        let line = wire(&["encode", "--api", api], "conversation.json").unwrap();
        assert_eq!((&line["method"], &line["url"]), (&json!("POST"), &json!(url)));
        let headers = line["headers"].to_string().to_lowercase();
        assert!(!headers.contains("authorization") && !headers.contains("key"), "{headers}");
        let body = line["body"].to_string();
        for said in ["Be brief.", "Find tea.", "I look.", "On the shelf.", "Finds it."] {
            assert!(body.contains(said), "{api}: {said} is lost in {body}");
        }
        assert!(line["body"][field].as_array().is_some_and(|messages| messages.len() >= 3), "{api}");
    }
}

/// Aborted replies and the state of other providers are left out. Call ids and media that a protocol does not accept are replaced. Notes
/// report edited arguments and, for some protocols, that the conversation begins with the assistant.
#[test]
fn a_foreign_conversation_is_handed_over() {
    for api in PROTOCOLS {
        let body = wire(&["encode", "--api", api], "foreign.json").unwrap()["body"].to_string();
        assert!(!body.contains("half a word"), "{api}: {body}");
        assert_eq!(body.contains("STATE"), api == "openai-chat", "{api}: {body}");
        assert!(
            !body.contains("call:1") && !body.contains("d2F2") || api == "gemini" || api == "openai-chat",
            "{api}: {body}"
        );
        for said in ["Hello!", "What is this?", "On the shelf.", "Thanks.", "black tea"] {
            assert!(body.contains(said), "{api}: {said} is lost in {body}");
        }
        let begins = body.contains("begins with the assistant");
        assert_eq!(begins, ["anthropic", "gemini"].contains(&api), "{api}: {body}");
    }
}

#[test]
fn wrong_words_are_told() {
    for (words, expected) in [
        (&["look"][..], "the first word says what to do"),
        (
            &["decode"],
            "`--api` is missing: one of anthropic-messages, openai-chat, openai-responses, gemini-generate-content",
        ),
        (&["decode", "--api", "telegraph"], "`telegraph` is no API"),
        (&["decode", "--api", "gemini", "--chunk", "0"], "`--chunk` wants a positive number"),
        (&["decode", "--api", "gemini", "--loud"], "`--loud` is no option"),
    ] {
        let error = wire(words, "gemini.sse").unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(wire(&["encode", "--api", "gemini"], "gemini.sse").is_err());
    assert!(wire(&["decode", "--api", "gemini"], "nowhere.sse").unwrap_err().contains("No such file"));
}

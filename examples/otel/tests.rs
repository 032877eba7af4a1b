//! Checks the trace that arrives at a collector.

use super::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Starts a collector. Returns its URL and a channel with the bodies that it receives.
fn collector() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if take(stream, &sender).is_err() {
                return;
            }
        }
    });
    (url, bodies)
}

fn take(mut stream: TcpStream, bodies: &Sender<String>) -> Result<(), Box<dyn Error>> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let (mut got, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&got);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
            });
            if body.len() >= length.unwrap_or_default() {
                assert!(head.starts_with("POST /v1/traces "), "{head}");
                bodies.send(body.to_owned())?;
                break;
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err("the request ended early".into()),
            read => got.extend_from_slice(&buffer[..read]),
        }
    }
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    stream.write_all(answer.as_bytes())?;
    Ok(())
}

/// The attributes of a span or an event, with all values as text.
fn attributes(of: &Value) -> BTreeMap<String, String> {
    let all = of["attributes"].as_array().into_iter().flatten();
    let text = |value: &Value| {
        let value = value.as_object().and_then(|value| value.values().next()).unwrap_or(&Value::Null).clone();
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    all.map(|one| (one["key"].as_str().unwrap_or_default().to_owned(), text(&one["value"]))).collect()
}

#[test]
fn the_trace_of_a_run_arrives_at_a_collector_with_nothing_secret_in_it() {
    let (url, bodies) = collector();
    let answer = traced(&url).expect("an answer");
    assert!(answer.contains("Astoria"));

    let bodies: Vec<String> = bodies.try_iter().collect();
    let text = bodies.concat();
    for secret in ["tulip", "4111-1111", "Astoria"] {
        assert!(!text.contains(secret), "{secret} is in the trace: {text}");
    }
    let mut spans: Vec<Value> = Vec::new();
    for body in &bodies {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let resource = &body["resourceSpans"][0];
        assert_eq!(attributes(&resource["resource"])["service.name"], "hotel-desk");
        for scope in resource["scopeSpans"].as_array().into_iter().flatten() {
            spans.extend(scope["spans"].as_array().into_iter().flatten().cloned());
        }
    }
    let start =
        |span: &Value| span["startTimeUnixNano"].as_str().and_then(|nanos| nanos.parse::<u128>().ok());
    spans.sort_by_key(start);

    // Each span has the right parent.
    let name = |span: &Value| span["name"].as_str().unwrap_or_default().to_owned();
    let parent = |span: &Value| {
        let of = spans.iter().find(|other| other["spanId"] == span["parentSpanId"]);
        of.map_or_else(|| "nobody".to_owned(), name)
    };
    let tree: Vec<String> = spans.iter().map(|span| format!("{} of {}", name(span), parent(span))).collect();
    let wanted = [
        "invoke_agent of nobody",
        "turn 1 of invoke_agent",
        "chat acme-large of turn 1",
        "execute_tool book_room of turn 1",
        "turn 2 of invoke_agent",
        "chat acme-large of turn 2",
        "execute_tool book_room of turn 2",
        "turn 3 of invoke_agent",
        "chat acme-large of turn 3",
    ];
    assert_eq!(tree, wanted);
    assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]), "one trace");

    let says = |at: usize, wanted: &[(&str, &str)]| {
        let said = attributes(&spans[at]);
        for (key, value) in wanted {
            assert_eq!(said.get(*key).map(String::as_str), Some(*value), "{key} of {}: {said:?}", tree[at]);
        }
    };
    says(
        0,
        &[
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "acme"),
            ("gen_ai.request.model", "acme-large"),
            ("gen_ai.conversation.id", "desk-7"),
            ("agent.run.stop", "completed"),
        ],
    );
    says(
        2,
        &[("gen_ai.operation.name", "chat"), ("gen_ai.conversation.id", "desk-7"), ("server.port", "443")],
    );
    // Numbers and lists keep their types.
    let typed = |at: usize, key: &str| {
        let all = spans[at]["attributes"].as_array().expect("attributes");
        let found = all.iter().find(|attribute| attribute["key"] == key).expect(key);
        found["value"].clone()
    };
    let reasons = typed(2, "gen_ai.response.finish_reasons");
    assert_eq!(reasons, json!({"arrayValue": {"values": [{"stringValue": "tool_call"}]}}));
    assert_eq!(typed(1, "agent.turn"), json!({"intValue": "1"}));
    assert_eq!(typed(2, "gen_ai.request.stream"), json!({"boolValue": true}));
    assert!(typed(2, "gen_ai.response.time_to_first_chunk")["doubleValue"].is_number());
    says(3, &[("gen_ai.tool.name", "book_room"), ("error.type", "invalid_arguments")]);
    says(6, &[("gen_ai.tool.call.id", "call_2"), ("gen_ai.tool.type", "function")]);
    // The span of a request has the kind client (3). The span of a failed call has the status error (2).
    assert_eq!((&spans[2]["kind"], &spans[3]["status"]["code"]), (&Value::from(3), &Value::from(2)));

    let events = |at: usize| -> Vec<String> {
        let all = spans[at]["events"].as_array().into_iter().flatten();
        let line = |event: &Value| {
            let said = attributes(event);
            let get = |key: &str| said.get(&format!("agent.argument.{key}")).cloned().unwrap_or_default();
            format!("{} {} {}{}", name(event), get("path"), get("code"), get("rule"))
        };
        all.map(line).collect()
    };
    let mut refused = events(3);
    refused.sort();
    assert_eq!(refused, ["agent.argument.refused /* unknown", "agent.argument.refused /nights missing"]);
    assert_eq!(events(6), ["agent.argument.coerced /nights text_to_integer"]);
}

#[test]
fn where_nothing_listens_the_program_says_so() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let error = traced(&format!("http://{free}")).expect_err("nothing listens there").to_string();
    assert!(error.starts_with(&format!("no trace arrived at http://{free}: ")), "{error}");
}

#[test]
fn a_server_that_is_no_collector_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut read = vec![0; 65_536];
            let _ = stream.read(&mut read);
            let _ =
                stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    let error = traced(&url).expect_err("it is no collector").to_string();
    assert!(error.starts_with(&format!("no trace arrived at {url}: ")), "{error}");
}

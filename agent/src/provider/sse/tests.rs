use super::*;

type Seen = Vec<(String, String, String)>;

fn read(chunks: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Seen {
    let (mut parser, mut seen) = (SseParser::new(), Seen::new());
    let mut on = |event: SseEvent<'_>| seen.push((event.event.into(), event.data.into(), event.id.into()));
    for chunk in chunks {
        parser.push(chunk.as_ref(), &mut on).unwrap();
    }
    parser.finish(&mut on).unwrap();
    seen
}

fn event(event: &str, data: &str) -> (String, String, String) {
    (event.into(), data.into(), String::new())
}

fn bodies() -> Vec<(&'static [u8], Seen)> {
    let id = |id: &str| ("message".to_owned(), "x".to_owned(), id.to_owned());
    vec![
        (b"", vec![]),
        (b"\n\n\r\r\n", vec![]),
        (b": ping\n\n", vec![]),
        (b"data: a\n\n", vec![event("message", "a")]),
        (
            b"data:a\r\n\r\ndata: b\r\rdata:  c\n\n",
            vec![event("message", "a"), event("message", "b"), event("message", " c")],
        ),
        (b"event: x\ndata: 1\ndata\ndata:2\n\n", vec![event("x", "1\n\n2")]),
        (b"event: x\n\ndata: 1\n\n", vec![event("message", "1")]),
        (b"event: x\nevent: y\ndata: 1\n\ndata: 2\n\n", vec![event("y", "1"), event("message", "2")]),
        (b"data:\n\ndata\n\n", vec![event("message", ""), event("message", "")]),
        (b"\xEF\xBB\xBFdata: bom\n\n\xEF\xBB\xBFdata: not at the start\n\n", vec![event("message", "bom")]),
        (b"data: {\"t\":\"h\xC3\xA9\xF0\x9F\xA6\x80\"}\n\n", vec![event("message", "{\"t\":\"hé🦀\"}")]),
        (b"data: a\xFFb\n\n", vec![event("message", "a\u{FFFD}b")]),
        (
            b"id: 7\ndata: x\n\ndata: x\n\nid\ndata: x\n\nid: a\0b\ndata: x\n\n",
            vec![id("7"), id("7"), id(""), id("")],
        ),
        (b"foo: bar\ndatax: 1\n data: 2\ndata: x\n\n", vec![id("")]),
        (b"data: a\n:\ndata: b\n: c\n\n", vec![event("message", "a\nb")]),
        (b"data: no blank line\n", vec![event("message", "no blank line")]),
        (b"data: a\n\nevent: e\ndata: no line end", vec![event("message", "a"), event("e", "no line end")]),
        (b"event: alone", vec![]),
    ]
}

#[test]
fn any_chunking_gives_what_the_whole_gives() {
    for (body, expected) in bodies() {
        let text = String::from_utf8_lossy(body);
        assert_eq!(read([body]), expected, "{text:?}");
        for size in 1..=body.len() {
            assert_eq!(read(body.chunks(size)), expected, "{text:?} in chunks of {size}");
        }
        for at in 0..body.len() {
            assert_eq!(read([&body[..at], &body[at..]]), expected, "{text:?} cut at {at}");
        }
    }
}

#[test]
fn line_ends_may_be_mixed_and_split() {
    let ends = ["\n", "\r\n", "\r"];
    for a in ends {
        for b in ends {
            for c in ends {
                // A CR and the LF after it are one line end. `b` and `c` must be two line ends, so this pair is skipped.
                let body = format!("data: 1{a}data: 2{b}{c}data: 3{a}{a}");
                if format!("{b}{c}").contains("\r\n") && b != "\r\n" && c != "\r\n" {
                    continue;
                }
                let expected = vec![event("message", "1\n2"), event("message", "3")];
                assert_eq!(read([&body]), expected, "{body:?}");
                assert_eq!(read(body.as_bytes().chunks(1)), expected, "{body:?}");
            }
        }
    }
}

#[test]
fn invalid_utf8_is_marked() {
    let mut lossy = Vec::new();
    let mut parser = SseParser::new();
    parser.push(b"data: a\xFFb\n\ndata: \xEF\xBF\xBD\n\n", |event| lossy.push(event.is_lossy)).unwrap();
    assert_eq!(lossy, [true, false], "a replacement character that was sent is none");
}

#[test]
fn long_events_are_refused_in_any_chunks() {
    let bodies = [
        format!("data: {}\n\n", "x".repeat(101)),
        "data: xxxxxxxxxxxxxxxxxxxx\n".repeat(6),
        format!("data: {}\ndata: {}", "x".repeat(90), "y".repeat(20)),
        format!(": {}", "x".repeat(200)),
        "x".repeat(101),
    ];
    for body in bodies {
        for size in [1, 7, body.len()] {
            let mut parser = SseParser::new().with_max_event(100);
            let refused = body.as_bytes().chunks(size).any(|chunk| parser.push(chunk, |_| {}).is_err());
            assert!(refused, "{body:?} in chunks of {size}");
        }
    }
    // The last line, `data` without a colon, adds a line break to the data. The data then has 101 bytes.
    let mut parser = SseParser::new().with_max_event(100);
    parser.push(format!("data: {}\ndata", "x".repeat(100)).as_bytes(), |_| {}).unwrap();
    assert!(parser.finish(|_| panic!("the event is too long")).is_err());
    let mut parser = SseParser::new().with_max_event(100);
    for _ in 0..1000 {
        parser.push(b"data: xxxxxxxxxxxxxxxxxxxx\n\n: xxxxxxxxxxx\n", |_| {}).unwrap();
    }
}

#[test]
fn retry_is_kept_when_it_is_a_number() {
    let mut parser = SseParser::new();
    parser.push(b"retry: 10\nretry: x\nretry: -1\nretry:\n", |_| {}).unwrap();
    assert_eq!(parser.retry(), Some(10));
}

/// Parsing the growing text again at each line would take quadratic time. The last text has two million lines.
#[cfg(feature = "http")]
#[test]
fn json_outside_of_events_is_parsed_once_at_its_end() {
    let read = |text: &str| {
        let (mut parser, mut events) = (SseParser::new().with_stray_json(), Vec::new());
        parser.push(text.as_bytes(), |event| events.push(event.data.to_owned())).unwrap();
        events
    };
    assert_eq!(read("{\n\"a\": \"}\\\"{\",\n\"b\": []\n}\n"), ["{\n\"a\": \"}\\\"{\",\n\"b\": []\n}"]);
    assert_eq!(read("[DONE]\ndata: x\n\n"), ["x"], "brackets that close are no start of JSON");
    assert_eq!(read(&format!("[\n{}", "{},\n".repeat(1 << 21))), [""; 0]);
}

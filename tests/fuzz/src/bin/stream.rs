//! The push parser, torn anywhere, against `serde_json` on the whole text. The first byte seeds the splits.
#![no_main]

use agent::args::{ArgumentEvent, ArgumentStream, ParseError};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// All text, the snapshot, and the end; `fragments` is the text of all strings.
type End = (Option<Value>, Result<(), ParseError>, String, usize);

fn read(text: &str, mut cut: impl FnMut(usize) -> usize) -> End {
    let mut stream = ArgumentStream::untyped();
    let (mut fragments, mut finished, mut start) = (String::new(), 0, 0);
    while start < text.len() {
        let mut end = (start + cut(start).max(1)).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let pushed = stream.push(&text[start..end], &mut |event| match event {
            ArgumentEvent::Appended { fragment, .. } => fragments.push_str(fragment),
            ArgumentEvent::Finished { .. } => finished += 1,
            _ => {}
        });
        start = end;
        if pushed.is_err() {
            // Text goes on arriving; it is kept.
            if let Some(rest) = text.get(start..) {
                assert!(stream.push(rest, &mut |_| panic!("an event after an error")).is_err());
            }
            break;
        }
    }
    assert_eq!(stream.text(), text);
    let ended = stream.finish().map(|_| ());
    (stream.snapshot(), ended, fragments, finished)
}

fuzz_target!(|data: &[u8]| {
    let Some((seed, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let json = serde_json::from_str::<Value>(&text);
    let whole = read(&text, |_| usize::MAX / 2);
    let mut state = u64::from(*seed) + 1;
    let torn = read(&text, |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 60).unwrap_or(1)
    });
    let bytes = read(&text, |_| 1);
    for other in [&torn, &bytes] {
        assert_eq!(whole.1, other.1, "{text}");
        assert_eq!(whole.2, other.2, "{text}");
        assert_eq!(whole.3, other.3, "{text}");
        assert_eq!(whole.0, other.0, "{text}");
    }
    let long = text.split(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).any(|token| token.len() > 400);
    match (&whole.1, json) {
        (Ok(()), Ok(json)) => assert_eq!(whole.0, Some(json)),
        (Err(_), Err(_)) => {}
        (Err(_), Ok(_)) if long => {}
        (ours, json) => panic!("{text:?}: {ours:?}, serde_json: {:?}", json.err()),
    }
});

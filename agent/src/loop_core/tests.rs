//! Aspects of the loop that its events do not show.

use super::large::cut;
use crate::message::{OutcomeKind, Part, ToolResultMessage};

fn shown(texts: &[&str], max: usize) -> String {
    let parts: Vec<Part> = texts.iter().map(|text| Part::text(*text)).collect();
    let mut result = ToolResultMessage::new("c", "t", OutcomeKind::Completed).with_content(parts);
    cut(&mut result, max, None);
    result.text()
}

#[test]
fn long_results_keep_their_ends() {
    assert_eq!(shown(&["short"], 5), "short");
    let text = shown(&["0123456789", "abcdefghij"], 8);
    assert!(text.starts_with("0123\n[… 12 of 20 bytes are left out here;"), "{text}");
    assert!(text.ends_with("…]\nghij"), "{text}");
    let text = shown(&["01", "23456789"], 8);
    assert!(text.starts_with("0123\n") && text.ends_with("\n6789"), "{text}");
    let text = shown(&["01234567", "89"], 8);
    assert!(text.ends_with("\n6789"), "{text}");
}

#[test]
fn texts_are_cut_between_characters() {
    let text = shown(&["ééééé"], 5);
    assert!(text.starts_with("é\n[… 6 of 10 bytes") && text.ends_with("\né"), "{text}");
    assert!(shown(&["x"], 0).contains("1 of 1 bytes"));
}

#[test]
fn what_is_no_text_stays() {
    let parts = vec![Part::text("a".repeat(100)), Part::image(b"png", "image/png")];
    let mut result = ToolResultMessage::new("c", "t", OutcomeKind::Completed).with_content(parts);
    result.structured = Some(serde_json::json!({"long": true}));
    cut(&mut result, 10, Some("h-1"));
    assert_eq!(result.content.len(), 2);
    assert!(result.text().contains("read it with `read_result`, handle `h-1`"));
    assert_eq!(result.structured, None);
}

//! Texts made by hand: what is hard about JSON, and what only looks like it.

use super::{agree, agree_torn, characters};
use agent::args::{ArgumentEvent, ArgumentStream};
use serde_json::Value;
use std::fmt::Write;

const JSON: &[&str] = &[
    r#"{"a":"x\ud83d\ude00\n\"é","b":[1,-2.5e3,true,null,{"c":[]}],"":{}}"#,
    r#" { "a" : [ ] , "b\u00e9\ud83d\ude00" : { "c" : [ [ ] , { } ] } , "a" : 2 } "#,
    "\t\r\n 12 ",
    "12",
    "-0",
    "-0.0e-0",
    "1E+2",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e-400",
    "true",
    "null ",
    r#""s""#,
    r#""""#,
    r#""\"\\\/\b\f\n\r\t\u0000\uFFFF\uabCD""#,
    "\"\u{7f}\u{80}\u{2028}\u{10ffff}\"",
    r#"[[],[{}],[[1]],"a",{"b":{"c":"d"}},[false]]"#,
    r#"{"a/b~c":{"~1":[{"":""}]}}"#,
];

const NOT_JSON: &[&str] = &[
    "",
    " ",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1,,2]",
    "[1}",
    "{]",
    r#"{"a"}"#,
    r#"{"a":}"#,
    r#"{"a" 1}"#,
    r#"{"a":1,}"#,
    r#"{,"a":1}"#,
    r#"{"a":1 "b":2}"#,
    r#"{"a":1]"#,
    r"{a:1}",
    "{1:1}",
    "{'a':1}",
    r#"{"a":1}}"#,
    r#"{"a":1} x"#,
    r#"{"a":1}{"b":2}"#,
    "[]]",
    "1 2",
    "12]",
    "truefalse",
    "true]",
    "tru",
    "tru3",
    "trueX",
    "True",
    "nul",
    "nulll",
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "-01",
    "00",
    "+1",
    ".5",
    "5.",
    "5.e1",
    "1e",
    "1e+",
    "-",
    "--1",
    "1-1",
    "1.2.3",
    "0x10",
    "1_000",
    "1e999",
    "-1e999",
    "[1.]",
    "[-]",
    "[01]",
    "[1e999]",
    r#""\ud83d""#,
    r#""\ude00""#,
    r#""\ud83dx""#,
    r#""\ud83d\n""#,
    r#""\ud83d\u0041""#,
    r#""\ud83d\ud83d\ude00""#,
    r#""\ud83d"#,
    r#""\ud83d\"#,
    r#""\ud83d\u"#,
    r#""\ud83d\ude0"#,
    r#""\u12"#,
    r#""\u12""#,
    r#""\u12g4""#,
    r#""\u+123""#,
    r#""\x41""#,
    r#""\"#,
    r#"{"\ud83d":1}"#,
    r#"{"\q":1}"#,
    "\"a\nb\"",
    "\"\u{0}\"",
    "{\"a\tb\":1}",
    "\u{feff}{}",
    "{\u{a0}}",
    "\u{b}1",
    "// c\n1",
    "[1] // c",
    "```json\n{}\n```",
];

#[test]
fn nasty_texts_torn_anywhere() {
    for text in JSON {
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
        agree_torn(text);
    }
    for text in NOT_JSON {
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        agree_torn(text);
    }
}

/// Text that was cut is only incomplete, and nothing makes it whole.
#[test]
fn every_cut_is_incomplete() {
    let text = r#"{"a":"x\ud83d\ude00\n\"é","b":[1,-2.5e3,true,null,{"c":[]}],"":{}}"#;
    let mut stream = ArgumentStream::untyped();
    for delta in characters(text) {
        let error = stream.finish().unwrap_err();
        assert!(!stream.is_broken(), "{} {error}", stream.text());
        stream.push(delta, &mut |_| {}).unwrap();
    }
    assert_eq!(stream.finish(), Ok(text));
    assert_eq!(stream.into_text(), text);
}

/// A megabyte, byte by byte: work that grew with the text would take minutes.
#[test]
fn work_is_linear() {
    fn is_send<T: Send + Sync>(_: &T) {}
    let start = std::time::Instant::now();
    let text = format!(r#"{{"a":"{}","b":[{}1]}}"#, r"line\n".repeat(100_000), "12,".repeat(100_000));
    let mut stream = ArgumentStream::untyped();
    is_send(&stream);
    let mut length = 0;
    for delta in characters(&text) {
        stream
            .push(delta, &mut |event| {
                if let ArgumentEvent::Appended { fragment, .. } = event {
                    length += fragment.len();
                }
            })
            .unwrap();
    }
    assert_eq!((stream.finish(), length), (Ok(text.as_str()), 500_000));
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn depth_is_that_of_serde_json() {
    for depth in [126, 127, 128, 129, 100_000] {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for text in [text.as_str(), &text[..text.len() / 2]] {
                agree(text, std::iter::once(text)).unwrap();
                agree(text, characters(text)).unwrap();
            }
        }
    }
}

/// The one exception.
#[test]
fn long_numbers_are_refused() {
    let push = |text: &str| ArgumentStream::untyped().push(text, &mut |_| {});
    for (length, taken) in [(400, true), (401, false), (100_000, false)] {
        let text = format!("[0.{}]", "1".repeat(length - 2));
        assert_eq!(push(&text).is_ok(), taken, "{length}");
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }
    let mut stream = ArgumentStream::untyped();
    let error = (0..1_000).find_map(|_| stream.push("1", &mut |_| {}).err()).unwrap();
    assert_eq!(error.to_string(), "not valid JSON: a number longer than 400 bytes at byte 401");
    assert_eq!(stream.snapshot(), None);
    // The place does not depend on how the text was torn.
    let long = "1".repeat(1_000);
    for size in [3, 7, 400, 1_000] {
        let mut stream = ArgumentStream::untyped();
        let torn = long.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap());
        let again = { torn }.find_map(|piece| stream.push(piece, &mut |_| {}).err()).unwrap();
        assert_eq!(again, error, "{size}");
    }
}

/// With `raw_value`, `serde_json` takes objects with one private key for something else.
#[test]
fn private_keys_are_keys() {
    for text in [r#"{"$serde_json::private::RawValue":"[1]"}"#, r#"{"$serde_json::private::RawValue":5}"#] {
        let mut stream = ArgumentStream::untyped();
        stream.push(text, &mut |_| {}).unwrap();
        assert_eq!(stream.snapshot().unwrap().to_string(), text);
    }
}

/// Is `part` what could be known of `whole` at some time?
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::String(part), Value::String(whole)) => whole.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(p, w)| is_part(p, w))
        }
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, p)| whole.get(key).is_some_and(|w| is_part(p, w)))
        }
        _ => part == whole,
    }
}

#[test]
fn snapshots_grow() {
    let text = r#" {"a":"x\ud83d\ude00\n\"é","b":[1,-2.5e3,true,null,{"c":[]}],"\u00e9":{"d":""},"n":12} "#;
    let whole: Value = serde_json::from_str(text).unwrap();
    let mut stream = ArgumentStream::untyped();
    let mut seen = Vec::new();
    for delta in characters(text) {
        stream.push(delta, &mut |_| {}).unwrap();
        if let Some(part) = stream.snapshot() {
            assert!(is_part(&part, &whole), "{part}");
            if seen.last() != Some(&part) {
                seen.push(part);
            }
        }
    }
    let mut shown = String::new();
    for part in &seen[..11] {
        writeln!(shown, "{part}").unwrap();
    }
    expect_test::expect![[r#"
        {}
        {"a":""}
        {"a":"x"}
        {"a":"x😀"}
        {"a":"x😀\n"}
        {"a":"x😀\n\""}
        {"a":"x😀\n\"é"}
        {"a":"x😀\n\"é","b":[]}
        {"a":"x😀\n\"é","b":[1]}
        {"a":"x😀\n\"é","b":[1,-2500.0]}
        {"a":"x😀\n\"é","b":[1,-2500.0,true]}
    "#]]
    .assert_eq(&shown);
    assert_eq!(seen.last(), Some(&whole));
}

#[test]
fn events_in_order() {
    let mut log = String::new();
    let mut stream = ArgumentStream::untyped();
    for delta in [r#"{"a":"x"#, r"\n", r#"y","b":[1"#, "2,tr", r#"ue,{"c":"#, "null}]}"] {
        stream
            .push(delta, &mut |event| {
                let told = match event {
                    ArgumentEvent::Started { kind, .. } => format!("{kind:?}"),
                    ArgumentEvent::Appended { fragment, .. } => format!("+{fragment:?}"),
                    ArgumentEvent::Finished { json, .. } => format!("={json}"),
                    other => format!("{other:?}"),
                };
                writeln!(log, "{} {told}", event.path()).unwrap();
                assert_eq!(event.path().depth(), event.path().to_string().matches('/').count());
            })
            .unwrap();
    }
    expect_test::expect![[r#"
         Object
        /a Text
        /a +"x"
        /a +"\n"
        /a +"y"
        /a ="x\ny"
        /b Array
        /b/0 Number
        /b/0 =12
        /b/1 Boolean
        /b/1 =true
        /b/2 Object
        /b/2/c Null
        /b/2/c =null
        /b/2 ={"c":null}
        /b =[12,true,{"c":null}]
         ={"a":"x\ny","b":[12,true,{"c":null}]}
    "#]]
    .assert_eq(&log);
}

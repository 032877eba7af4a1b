//! What is parsed: types, and texts for them.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
pub(crate) struct Filters {
    language: String,
    min_stars: u32,
    archived: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Fast,
    Thorough,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
pub(crate) struct Small {
    query: String,
    limit: u32,
    filters: Filters,
    ids: Vec<i64>,
    mode: Mode,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
pub(crate) struct Big {
    path: String,
    content: String,
    mode: Mode,
    create_dirs: bool,
    lines: u32,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
pub(crate) struct Many {
    all: Vec<Filters>,
    tags: Vec<String>,
}

pub(crate) const SMALL: &str = r#"{"query":"async runtime","limit":25,"filters":{"language":"rust","min_stars":100,"archived":false},"ids":[1,22,333,4444,55555,666666,7777777,88888888,999999999,10],"mode":"thorough"}"#;
pub(crate) const COERCED: &str = r#"{"query":"async runtime","limit":"25","filters":{"language":"rust","min_stars":"100","archived":"false"},"ids":[1,"22",333,4444,55555,666666,7777777,88888888,999999999,10.0],"mode":"thorough"}"#;
pub(crate) const FAULTS: &str = r#"{"qeury":"async runtime","limit":"many","filters":{"language":7,"min_stars":-1,"archived":"maybe"},"ids":[1,22,333],"mode":"throrough"}"#;

pub(crate) fn big() -> String {
    let line = "    let value = compute(\\\"input\\\", 42); // some text of a file\\n";
    let content = line.repeat(100_000 / line.len());
    format!(r#"{{"path":"src/main.rs","content":"{content}","mode":"fast","create_dirs":true,"lines":1600}}"#)
}

/// 100 KB again, of small values.
pub(crate) fn many() -> String {
    let one = r#"{"language":"rust","min_stars":100,"archived":false}"#;
    let all = vec![one; 1_500].join(",");
    let tags = vec![r#""async""#; 2_500].join(",");
    format!(r#"{{"all":[{all}],"tags":[{tags}]}}"#)
}

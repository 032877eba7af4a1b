//! What one call costs. `arguments <shape> <floor|parse> <n>` makes `n` calls; `instructions.sh` counts the
//! instructions of each. Without arguments every shape runs a few times, to show that it still works.

use agent::args::{Plan, PlanOptions};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use std::hint::black_box;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
struct Filters {
    language: String,
    min_stars: u32,
    archived: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Fast,
    Thorough,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
struct Small {
    query: String,
    limit: u32,
    filters: Filters,
    ids: Vec<i64>,
    mode: Mode,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
struct Big {
    path: String,
    content: String,
    mode: Mode,
    create_dirs: bool,
    lines: u32,
}

const SMALL: &str = r#"{"query":"async runtime","limit":25,"filters":{"language":"rust","min_stars":100,"archived":false},"ids":[1,22,333,4444,55555,666666,7777777,88888888,999999999,10],"mode":"thorough"}"#;
const COERCED: &str = r#"{"query":"async runtime","limit":"25","filters":{"language":"rust","min_stars":"100","archived":"false"},"ids":[1,"22",333,4444,55555,666666,7777777,88888888,999999999,10.0],"mode":"thorough"}"#;
const FAULTS: &str = r#"{"qeury":"async runtime","limit":"many","filters":{"language":7,"min_stars":-1,"archived":"maybe"},"ids":[1,22,333],"mode":"throrough"}"#;

fn big() -> String {
    let line = "    let value = compute(\\\"input\\\", 42); // some text of a file\\n";
    let content = line.repeat(100_000 / line.len());
    format!(r#"{{"path":"src/main.rs","content":"{content}","mode":"fast","create_dirs":true,"lines":1600}}"#)
}

fn run<T: DeserializeOwned + JsonSchema>(floor: bool, text: &str, calls: usize) -> Result<usize, String> {
    let plan = Plan::for_type::<T>("bench", PlanOptions::default()).map_err(|e| e.to_string())?;
    let mut seen = 0;
    for _ in 0..calls {
        if floor {
            seen += usize::from(serde_json::from_str::<T>(black_box(text)).map(black_box).is_ok());
        } else {
            seen += match plan.parse::<T>(black_box(text)) {
                Ok(parsed) => 1 + black_box(parsed).coercions.len(),
                Err(error) => black_box(error.to_text()).len(),
            };
        }
    }
    Ok(seen)
}

fn shape(name: &str, floor: bool, calls: usize) -> Result<usize, String> {
    match name {
        "small" => run::<Small>(floor, SMALL, calls),
        "big" => run::<Big>(floor, &big(), calls),
        "coerced" => run::<Small>(floor, COERCED, calls),
        "faults" => run::<Small>(floor, FAULTS, calls),
        _ => Err(format!("no shape {name}: small, big, coerced or faults")),
    }
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [name, what, calls] = &arguments[..] {
        let calls = calls.parse().map_err(|e| format!("{calls}: {e}"))?;
        black_box(shape(name, what == "floor", calls)?);
        return Ok(());
    }
    for (name, each) in [("small", 1), ("big", 1), ("coerced", 6)] {
        let seen = shape(name, false, 3)?;
        if seen != 3 * each {
            return Err(format!("{name}: {seen} instead of {}", 3 * each));
        }
    }
    if shape("faults", false, 1)? < 300 {
        return Err("faults: no report".into());
    }
    Ok(())
}

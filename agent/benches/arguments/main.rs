//! What one call costs. `arguments <shape> <floor|parse|stream> <n>` makes `n` calls; `instructions.sh` counts the
//! instructions of each. Without arguments every shape runs a few times, to show that it still works.

mod shapes;

use agent::args::{ArgumentStream, Plan, PlanOptions};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shapes::{
    BARE, Big, COERCED, CONDITION, CONDITIONAL, Deep, ExternalMany, FAULT, FAULTS, FOUR_OF_FIFTY, Fifty,
    Floats, Integers, Many, NAMED, NESTED_FAULT, NESTED_FAULTS, Numbers, PAIR, Pair, RECTS, SCALARS, SMALL,
    Scalars, Small, TAGGED, TaggedMany, TaggedOne, Texts, UNKNOWN, UNKNOWNS, UNTAGGED, UntaggedMany,
    UntaggedOne, big, deep, list, many, map,
};
use std::hint::black_box;

/// As the text arrives from a model: four bytes at a time.
fn stream(plan: &Plan, text: &str) -> Result<usize, String> {
    let mut stream = ArgumentStream::new(plan);
    let mut rest = text;
    let mut events = 0;
    while !rest.is_empty() {
        let (delta, left) = rest.split_at_checked(4).unwrap_or((rest, ""));
        rest = left;
        let counted =
            stream.push(delta, &mut |event| events += usize::from(black_box(event).path().depth() > 0));
        counted.map_err(|e| e.to_string())?;
    }
    stream.finish().map_err(|e| e.to_string())?;
    black_box(stream.issues());
    Ok(usize::from(events > 0))
}

#[derive(Clone, Copy)]
enum Work {
    Floor,
    Parse,
    /// Parses, and reads the coercions.
    Check,
    Stream,
}

fn run<T: DeserializeOwned + JsonSchema>(work: Work, text: &str, calls: usize) -> Result<usize, String> {
    let plan = Plan::for_type::<T>("bench", PlanOptions::default()).map_err(|e| e.to_string())?;
    run_plan::<T>(&plan, work, text, calls)
}

fn run_plan<T: DeserializeOwned>(plan: &Plan, work: Work, text: &str, calls: usize) -> Result<usize, String> {
    let mut seen = 0;
    for _ in 0..calls {
        seen += match work {
            Work::Floor => usize::from(serde_json::from_str::<T>(black_box(text)).map(black_box).is_ok()),
            Work::Parse | Work::Check => match plan.parse::<T>(black_box(text)) {
                Ok(parsed) if matches!(work, Work::Check) => 1 + parsed.coercions().len(),
                Ok(parsed) => usize::from(black_box(Some(parsed)).is_some()),
                Err(error) => black_box(error.to_text()).len(),
            },
            Work::Stream => stream(plan, black_box(text))?,
        };
    }
    Ok(seen)
}

fn conditional(work: Work, calls: usize) -> Result<usize, String> {
    let schema: Value = serde_json::from_str(CONDITION).map_err(|e| e.to_string())?;
    let plan = Plan::compile("bench", &schema, PlanOptions::default()).map_err(|e| e.to_string())?;
    run_plan::<Value>(&plan, work, CONDITIONAL, calls)
}

/// Runs a shape, and returns the number of values and coercions, or of characters of its reports.
fn shape(name: &str, work: Work, calls: usize) -> Result<usize, String> {
    match name {
        "small" => run::<Small>(work, SMALL, calls),
        "pair" => run::<Pair>(work, PAIR, calls),
        "scalars" => run::<Scalars>(work, SCALARS, calls),
        "big" => run::<Big>(work, &big(), calls),
        "many" => run::<Many>(work, &many(), calls),
        "numbers" => run::<Numbers>(work, &list(&["12345", "8", "9876543210", "77"]), calls),
        "floats" => run::<Floats>(work, &list(&["1.5", "38.7223", "-9.139337", "0.125"]), calls),
        "deep" => run::<Deep>(work, &deep(), calls),
        "texts" => run::<Texts>(work, &map(|n| format!(r#""value {n}""#)), calls),
        "integers" => run::<Integers>(work, &map(|n| n.to_string()), calls),
        "tagged" => run::<TaggedOne>(work, TAGGED, calls),
        "tagged-many" => run::<TaggedMany>(work, &list(&RECTS), calls),
        "untagged" => run::<UntaggedOne>(work, UNTAGGED, calls),
        "untagged-many" => run::<UntaggedMany>(work, &list(&BARE), calls),
        "external-many" => run::<ExternalMany>(work, &list(&NAMED), calls),
        "optional" => run::<Fifty>(work, FOUR_OF_FIFTY, calls),
        "conditional" => conditional(work, calls),
        "coerced" => run::<Small>(work, COERCED, calls),
        "faults" => run::<Scalars>(work, FAULTS, calls),
        "fault" => run::<Scalars>(work, FAULT, calls),
        "nested-faults" => run::<Small>(work, NESTED_FAULTS, calls),
        "nested-fault" => run::<Small>(work, NESTED_FAULT, calls),
        "unknown" => run::<Fifty>(work, UNKNOWN, calls),
        "unknowns" => run::<Fifty>(work, UNKNOWNS, calls),
        _ => Err(format!("no shape {name}")),
    }
}

/// Shapes that are accepted, and how many values and coercions a call gives.
const ACCEPTED: [(&str, usize); 18] = [
    ("small", 1),
    ("pair", 1),
    ("scalars", 1),
    ("big", 1),
    ("many", 1),
    ("numbers", 1),
    ("floats", 1),
    ("deep", 1),
    ("texts", 1),
    ("integers", 1),
    ("tagged", 1),
    ("tagged-many", 1),
    ("untagged", 1),
    ("untagged-many", 1),
    ("external-many", 1),
    ("optional", 1),
    ("conditional", 1),
    ("coerced", 6),
];

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [name, work, calls] = &arguments[..] {
        let calls = calls.parse().map_err(|e| format!("{calls}: {e}"))?;
        let work = match work.as_str() {
            "floor" => Work::Floor,
            "parse" => Work::Parse,
            "stream" => Work::Stream,
            _ => return Err(format!("no {work}: floor, parse or stream")),
        };
        black_box(shape(name, work, calls)?);
        return Ok(());
    }
    for (name, each) in ACCEPTED {
        let seen = shape(name, Work::Check, 3)?;
        if seen != 3 * each {
            return Err(format!("{name}: {seen} instead of {}", 3 * each));
        }
    }
    for name in ["small", "big", "many"] {
        if shape(name, Work::Stream, 3)? != 3 {
            return Err(format!("{name}: no events"));
        }
    }
    for name in ["faults", "fault", "nested-faults", "nested-fault", "unknown", "unknowns"] {
        if shape(name, Work::Parse, 1)? < 200 {
            return Err(format!("{name}: no report"));
        }
    }
    Ok(())
}

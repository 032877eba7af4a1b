//! What one call costs. `arguments <shape> <floor|parse|stream> <n>` makes `n` calls; `instructions.sh` counts the
//! instructions of each. Without arguments every shape runs a few times, to show that it still works.

mod shapes;

use agent::args::{ArgumentStream, Plan, PlanOptions};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use shapes::{Big, COERCED, FAULTS, Many, SMALL, Small, big, many};
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
enum What {
    Floor,
    Parse,
    Stream,
}

fn run<T: DeserializeOwned + JsonSchema>(what: What, text: &str, calls: usize) -> Result<usize, String> {
    let plan = Plan::for_type::<T>("bench", PlanOptions::default()).map_err(|e| e.to_string())?;
    let mut seen = 0;
    for _ in 0..calls {
        seen += match what {
            What::Floor => usize::from(serde_json::from_str::<T>(black_box(text)).map(black_box).is_ok()),
            What::Parse => match plan.parse::<T>(black_box(text)) {
                Ok(parsed) => 1 + black_box(parsed).coercions.len(),
                Err(error) => black_box(error.to_text()).len(),
            },
            What::Stream => stream(&plan, black_box(text))?,
        };
    }
    Ok(seen)
}

fn shape(name: &str, what: What, calls: usize) -> Result<usize, String> {
    match name {
        "small" => run::<Small>(what, SMALL, calls),
        "big" => run::<Big>(what, &big(), calls),
        "many" => run::<Many>(what, &many(), calls),
        "coerced" => run::<Small>(what, COERCED, calls),
        "faults" => run::<Small>(what, FAULTS, calls),
        _ => Err(format!("no shape {name}: small, big, many, coerced or faults")),
    }
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [name, what, calls] = &arguments[..] {
        let calls = calls.parse().map_err(|e| format!("{calls}: {e}"))?;
        let what = match what.as_str() {
            "floor" => What::Floor,
            "parse" => What::Parse,
            "stream" => What::Stream,
            _ => return Err(format!("no {what}: floor, parse or stream")),
        };
        black_box(shape(name, what, calls)?);
        return Ok(());
    }
    for (name, what, each) in [
        ("small", What::Parse, 1),
        ("big", What::Parse, 1),
        ("many", What::Parse, 1),
        ("coerced", What::Parse, 6),
        ("small", What::Stream, 1),
        ("big", What::Stream, 1),
        ("many", What::Stream, 1),
    ] {
        let seen = shape(name, what, 3)?;
        if seen != 3 * each {
            return Err(format!("{name}: {seen} instead of {}", 3 * each));
        }
    }
    if shape("faults", What::Parse, 1)? < 300 {
        return Err("faults: no report".into());
    }
    Ok(())
}

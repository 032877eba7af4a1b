//! What others cost for the same arguments. `others <shape> <who> <n>` makes `n` calls; `run.sh` counts instructions.

#[path = "../../arguments/shapes.rs"]
mod shapes;

use agent::args::{Plan, PlanOptions};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shapes::{Big, COERCED, FAULTS, Many, SMALL, Small, big, many};
use std::{error::Error, fmt::Write, hint::black_box};

/// How much came of it, so that nothing is left out by the compiler.
fn call<T: DeserializeOwned>(
    who: &str,
    plan: &Plan,
    validator: &Validator,
    text: &str,
) -> Result<usize, Box<dyn Error>> {
    Ok(match who {
        "serde_json" => black_box(serde_json::from_str::<T>(text)).map_or(0, |_| 1),
        "agent" => match black_box(plan.parse::<T>(text)) {
            Ok(_) => 1,
            Err(error) => error.to_text().len(),
        },
        "from_value" => {
            black_box(serde_json::from_value::<T>(serde_json::from_str::<Value>(text)?)).map_or(0, |_| 1)
        }
        "sonic-rs" => black_box(sonic_rs::from_str::<T>(text)).map_or(0, |_| 1),
        // A valid value is made into the type as well; of another, every error is told.
        "jsonschema" => {
            let value = serde_json::from_str::<Value>(text)?;
            if validator.is_valid(&value) {
                black_box(serde_json::from_value::<T>(value)).map_or(0, |_| 1)
            } else {
                let mut told = String::new();
                for error in validator.iter_errors(&value) {
                    writeln!(told, "{}: {error}", error.instance_path())?;
                }
                black_box(told).len()
            }
        }
        _ => {
            return Err(format!("no {who}: serde_json, agent, from_value, sonic-rs or jsonschema").into());
        }
    })
}

fn calls<T: DeserializeOwned + JsonSchema>(who: &str, text: &str, n: usize) -> Result<usize, Box<dyn Error>> {
    let plan = Plan::for_type::<T>("bench", PlanOptions::default())?;
    let validator = jsonschema::validator_for(schemars::schema_for!(T).as_value())?;
    (0..n).map(|_| call::<T>(who, &plan, &validator, black_box(text))).sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [shape, who, n] = &arguments[..] else {
        return Err("usage: others SHAPE WHO N".into());
    };
    let n = n.parse()?;
    let came = match shape.as_str() {
        "small" => calls::<Small>(who, SMALL, n)?,
        "big" => calls::<Big>(who, &big(), n)?,
        "many" => calls::<Many>(who, &many(), n)?,
        "coerced" => calls::<Small>(who, COERCED, n)?,
        "faults" => calls::<Small>(who, FAULTS, n)?,
        _ => return Err(format!("no shape {shape}: small, big, many, coerced or faults").into()),
    };
    println!("{came}");
    Ok(())
}

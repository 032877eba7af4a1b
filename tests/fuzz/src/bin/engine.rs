//! Any text against a handful of types under every policy: no panic, and every law that needs no schema.
//! The first byte chooses the type.
#![no_main]

use agent::testing::verify_call;
use agent_fuzz::{Choices, Command, Lists, Scalars, plans};
use libfuzzer_sys::fuzz_target;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

use agent::args::Plan;

static SCALARS: LazyLock<Vec<Plan>> = LazyLock::new(|| plans::<Scalars>("scalars"));
static LISTS: LazyLock<Vec<Plan>> = LazyLock::new(|| plans::<Lists>("lists"));
static CHOICES: LazyLock<Vec<Plan>> = LazyLock::new(|| plans::<Choices>("choices"));
static COMMAND: LazyLock<Vec<Plan>> = LazyLock::new(|| plans::<Command>("command"));

fn verify<T: DeserializeOwned + JsonSchema>(plans: &[Plan], text: &str) {
    for plan in plans {
        if let Err(disagreement) = verify_call::<T>(plan, text) {
            panic!("{disagreement}");
        }
    }
    // Plans come from the narrowest policy to the widest.
    for pair in plans[..3].windows(2) {
        assert!(pair[0].parse::<T>(text).is_err() || pair[1].parse::<T>(text).is_ok(), "narrower accepts: {text}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((which, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    match which % 4 {
        0 => verify::<Scalars>(&SCALARS, &text),
        1 => verify::<Lists>(&LISTS, &text),
        2 => verify::<Choices>(&CHOICES, &text),
        _ => verify::<Command>(&COMMAND, &text),
    }
});

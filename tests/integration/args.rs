//! The argument engine on derived types: what is accepted, what is refused, and where.

use agent::args::{Coercion, CoercionPolicy, Issue, Plan, PlanOptions};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use std::fmt::Debug;

#[path = "args_bounds.rs"]
mod bounds;
#[path = "args_combined.rs"]
mod combined;
#[path = "args_exact.rs"]
mod exact;
#[path = "args_foreign.rs"]
mod foreign;
#[path = "args_foreign_hostile.rs"]
mod foreign_hostile;
#[path = "args_foreign_wild.rs"]
mod foreign_wild;
#[path = "args_knobs.rs"]
mod knobs;
#[path = "args_policies.rs"]
mod policies;
#[path = "args_properties.rs"]
mod properties;
#[path = "args_reports.rs"]
mod reports;
#[path = "args_robust.rs"]
mod robust;
#[path = "args_rounded.rs"]
mod rounded;
#[path = "args_scalars.rs"]
mod scalars;
#[path = "args_schema.rs"]
mod schema;
#[path = "args_shapes.rs"]
mod shapes;
#[path = "args_slips.rs"]
mod slips;
#[path = "args_stream.rs"]
mod stream;
#[path = "args_stream_checks.rs"]
mod stream_checks;
#[path = "args_suite.rs"]
mod suite;
#[path = "args_types.rs"]
mod types;
#[path = "args_types_hard.rs"]
mod types_hard;
#[path = "args_vectors.rs"]
mod vectors;

/// One parameter.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct W<T> {
    v: T,
}

fn w<T>(v: T) -> W<T> {
    W { v }
}

fn options(policy: CoercionPolicy) -> PlanOptions {
    PlanOptions::default().coercion(policy)
}

#[track_caller]
fn plan<T: JsonSchema>(options: PlanOptions) -> Plan {
    Plan::for_type::<T>("t", options).unwrap_or_else(|e| panic!("{e}"))
}

/// The path and the rule of every coercion.
type Records = Vec<(String, &'static str)>;

/// The value, and what was coerced.
#[track_caller]
fn parse<T: DeserializeOwned + JsonSchema>(
    policy: CoercionPolicy,
    text: &str,
) -> Result<(T, Records), Vec<Issue>> {
    match plan::<T>(options(policy)).parse::<T>(text) {
        Ok(parsed) => {
            let records = records(parsed.coercions());
            Ok((parsed.value, records))
        }
        Err(error) => Err(error.issues().to_vec()),
    }
}

fn records(coercions: &[Coercion]) -> Records {
    coercions.iter().map(|c| (c.path.clone(), c.rule.as_str())).collect()
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn ok<T: DeserializeOwned + JsonSchema + PartialEq + Debug>(text: &str, want: T) {
    match plan::<T>(PlanOptions::default()).parse::<T>(text) {
        Ok(parsed) => assert_eq!(parsed.value, want, "{text}"),
        Err(error) => panic!("{text}\n{error}"),
    }
}

/// Refused with exactly these issues, in this order.
#[track_caller]
fn bad<T: DeserializeOwned + JsonSchema + Debug>(text: &str, want: &[(&str, &str)]) {
    match plan::<T>(PlanOptions::default()).parse::<T>(text) {
        Ok(parsed) => panic!("{text} was taken as {parsed:?}"),
        Err(error) => {
            let got: Vec<(&str, &str)> =
                error.issues().iter().map(|i| (i.path.as_str(), i.code.as_str())).collect();
            assert_eq!(got, want, "{text}\n{error}");
        }
    }
}

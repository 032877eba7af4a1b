//! Proofs for the arguments of your own tools (feature `testing`, for dev-dependencies).
//!
//! | to | use |
//! | --- | --- |
//! | prove that a type's schema, the engine and serde agree about it | [`assert_agrees`], [`Agreement`] |
//! | see what a tool does with the slips that real models make | [`fuzz_tool`], [`fuzz_tools`] |
//! | hold the engine's own laws against a call, for logs and fuzzers | [`verify_call`] |
//! | drive an assistant without a model | [`ScriptedModel`](crate::ScriptedModel) |
//!
//! Everything here is deterministic: a test that uses it fails always or never. The independent opinion about schemas is
//! that of the crate [`jsonschema`](https://docs.rs/jsonschema).

mod agreement;
mod call;
mod choices;
mod fuzz;
mod law;
mod mutate;
mod pattern;
mod sample;
mod slips;

pub use agreement::{Agreement, AgreementReport, assert_agrees};
pub use call::verify_call;
pub use fuzz::{Finding, FindingKind, FuzzReport, SlipReport, fuzz_tool, fuzz_tools};
pub use law::{Disagreement, Law};

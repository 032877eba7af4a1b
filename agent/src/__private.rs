//! The items that generated code uses. They are not part of the public interface, and may change in each version. The macros always have
//! the same version as this crate.

pub use crate::args::hooks::{CheckedType, FindingList, FindingStep, checked};
pub use crate::args::{CoercionPolicy, CoercionRule, UnknownKeys};
pub use crate::tool::BoxFuture;
pub use crate::tool::approval::Approval;
pub use crate::tool::arguments::{Argument, ToolArgs};
pub use crate::tool::composed::{composed_len, composed_text, some_text};
pub use crate::tool::constraint::{Bound, KeysUnknown, SortUnknown, bound, text_keys};
pub use crate::tool::context::ToolContext;
pub use crate::tool::convert::{
    ErrorUnknown, ErrorWithSource, OfError, OfValue, PlainValue, ReturnError, ReturnValue, Returned,
    ValueUnknown,
};
pub use crate::tool::debug_secrets::{AskDebug, debug_is_asked};
pub use crate::tool::glue::{
    AppState, Compiled, DefaultValue, Inject, InjectState, JsonUnknown, blocking, default, from_text, keys,
    limit_length, read_with, sendable, show_default, skipped, typed,
};
pub use crate::tool::listing::{StaticTool, assert_distinct, duplicate_message, duplicate_message_len};
pub use crate::tool::options::ToolOptions;
pub use crate::tool::outcome::ToolOutcome;
pub use crate::tool::policy::Effect;
pub use crate::tool::probe::{
    AdviceUnknown, ArgumentUnknown, DebugUnknown, FieldType, NotRead, NotWritten, ObjectUnknown, OrIdle,
    OrStandIn, OutputType, OwnType, Probe, ReplacedType, RunUnknown, SchemaUnknown, SharedReceiver, advise,
    argument, field, needs_name, output, own_argument, runs, shared, whole_object,
};
pub use crate::tool::result_schema::{
    NoOutputSchema, OutputField, OutputOfValue, OutputUnknown, OutputWithSchema, ResultOf, ResultSchema,
    output_from,
};
pub use crate::tool::schemas::{CompareNames, Flattened, closed_set, names_of};
pub use crate::tool::set::{Entry, IntoTools, ToolSet, further_tool_blocks_say_set_and_a_name};
pub use agent_macros::{ToolArgs, tools_impl};
pub use std::borrow::Cow;
pub use std::boxed::Box;
pub use std::convert::{From, Into};
pub use std::default::Default;
pub use std::option::Option;
pub use std::primitive::{bool, str, u8};
pub use std::result::Result;
pub use std::sync::{Arc, LazyLock};
pub use std::time::Duration;
pub use {schemars, serde, serde_json};

/// Returns `Option::Some`. The expansion of schemars writes `Some` without a path, which resolves to this function. Unlike the variant, a
/// function is only in the value namespace, so it does not conflict with a user's type `Some`.
#[expect(non_snake_case, reason = "has the name of the variant that it replaces")]
pub const fn Some<T>(value: T) -> Option<T> {
    Option::Some(value)
}

/// Clones a handle. Generated code calls this function, because the trait `Clone` may not be in scope.
pub fn share<T>(value: &Arc<T>) -> Arc<T> {
    Arc::clone(value)
}

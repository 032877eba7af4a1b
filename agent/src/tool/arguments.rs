//! Types that are arguments of tools.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A type whose values a model sends. Implemented by [`#[derive(ToolArgs)]`](macro@crate::ToolArgs).
///
/// The trait itself neither parses nor describes values. serde's `Deserialize` and schemars' `JsonSchema` do this, and the derive
/// implements them, too.
///
/// ```
/// use agent::ToolArgs;
///
/// #[derive(ToolArgs)]
/// struct Place { city: String }
///
/// #[derive(ToolArgs)]
/// enum Unit { Celsius, Fahrenheit }
///
/// assert!(<Place as ToolArgs>::OBJECT);
/// assert!(!<Unit as ToolArgs>::OBJECT);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not derive `ToolArgs`",
    note = "write `#[derive(ToolArgs)]` above the type"
)]
pub trait ToolArgs {
    /// Whether a value is a JSON object with fixed fields. If the only argument of a `#[tool]` function has such a type, the fields become
    /// the parameters of the tool. Exceptions are arguments by reference, and arguments with `nested`, `flatten`, `with` or a `#[cfg]`.
    const OBJECT: bool;

    /// Returns the value as JSON, or `None` by default. The derive implements this method for enums without fields, so that their default
    /// values need no `Serialize`.
    #[doc(hidden)]
    fn __json(&self) -> Option<Value> {
        None
    }
}

/// A by-value parameter of a tool: any type that serde can deserialize and schemars can describe.
///
/// Every type with these bounds implements the trait, so a derive is enough.
///
/// ```
/// use agent::args::{InvalidArguments, Plan};
/// use agent::tool::Argument;
///
/// /// Reads any type that a model can send.
/// fn read<T: Argument>(plan: &Plan, text: &str) -> Result<T, InvalidArguments> {
///     plan.parse::<T>(text).map(|parsed| parsed.value)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from what a model sends",
    label = "neither arguments nor an answer",
    note = "derive it: `#[derive(ToolArgs)]` (or serde's `Deserialize` and schemars' `JsonSchema`)"
)]
pub trait Argument: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> Argument for T {}

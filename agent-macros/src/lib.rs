//! The macros of `agent`. Use them through the crate `agent`: generated code refers to `agent`, which also
//! contains the documentation of the macros.
//!
//! Each macro is a pipeline: parse → validate → expand. All mistakes are collected, and the user's item is always emitted. The paths in
//! generated code begin with `::`, or with the path in `crate = …`. The code for an item is in one anonymous constant, except the type
//! that `#[tool]` makes for a function.

mod args;
mod diag;
mod doc;
#[cfg(test)]
mod expansions;
mod grammar;
mod manifest;
mod path;
mod policy;
mod tool;
mod tools;
mod types;

use proc_macro::TokenStream;

/// Documented as `agent::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(options.into(), &item.into()).into()
}

/// Documented as `agent::ToolArgs`.
#[proc_macro_derive(ToolArgs, attributes(arg, serde, schemars, validate, garde))]
pub fn tool_args(item: TokenStream) -> TokenStream {
    args::derive(&syn::parse_macro_input!(item), args::Kind::Args).into()
}

/// Documented as `agent::ToolOutput`.
#[proc_macro_derive(ToolOutput, attributes(arg, serde))]
pub fn tool_output(item: TokenStream) -> TokenStream {
    args::derive(&syn::parse_macro_input!(item), args::Kind::Output).into()
}

/// Called by `agent::tools!`, which puts `($crate)` before the input.
#[doc(hidden)]
#[proc_macro]
pub fn tools_impl(input: TokenStream) -> TokenStream {
    tools::expand(input.into()).into()
}

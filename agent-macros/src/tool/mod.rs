//! `#[tool]`: parses, validates and expands an item.
//!
//! The user's item is always emitted. The attributes of this crate are removed, unless a generated derive reads them or the item cannot be
//! parsed. After a mistake, the generated impls compile but never run, so that one mistake causes only one compiler error, and a
//! `tools![…]` that uses the item reports no further errors.

mod approval;
pub(crate) mod attr;
mod block;
mod check;
mod expand;
mod function;
mod item;
mod model;
mod name;
mod options;
mod param;
mod structure;
#[cfg(test)]
mod tests;
mod timeout;

use crate::diag::Errors;
use crate::doc::{self, Docs};
use attr::{Doc, Options, ToolItem};
use item::Item;
use model::ToolHeader;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::Attribute;

pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    match syn::parse2(item.clone()) {
        Ok(Item::Function(function)) => function::process(options, function),
        Ok(Item::Type(input)) => structure::process(options, &input),
        Ok(Item::Block(block)) => block::process(options, block),
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #item)
        }
    }
}

/// Returns the header of a tool, and each argument that the docs list, with its text. The options `name` and `description` replace the
/// item's name and docs.
fn tool_header(
    options: Options,
    item: &Ident,
    snake: bool,
    attrs: &[Attribute],
    errors: &mut Errors,
) -> (ToolHeader, Vec<(String, String)>) {
    let name = name::tool_name(options.name.as_ref(), item, snake, errors);
    let before = errors.len();
    let Docs { description, arguments } = doc::of_tool(attrs, options.doc, errors);
    let description = options.description.clone().or(description);
    // A new error means that the description exists, but is invalid.
    if description.is_none() && !options.described && options.doc != Doc::Nothing && errors.len() == before {
        errors.at(
            item,
            format!(
                "the model chooses tools by their descriptions, and `{item}` has none: write `/// What it does.` above \
                 it, or `description = \"…\"`"
            ),
        );
    }
    (ToolHeader { name, description, options }, arguments)
}

fn cfgs(attrs: &[Attribute]) -> Vec<&Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect()
}

/// Returns whether an attribute is `#[tool]`, judged by the last segment of its path.
pub(crate) fn is_tool(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}

/// Reports and removes a second `#[tool]`, which would define everything again.
fn refuse_second(attrs: &mut Vec<Attribute>, errors: &mut Errors) {
    for attr in attrs.iter().filter(|attr| is_tool(attr)) {
        errors.at(attr, "`#[tool]` is given twice: keep one");
    }
    attrs.retain(|attr| !is_tool(attr));
}

fn parse_options(tokens: TokenStream, place: ToolItem, errors: &mut Errors) -> Options {
    attr::parse(tokens, place, errors)
}

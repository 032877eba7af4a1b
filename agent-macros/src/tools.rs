//! Expands `tools![…]`. A path names the type of a tool. Any other expression is a value that converts to tools.

use crate::path::{Private, hidden, ours};
use crate::types::{contains_word, span};
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Path, Stmt, Token};

/// Expands `(CRATE) a, b::c, Expr::new()`. The first group contains `$crate`, which only a `macro_rules!` of the library can name.
pub(crate) fn expand(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    let krate: Option<Path> = match input.next() {
        Some(TokenTree::Group(group)) => syn::parse2(Group::stream(&group)).ok(),
        _ => None,
    };
    let private = Private::new(krate.as_ref());
    let list = match entries.parse2(input.collect()) {
        Ok(list) => list,
        Err(error) => return error.into_compile_error(),
    };
    let set = hidden("set");
    let (mut adds, mut names, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    for (cfgs, entry) in list {
        let at = ours(span(&entry));
        // A `path` fragment of `macro_rules!` is in an invisible group.
        let mut tool_path = &entry;
        while let Expr::Group(group) = tool_path {
            tool_path = &group.expr;
        }
        let Expr::Path(path) = tool_path else {
            // Braces mark a path as a value instead of a type: `{ path }`.
            let (at, entry) = match value_in_braces(&entry) {
                Some(value) => (ours(span(value)), value),
                None => (at, &entry),
            };
            adds.push(quote_spanned!(at=> #(#cfgs)* #set.add(#entry);));
            continue;
        };
        adds.push(quote_spanned!(at=> #(#cfgs)* #set.push(<#path as #private::StaticTool>::entry());));
        // The names are in an item, where there is no `Self`.
        if !contains_word(path.to_token_stream(), &["Self"]) {
            let n = names.len();
            let name = quote_spanned!(at=> <#path as #private::StaticTool>::NAME);
            // An entry that is configured out keeps its place, with a name that no tool has.
            names.push(if cfgs.is_empty() { name } else { quote_spanned!(at=> [#(#cfgs)* #name, ""][0]) });
            // All tokens of the call carry the user's span, so that the error points at the path alone.
            checks.push(quote_spanned! {at=>
                #(#cfgs)*
                const _: () = __distinct(__NAMES[#n], __NAMES.split_at(#n).0, &__message::<{ __message_len(__NAMES[#n]) }>(__NAMES[#n]));
            });
        }
    }
    quote!({
        #[allow(unused_mut)]
        let mut #set = #private::ToolSet::new();
        #(#adds)*
        // The block hides these names from the user's expressions above. The block comes last, because the compiler reports only the first
        // use of a path that is not a type, and that use should be in the statements above.
        {
            #[allow(unused_imports)]
            use #private::{
                assert_distinct as __distinct, duplicate_message as __message, duplicate_message_len as __message_len,
            };
            #[allow(dead_code)]
            const __NAMES: &[&#private::str] = &[#(#names),*];
            #(#checks)*
        }
        #set
    })
}

/// Returns the value in `{ value }`, so that compile errors point at the value and not at the braces.
fn value_in_braces(entry: &Expr) -> Option<&Expr> {
    match entry {
        Expr::Block(block) if block.label.is_none() => match &block.block.stmts[..] {
            [Stmt::Expr(value, None)] => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// Parses the entries, each with the attributes in front of it.
fn entries(input: ParseStream<'_>) -> syn::Result<Punctuated<(Vec<Attribute>, Expr), Token![,]>> {
    Punctuated::parse_terminated_with(input, |input| {
        Ok((input.call(Attribute::parse_outer)?, input.parse()?))
    })
}

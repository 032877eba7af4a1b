//! Expands `tools![…]`. A path names the type of a tool. Any other expression is a value that converts to tools.

use crate::path::{Private, hidden, ours};
use crate::types::span;
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::parse::Parser;
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
    let list = match Punctuated::<Expr, Token![,]>::parse_terminated.parse2(input.collect()) {
        Ok(list) => list,
        Err(error) => return error.into_compile_error(),
    };
    let set = hidden("set");
    let (mut adds, mut names, mut checks) = (Vec::new(), Vec::new(), Vec::new());
    for mut entry in list {
        let cfgs = take_cfgs(&mut entry);
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
        if cfgs.is_empty() {
            let n = names.len();
            names.push(quote_spanned!(at=> <#path as #private::StaticTool>::NAME));
            // All tokens of the call carry the user's span, so that the error points at the path alone.
            checks.push(quote_spanned! {at=>
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

fn take_cfgs(entry: &mut Expr) -> Vec<Attribute> {
    let attrs = match entry {
        Expr::Path(entry) => &mut entry.attrs,
        Expr::Call(entry) => &mut entry.attrs,
        Expr::MethodCall(entry) => &mut entry.attrs,
        Expr::Block(entry) => &mut entry.attrs,
        Expr::Struct(entry) => &mut entry.attrs,
        Expr::Group(entry) => &mut entry.attrs,
        _ => return Vec::new(),
    };
    std::mem::take(attrs)
}

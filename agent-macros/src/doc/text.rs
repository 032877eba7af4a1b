//! Texts for a model: text that is known while the macro expands, and constants that the compiler evaluates.

use crate::diag::Errors;
use crate::grammar::{bare, string_of};
use crate::path::{Private, ours};
use crate::types::{self, replace_self};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use syn::Expr;

#[derive(Clone)]
pub(crate) enum Text {
    Known(String),
    /// Pieces that are joined by line breaks. At least one of them is a constant.
    Composed(Vec<Piece>),
}

#[derive(Clone)]
pub(crate) enum Piece {
    Known(String),
    /// An expression of type `&'static str`, such as `include_str!(…)` or a constant.
    Constant(Box<Expr>),
}

impl Text {
    /// Returns an expression for the text. `this` replaces `Self`. If `this` is `None`, `Self` stays.
    pub(crate) fn tokens(&self, this: Option<&TokenStream>, private: &Private) -> TokenStream {
        let pieces = match self {
            Self::Known(text) => return text.to_token_stream(),
            Self::Composed(pieces) => pieces,
        };
        let constants = pieces.iter().filter_map(|piece| match piece {
            Piece::Constant(expr) => Some(types::span(expr)),
            Piece::Known(_) => None,
        });
        let at = ours(constants.into_iter().next().unwrap_or_else(proc_macro2::Span::call_site));
        let private = private.at(at);
        let pieces = pieces.iter().map(|piece| match (piece, this) {
            (Piece::Known(text), _) => text.to_token_stream(),
            (Piece::Constant(expr), Some(this)) => replace_self(expr.to_token_stream(), this),
            (Piece::Constant(expr), None) => expr.to_token_stream(),
        });
        quote_spanned! {at=> {
            const __PIECES: &[&#private::str] = &[#(#pieces),*];
            const __BYTES: &[#private::u8] = &#private::composed_text::<{ #private::composed_len(__PIECES) }>(__PIECES);
            const __TEXT: &#private::str = #private::some_text(__BYTES);
            __TEXT
        }}
    }
}

/// Returns the text of an expression. The text of literals, of `concat!(…)` and of `stringify!(…)` is known; an expression that only the
/// compiler can evaluate stays an expression. Any other expression is reported.
pub(crate) fn of_expr(expr: &Expr, example: &str, errors: &mut Errors) -> Option<Piece> {
    if let Some(text) = string_of(expr) {
        return Some(Piece::Known(text.value()));
    }
    let written = bare(expr);
    match written {
        Expr::Macro(call) if call.mac.path.segments.last().is_some_and(|last| last.ident == "format") => {
            errors.at(
                expr,
                "`format!` runs with the program, and this text is part of it: write `concat!(…)`, or a constant",
            );
            None
        }
        Expr::Macro(_)
        | Expr::Path(_)
        | Expr::Call(_)
        | Expr::MethodCall(_)
        | Expr::Field(_)
        | Expr::Index(_)
        | Expr::Const(_)
        | Expr::Block(_)
        | Expr::If(_)
        | Expr::Match(_) => Some(Piece::Constant(Box::new(written.clone()))),
        _ => {
            errors.at(
                expr,
                format!("write a text: `{example} = \"…\"`, `concat!(…)`, `include_str!(…)` or a constant of type `&str`"),
            );
            None
        }
    }
}

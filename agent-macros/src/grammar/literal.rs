//! What can be read off tokens without evaluating anything.

use crate::types::flat;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, Lit, LitStr};

/// The parts between commas, without empty ones.
pub(super) fn by_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ',' => parts.push(TokenStream::new()),
            token => {
                if let Some(part) = parts.last_mut() {
                    part.extend([token]);
                }
            }
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Without the invisible group that a `macro_rules` fragment comes in, and without parentheses.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Group(group) => &group.expr,
            Expr::Paren(paren) => &paren.expr,
            _ => return expr,
        };
    }
}

/// An expression's string literal.
pub(crate) fn string_of(expr: &Expr) -> Option<LitStr> {
    match bare(expr) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// What can be seen of a number without evaluating anything.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Whole(i128),
    /// Written with a point.
    Fraction,
    /// A path.
    Constant,
}

impl Number {
    pub(crate) fn of(expr: &Expr) -> Option<Self> {
        match bare(expr) {
            Expr::Path(_) => Some(Self::Constant),
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(whole) => whole.base10_parse().ok().map(Self::Whole),
                Lit::Float(_) => Some(Self::Fraction),
                _ => None,
            },
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => match Self::of(&unary.expr)? {
                Self::Whole(whole) => Some(Self::Whole(-whole)),
                Self::Fraction => Some(Self::Fraction),
                Self::Constant => None,
            },
            _ => None,
        }
    }
}

/// A literal integer, possibly negative.
pub(crate) fn integer_of(expr: &impl ToTokens) -> Option<i128> {
    let text: String =
        flat(expr.to_token_stream()).to_string().chars().filter(|c| !matches!(c, ' ' | '_')).collect();
    text.parse().ok()
}

//! Reads values that need no evaluation by the compiler.

use crate::types::flat;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, LitStr, Token};

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

/// Removes parentheses, and the invisible groups around fragments of `macro_rules!`.
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

/// Returns the text of a string literal, of a `concat!(…)` of literals, or of a `stringify!(…)`, as the compiler would evaluate it.
pub(crate) fn string_of(expr: &Expr) -> Option<LitStr> {
    match bare(expr) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Macro(call) => {
            let text = of_macro(&call.mac)?;
            Some(LitStr::new(&text, call.mac.path.segments.first()?.ident.span()))
        }
        _ => None,
    }
}

fn of_macro(call: &syn::Macro) -> Option<String> {
    let name = &call.path.segments.last()?.ident;
    if name == "stringify" {
        return Some(flat(call.tokens.clone()).to_string());
    }
    if name != "concat" {
        return None;
    }
    let parts = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated).ok()?;
    parts.iter().map(of_part).collect()
}

fn of_part(expr: &Expr) -> Option<String> {
    match bare(expr) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text.value()),
            Lit::Char(char) => Some(char.value().to_string()),
            Lit::Bool(bool) => Some(bool.value.to_string()),
            Lit::Int(number) => Some(number.base10_digits().to_owned()),
            Lit::Float(number) => Some(number.base10_digits().to_owned()),
            _ => None,
        },
        Expr::Unary(negated) if matches!(negated.op, syn::UnOp::Neg(_)) => match bare(&negated.expr) {
            Expr::Lit(literal) if matches!(literal.lit, Lit::Int(_) | Lit::Float(_)) => {
                Some(format!("-{}", of_part(&negated.expr)?))
            }
            _ => None,
        },
        other => Some(string_of(other)?.value()),
    }
}

/// A number, as far as it is known without evaluation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Whole(i128),
    Fraction,
    /// A path, which may be a constant.
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

pub(crate) fn integer_of(expr: &impl ToTokens) -> Option<i128> {
    match Number::of(&syn::parse2(expr.to_token_stream()).ok()?)? {
        Number::Whole(whole) => Some(whole),
        Number::Fraction | Number::Constant => None,
    }
}

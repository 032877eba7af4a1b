//! Translates `range(…)` and `length(…)` to keywords of the schema, and to assertions that these options suit the type.

use super::attr::{Length, Range};
use super::field::FieldLowering;
use crate::grammar::Number;
use crate::path::{hidden, ours};
use crate::types::{self, mentions, pretty, replace_self, respan};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Expr, Field, Type, parse_quote};

impl FieldLowering<'_> {
    pub(super) fn range(&mut self, ty: &Type, range: &Range) -> Vec<TokenStream> {
        self.suits(ty, range.span, &quote!(range()));
        let ends = [("minimum", &range.min), ("maximum", &range.max)];
        ends.into_iter()
            .filter_map(|(keyword, end)| {
                let end = end.as_ref()?;
                let known = self.fits(ty, end);
                let whole = match Number::of(end) {
                    Some(Number::Whole(whole)) => Some(whole),
                    _ => None,
                };
                let value = match whole {
                    // `fits` has added an assertion that the fraction or constant suits the type, so `end` is used unchanged.
                    None if known => replace_self(quote!(#end), &self.this),
                    // Literals get a suffix, because the compiler infers `i32` for literals without a suffix,
                    // and larger numbers would not fit.
                    Some(whole) if whole < 0 => {
                        i64::try_from(whole).map_or_else(|_| quote!(#end), |end| quote!(#end))
                    }
                    Some(whole) => u64::try_from(whole).map_or_else(|_| quote!(#end), |end| quote!(#end)),
                    None => {
                        let private = self.private;
                        let at = ours(types::span(end));
                        quote_spanned!(at=> #private::bound(#end))
                    }
                };
                Some(quote!(#keyword = #value))
            })
            .collect()
    }

    /// Adds an assertion that `end` is a value of the type. Returns `false`, without an assertion, if `end` is not a number or a constant,
    /// or if the type is generic.
    fn fits(&mut self, ty: &Type, end: &Expr) -> bool {
        let (private, at, written) = (self.private, ours(types::span(end)), pretty(end));
        let check = match Number::of(end) {
            Some(Number::Whole(whole)) => quote_spanned!(at=> end(#whole, #written)),
            Some(Number::Fraction) => quote_spanned!(at=> fraction()),
            Some(Number::Constant) => {
                let end = replace_self(end.to_token_stream(), &self.this);
                let end = quote_spanned!(at=> #private::bound(#end));
                quote_spanned!(at=> constant((#end) as _, (#end) as _, #written))
            }
            None => return false,
        };
        self.suits(ty, at, &check)
    }

    /// Translates `length(…)` to a function that adds the keywords to the schema. The keywords depend on the type (`maxLength`, `maxItems`
    /// or `maxProperties`), so they are chosen when the schema is made.
    pub(super) fn length(&mut self, field: &mut Field, length: &Length) {
        self.suits(&field.ty, length.span, &quote!(length()));
        let (private, n, schema) = (self.private, self.helpers.len(), hidden("schema"));
        let limit = format_ident!("__length{n}");
        let end = |end: Option<u64>| {
            let none = || quote!(#private::Option::None);
            end.map_or_else(none, |count| quote!(#private::Option::Some(#count)))
        };
        let (min, max) = (end(length.min), end(length.max));
        self.helpers.push(quote! {
            fn #limit(#schema: &mut #private::schemars::Schema) { #private::limit_length(#schema, #min, #max) }
        });
        field.attrs.push(parse_quote!(#[schemars(transform = #limit)]));
    }

    /// Adds an assertion about the type, unless the type depends on a generic parameter. Returns whether the
    /// assertion was added.
    pub(super) fn suits(&mut self, ty: &Type, span: Span, check: &TokenStream) -> bool {
        let parameters: Vec<&Ident> = self.generics.type_params().map(|parameter| &parameter.ident).collect();
        if mentions(ty.to_token_stream(), &parameters) {
            return false;
        }
        let at = ours(span);
        let (private, check) = (self.private.at(at), respan(check.clone(), at));
        self.helpers.push(quote_spanned! {at=>
            const _: () = {
                #[allow(unused_imports)]
                use #private::SortUnknown as _;
                #private::Probe::<#ty>::SORT.#check
            };
        });
        true
    }
}

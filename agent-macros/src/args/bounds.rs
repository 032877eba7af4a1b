//! The bounds of the impls for generic types. An impl for the user's type calls the impl of the mirror (a hidden copy of the type), so
//! both have the same bounds.

use super::Kind;
use super::foreign::{Serde, schemars_has};
use crate::path::Private;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, DeriveInput, parse_quote};

/// The predicates for the where clause of each derived trait. Empty for a type without type parameters.
pub(super) struct Bounds {
    pub(super) deserialize: TokenStream,
    pub(super) serialize: TokenStream,
    pub(super) schema: TokenStream,
}

pub(super) fn of(input: &DeriveInput, private: &Private) -> Bounds {
    let parameters: Vec<_> = input.generics.type_params().map(|parameter| &parameter.ident).collect();
    if parameters.is_empty() {
        return Bounds { deserialize: quote!(), serialize: quote!(), schema: quote!() };
    }
    let serde = Serde::of(&input.attrs);
    let (name, (_, type_generics, _)) = (&input.ident, input.generics.split_for_impl());
    // With a bare `#[serde(default)]` on a type, serde and schemars need its `Default`.
    let fill = serde.bare_default().then(|| quote!(#name #type_generics: #private::Default,));
    let deserialize = serde
        .deserialize_bound()
        .unwrap_or_else(|| quote!(#(#parameters: #private::serde::Deserialize<'de>,)* #fill));
    let serialize =
        serde.serialize_bound().unwrap_or_else(|| quote!(#(#parameters: #private::serde::Serialize,)*));
    let schema = quote!(#(#parameters: #private::schemars::JsonSchema,)* #fill);
    Bounds { deserialize, serialize, schema }
}

/// Returns whether the type has no generic parameters, and no bounds that the user wrote for serde or schemars (`bound = …`).
pub(super) fn stand_alone(input: &DeriveInput) -> bool {
    input.generics.params.is_empty()
        && !Serde::of(&input.attrs).has("bound")
        && !schemars_has(&input.attrs, "bound")
}

/// Adds a bound for each field type to the mirror (the hidden copy of the type), so that serde's derive accepts any field type. Generated
/// assertions check the field types instead. `for<'__granted>` delays the check of a bound to the use of the impl.
pub(super) fn grant(fields: &[Ident], attrs: &mut Vec<Attribute>, private: &Private, kind: Kind) {
    if fields.is_empty() {
        return;
    }
    let granted = private.text(if kind == Kind::Output { "OutputType" } else { "FieldType" });
    let bounds: Vec<String> =
        fields.iter().map(|field| format!("for<'__granted> {field}: {granted}")).collect();
    let bounds = bounds.join(", ");
    if kind == Kind::Output {
        attrs.push(parse_quote!(#[serde(bound(serialize = #bounds))]));
    } else {
        attrs.push(parse_quote!(#[serde(bound(deserialize = #bounds))]));
    }
}

impl Bounds {
    /// Adds the bounds to the attributes of the mirror (the hidden copy of the type). For serde, bounds that the user wrote take
    /// precedence.
    pub(super) fn state(&self, attrs: &mut Vec<Attribute>, serde: &Serde, kind: Kind) {
        if !serde.has("bound") {
            let (deserialize, serialize) = (self.deserialize.to_string(), self.serialize.to_string());
            attrs.push(if kind == Kind::Output {
                parse_quote!(#[serde(bound(serialize = #serialize))])
            } else {
                parse_quote!(#[serde(bound(deserialize = #deserialize))])
            });
        }
        if kind != Kind::Output {
            let schema = self.schema.to_string();
            attrs.push(parse_quote!(#[schemars(bound = #schema)]));
        }
    }
}

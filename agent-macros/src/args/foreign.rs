//! Reads a few keys of the attributes of serde, schemars and validation crates, and edits attributes for the mirror (the hidden copy of
//! the user's type). Other keys are not interpreted.

use crate::grammar::string_of;
use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, LitStr, Meta, Token, Type, WherePredicate, parse_quote};

/// Returns the options in all `#[NAME(…)]`. Attributes that cannot be parsed are left out, because serde or schemars report them.
fn metas(attrs: &[Attribute], name: &str) -> Vec<Meta> {
    let lists = attrs.iter().filter(|attr| attr.path().is_ident(name));
    lists
        .filter_map(|attr| attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok())
        .flatten()
        .collect()
}

fn text(meta: &Meta) -> Option<LitStr> {
    match meta {
        Meta::NameValue(pair) => string_of(&pair.value),
        _ => None,
    }
}

/// The options in all `#[serde(…)]` of an item.
pub(crate) struct Serde(Vec<Meta>);

impl Serde {
    pub(crate) fn of(attrs: &[Attribute]) -> Self {
        Self(metas(attrs, "serde"))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|meta| meta.path().is_ident(key))
    }

    /// Returns whether there is a bare `default`, without `= "…"`.
    pub(super) fn bare_default(&self) -> bool {
        self.0.iter().any(|meta| matches!(meta, Meta::Path(path) if path.is_ident("default")))
    }

    pub(super) fn texts(&self, key: &str) -> impl Iterator<Item = LitStr> {
        self.0.iter().filter(move |meta| meta.path().is_ident(key)).filter_map(text)
    }

    /// Returns the text of `key = "…"` or `key(deserialize = "…")`.
    pub(super) fn text_for_reading(&self, key: &str) -> Option<LitStr> {
        self.0.iter().filter(|meta| meta.path().is_ident(key)).find_map(|meta| match meta {
            Meta::List(list) => {
                let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
                inner.iter().find(|meta| meta.path().is_ident("deserialize")).and_then(text)
            }
            meta => text(meta),
        })
    }

    pub(super) fn first_of(&self, keys: &[&str]) -> Option<&Meta> {
        self.0.iter().find(|meta| keys.iter().any(|key| meta.path().is_ident(key)))
    }

    /// Returns the type that this type is serialized as: `into = "…"`.
    pub(super) fn target(&self) -> Option<Type> {
        self.texts("into").next()?.parse().ok()
    }

    /// Returns the type that this type is deserialized from: `from = "…"` or `try_from = "…"`.
    pub(super) fn source(&self) -> Option<Type> {
        self.texts("from").chain(self.texts("try_from")).next()?.parse().ok()
    }

    /// Returns the bound that the user wrote for `Deserialize`: `bound = "…"` or `bound(deserialize = "…")`.
    pub(super) fn deserialize_bound(&self) -> Option<TokenStream> {
        self.bound("serialize")
    }

    /// Returns the bound that the user wrote for `Serialize`: `bound = "…"` or `bound(serialize = "…")`.
    pub(super) fn serialize_bound(&self) -> Option<TokenStream> {
        self.bound("deserialize")
    }

    fn bound(&self, not: &str) -> Option<TokenStream> {
        let inner = self.0.iter().filter(|meta| meta.path().is_ident("bound")).flat_map(|meta| match meta {
            Meta::List(list) => {
                let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
                inner.map(|metas| metas.into_iter().collect()).unwrap_or_default()
            }
            meta => vec![meta.clone()],
        });
        let bound = inner.filter(|meta| !meta.path().is_ident(not)).find_map(|meta| text(&meta))?;
        let predicates = bound.parse_with(Punctuated::<WherePredicate, Token![,]>::parse_terminated).ok()?;
        let predicates = predicates.into_iter();
        Some(quote!(#(#predicates,)*))
    }
}

pub(super) fn schemars_has(attrs: &[Attribute], key: &str) -> bool {
    names_key(attrs, "schemars", key)
}

/// Returns the type of the last `schemars(with = "…")`.
pub(crate) fn described_by(attrs: &[Attribute]) -> Option<Type> {
    let with = metas(attrs, "schemars").into_iter().filter(|meta| meta.path().is_ident("with"));
    with.filter_map(|meta| text(&meta)).last()?.parse().ok()
}

pub(super) fn names_key(attrs: &[Attribute], name: &str, key: &str) -> bool {
    metas(attrs, name).iter().any(|meta| meta.path().is_ident(key))
}

/// Changes `#[serde(default)]` of a container to `#[serde(default = "FUNCTION")]`. Without this change, serde would require that the
/// mirror (the hidden copy of the type) implements `Default`.
pub(super) fn default_from(attrs: &mut [Attribute], function: &str) {
    for attr in attrs.iter_mut().filter(|attr| attr.path().is_ident("serde")) {
        let Ok(metas) = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
            continue;
        };
        let metas = metas.into_iter().map(|meta| match &meta {
            Meta::Path(path) if path.is_ident("default") => quote!(default = #function),
            _ => quote!(#meta),
        });
        *attr = parse_quote!(#[serde(#(#metas),*)]);
    }
}

pub(super) fn keep(attrs: &mut Vec<Attribute>, names: &[&str]) {
    attrs.retain(|attr| names.iter().any(|name| attr.path().is_ident(name)));
}

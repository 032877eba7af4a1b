//! Expands `#[derive(ToolArgs)]` and `#[derive(ToolOutput)]`. The derives of serde and schemars are applied to the mirror, a hidden copy
//! of the user's type. The impls for the user's type call the impls of the mirror.

pub(crate) mod attr;
mod bounds;
pub(crate) mod checks;
pub(crate) mod field;
pub(crate) mod foreign;
mod impls;
mod limits;
pub(crate) mod mirror;
mod names;
mod pattern;
#[cfg(test)]
mod tests;

use crate::diag::Errors;
use crate::path::{Private, hidden};
use crate::tool::is_tool;
use crate::types::Ungroup;
use attr::{ArgItem, parse, parse_type};
use checks::Checks;
use foreign::Serde;
use mirror::{Mirror, MirrorOptions};
use proc_macro2::TokenStream;
use quote::quote;
use syn::visit_mut::VisitMut;
use syn::{Data, DeriveInput, Fields};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Args,
    Output,
    /// The hidden struct of a function's parameters. It is generated, so it needs no mirror.
    Direct,
}

pub(crate) fn quiet() -> TokenStream {
    quote! {
        #[allow(
            dead_code, missing_docs, missing_debug_implementations, missing_copy_implementations, single_use_lifetimes,
            unreachable_pub, unused_qualifications, unused_lifetimes, unused_variables, unused_results,
            clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction
        )]
    }
}

pub(crate) fn derive(input: &DeriveInput, kind: Kind) -> TokenStream {
    let mut input = input.clone();
    Ungroup.visit_derive_input_mut(&mut input);
    derived(&input, kind)
}

fn derived(input: &DeriveInput, kind: Kind) -> TokenStream {
    if kind == Kind::Args && input.attrs.iter().any(is_tool) {
        // If `#[tool]` is written below this derive, `#[tool]` derives `ToolArgs` itself, with the options of the tool.
        return TokenStream::new();
    }
    let mut errors = Errors::default();
    let options = parse_type(&input.attrs, &mut errors);
    let private = Private::new(options.krate.as_ref());
    if kind == Kind::Args {
        check_type(input, &mut errors);
    }
    let own_serde = kind == Kind::Args && options.own_serde;
    let name = hidden("__Mirror");
    let require_docs = options.require_docs;
    let checks = if kind == Kind::Args { Checks::of(input, options) } else { Checks::default() };
    let mirror = if own_serde {
        check_foreign(input, &mut errors);
        Mirror::default()
    } else {
        mirror::make(
            input.clone(),
            &name,
            kind,
            MirrorOptions { checked: !checks.is_empty(), require_docs },
            &private,
            &mut errors,
        )
    };
    let failed = !errors.is_empty();
    let impls = if kind == Kind::Output {
        impls::output(input, &name, &private, failed)
    } else {
        let how = impls::How { own_serde, failed, has_secrets: mirror.has_secrets };
        impls::args(input, &name, &private, &checks, how)
    };
    let Mirror { helpers, item, .. } = if failed { Mirror::default() } else { mirror };
    let (errors, quiet) = (errors.finish(), quiet());
    quote! {
        #errors
        #quiet
        const _: () = {
            #helpers
            // The expansion of schemars' derive uses these names without a path.
            const _: () = {
                #[allow(unused_imports)]
                use #private::{From as _, Into as _, Some};
                #item
                #impls
            };
        };
    }
}

/// Reports types that cannot be arguments.
fn check_type(input: &DeriveInput, errors: &mut Errors) {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        errors.at(
            lifetime,
            "arguments own their data: remove the lifetime and write `String`, `Vec<T>` or `Cow<'static, str>`",
        );
    }
    match &input.data {
        Data::Enum(data) if data.variants.is_empty() => {
            errors.at(&input.ident, "an enum without variants has no value that a model could send");
        }
        Data::Struct(data) if matches!(data.fields, Fields::Unit) => {
            errors.at(
                &input.ident,
                format!("a unit struct has nothing to send: write `struct {} {{}}`", input.ident),
            );
        }
        _ => {}
    }
}

/// Reports every `#[arg]` on a field or variant of a type with `own_serde`, because the attribute would have no
/// effect.
fn check_foreign(input: &DeriveInput, errors: &mut Errors) {
    let mut note = |attrs: &[syn::Attribute]| drop(parse(attrs, ArgItem::Foreign, errors));
    match &input.data {
        Data::Struct(data) => data.fields.iter().for_each(|field| note(&field.attrs)),
        Data::Enum(data) => data.variants.iter().for_each(|variant| {
            note(&variant.attrs);
            variant.fields.iter().for_each(|field| note(&field.attrs));
        }),
        Data::Union(_) => {}
    }
}

/// Returns an expression that is `true` if the type is a JSON object with fixed fields. Only such a type can be a tool's arguments.
fn is_object(input: &DeriveInput, private: &Private) -> TokenStream {
    let serde = Serde::of(&input.attrs);
    if let Some(source) = serde.source() {
        return quote!({
            #[allow(unused_imports)]
            use #private::ObjectUnknown as _;
            #private::Probe::<#source>::OBJECT
        });
    }
    let named = matches!(&input.data, Data::Struct(data) if matches!(data.fields, Fields::Named(_)));
    let object = named && !serde.has("transparent");
    quote!(#object)
}

//! The hidden type that serde's and schemars' derives work on.
//!
//! With serde's `remote` the derives of a copy build values of the user's own type, private fields included.
//! That way the user's attributes are honoured without being understood, and users need neither crate.

use super::attr::{Place, parse};
use super::field::{Lowering, check_names, describe};
use super::foreign::{Serde, default_from, schemars_has};
use super::{Kind, bounds};
use crate::diag::Errors;
use crate::doc;
use crate::path::Private;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, LitStr, parse_quote};

/// A type to derive on, and the functions that its attributes name.
#[derive(Default)]
pub(crate) struct Mirror {
    /// Default values and checks: the user's expressions, in the user's scope.
    pub(crate) helpers: TokenStream,
    pub(crate) item: TokenStream,
}

/// What the options above the type ask for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) checked: bool,
    pub(crate) require_docs: bool,
}

/// Makes the mirror of `input` under the name `name`. For [`Kind::Direct`] the type itself is ours.
pub(crate) fn make(
    mut input: DeriveInput,
    name: &Ident,
    kind: Kind,
    options: Asked,
    private: &Private,
    errors: &mut Errors,
) -> Mirror {
    let checked = options.checked;
    let (original, generics) = (input.ident.clone(), input.generics.clone());
    let (_, type_generics, _) = generics.split_for_impl();
    let turbofish = type_generics.as_turbofish();
    let this = quote!(#original #turbofish);
    let serde = Serde::of(&input.attrs);
    let bounds = bounds::of(&input, private);
    let demands = bounds::stand_alone(&input);
    // What has parameters has no one schema, and says none of what it returns.
    let described = kind != Kind::Output || is_described(&input);
    let mut lowering = Lowering {
        private,
        this,
        generics: &generics,
        kind,
        checked,
        helpers: Vec::new(),
        demands,
        described,
        transparent: serde.has("transparent"),
        demanded: Vec::new(),
        as_is: false,
        requires_docs: options.require_docs,
        filled: serde.has("default"),
    };

    let description = if described { doc::description(&input.attrs, errors) } else { None };
    describe(&mut input.attrs, description.as_ref(), kind);
    data(&mut input.data, serde.has("rename_all"), &mut lowering, errors);
    let unit_enum = is_unit_enum(&input.data);

    let (serde_path, schemars_path) = (private.text("serde"), private.text("schemars"));
    input.attrs.push(parse_quote!(#[serde(crate = #serde_path)]));
    let mut derives = Vec::new();
    if kind != Kind::Output {
        derives.push(quote!(#private::serde::Deserialize));
    }
    if described {
        derives.push(quote!(#private::schemars::JsonSchema));
        input.attrs.push(parse_quote!(#[schemars(crate = #schemars_path)]));
    }
    if checked {
        input.attrs.push(parse_quote!(#[schemars(extend("x-checked" = true))]));
    }
    let documented = |data: &Data| {
        let Data::Enum(data) = data else { return false };
        data.variants.iter().any(|variant| schemars_has(&variant.attrs, "description"))
    };
    if unit_enum && kind == Kind::Args && documented(&input.data) {
        input.attrs.push(parse_quote!(#[schemars(transform = #private::closed_set)]));
    }
    // Words of a closed set are shown as defaults; their values serialise through the mirror.
    if kind == Kind::Output || (unit_enum && kind == Kind::Args) {
        derives.push(quote!(#private::serde::Serialize));
    }
    if kind != Kind::Direct {
        let original = original.to_string();
        input.attrs.push(parse_quote!(#[serde(remote = #original)]));
    }
    if kind == Kind::Args && serde.bare_default() {
        let (impl_generics, type_generics, predicates) = generics.split_for_impl();
        let turbofish = type_generics.as_turbofish();
        let path = quote!(__fill #turbofish).to_string();
        let predicates = predicates.map(|clause| &clause.predicates);
        lowering.helpers.push(quote! {
            fn __fill #impl_generics () -> #original #type_generics
            where
                #original #type_generics: #private::Default,
                #predicates
            {
                #private::Default::default()
            }
        });
        default_from(&mut input.attrs, &path);
    }
    if generics.type_params().next().is_some() {
        bounds.state(&mut input.attrs, &serde, kind);
    }
    bounds::grant(&lowering.demanded, &mut input.attrs, private, kind);
    input.ident = name.clone();
    // The type that stands for what is returned is named in a trait; nobody can name it otherwise.
    input.vis = if kind == Kind::Output { parse_quote!(pub) } else { syn::Visibility::Inherited };
    let helpers = lowering.helpers;
    Mirror { helpers: quote!(#(#helpers)*), item: quote!(#[derive(#(#derives),*)] #input) }
}

/// Lowers every field and variant.
fn data(data: &mut Data, renamed: bool, lowering: &mut Lowering<'_>, errors: &mut Errors) {
    match data {
        Data::Struct(data) => fields(&mut data.fields, renamed, lowering, errors),
        Data::Enum(data) => {
            let in_order = data.variants.iter().any(|variant| {
                !variant.fields.is_empty()
                    || schemars_has(&variant.attrs, "description")
                    || variant
                        .attrs
                        .iter()
                        .any(|attr| attr.path().is_ident("doc") || attr.path().is_ident("arg"))
            });
            for variant in &mut data.variants {
                let place = if lowering.kind == Kind::Output { Place::Output } else { Place::Variant };
                let options = parse(&variant.attrs, place, errors);
                let renamed = Serde::of(&variant.attrs).has("rename_all");
                let text = options.description.as_ref().filter(|_| lowering.described);
                describe(&mut variant.attrs, text, lowering.kind);
                // schemars moves words without a description to the front; this keeps the order as declared.
                if in_order && lowering.described && variant.fields.is_empty() {
                    variant.attrs.push(parse_quote!(#[schemars(extend("x-word" = true))]));
                }
                if let Some(name) = &options.rename {
                    variant.attrs.push(parse_quote!(#[serde(rename = #name)]));
                }
                fields(&mut variant.fields, renamed, lowering, errors);
                variant.discriminant = None;
            }
        }
        Data::Union(data) => errors.at(&data.union_token, "a union cannot be an argument: write an enum"),
    }
}

fn fields(fields: &mut Fields, renamed: bool, lowering: &mut Lowering<'_>, errors: &mut Errors) {
    if lowering.kind == Kind::Args && matches!(fields, Fields::Named(_)) {
        let mut quiet = Errors::default(); // read again, and reported, below
        let options: Vec<_> =
            fields.iter().map(|field| (field, parse(&field.attrs, Place::Field, &mut quiet))).collect();
        drop(quiet.finish());
        let names: Vec<_> = options
            .iter()
            .map(|(field, options)| {
                let by_serde = renamed || Serde::of(&field.attrs).has("rename");
                let named = field.ident.as_ref().filter(|_| !by_serde && options.flatten.is_none());
                let own = named.map(|ident| LitStr::new(&ident.unraw().to_string(), ident.span()));
                (options.rename.clone().or(own), &options.aliases[..])
            })
            .collect();
        check_names(&names, errors);
    }
    fields.iter_mut().for_each(|field| lowering.field(field, errors));
}

/// Whether a type that is returned has a schema of its own.
pub(super) fn is_described(input: &DeriveInput) -> bool {
    bounds::stand_alone(input) && !Serde::of(&input.attrs).has("into")
}

/// Whether the type is a closed set of words.
pub(super) fn is_unit_enum(data: &Data) -> bool {
    matches!(data, Data::Enum(data)
        if !data.variants.is_empty() && data.variants.iter().all(|variant| variant.fields.is_empty()))
}

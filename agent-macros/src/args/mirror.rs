//! The mirror: a hidden copy of the user's type, to which the derives of serde and schemars are applied.
//!
//! With serde's `remote`, the derives on a copy build values of the user's own type, private fields included. The derives apply
//! the user's attributes, so this crate need not understand them, and users need neither serde nor schemars as a dependency.

use super::attr::{ArgItem, parse};
use super::field::{FieldLowering, check_aliases, describe};
use super::foreign::{Serde, default_from, described_by, keep, schemars_has};
use super::names::{self, Case, Named};
use super::{Kind, bounds};
use crate::diag::Errors;
use crate::doc;
use crate::path::Private;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, LitStr, Type, Variant, parse_quote};

#[derive(Default)]
pub(crate) struct Mirror {
    /// Default values and assertions. They contain expressions of the user, so they need the user's scope.
    pub(crate) helpers: TokenStream,
    pub(crate) item: TokenStream,
    pub(crate) has_secrets: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct MirrorOptions {
    pub(crate) checked: bool,
    pub(crate) require_docs: bool,
}

pub(crate) fn make(
    mut input: DeriveInput,
    name: &Ident,
    kind: Kind,
    options: MirrorOptions,
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
    // With serde's `from`, `try_from` or `into`, the fields of the type are not part of the JSON.
    let is_converted = if kind == Kind::Output { serde.target() } else { serde.source() }.is_some();
    let demands = bounds::stand_alone(&input) && !is_converted;
    // A generic type has several schemas, so a generic result gets no schema.
    let described = kind != Kind::Output || is_described(&input);
    let mut lowering = FieldLowering {
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
        is_read: serde.source().is_none(),
        has_secrets: false,
    };

    let description = if described { doc::description(&input.attrs, errors) } else { None };
    let description = description.map(|text| text.tokens(Some(&lowering.this), private));
    describe(&mut input.attrs, description.as_ref(), kind);
    let words = Words::of(&input.data, serde.has("untagged"));
    let cases = Cases {
        all: Case::of(&input.attrs, "rename_all"),
        fields: Case::of(&input.attrs, "rename_all_fields"),
    };
    let flattens = data(&mut input.data, &words, &cases, &mut lowering, errors);
    input.attrs.extend(flattens);
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
    // The type may be the key type of a map. schemars lists the allowed keys only if the schema of the key type is one `enum`, which
    // `closed_set` creates. With `#[serde(other)]`, every key is allowed.
    if unit_enum && kind == Kind::Args && words.in_order && !words.has_other {
        input.attrs.push(parse_quote!(#[schemars(transform = #private::closed_set)]));
    }
    if kind == Kind::Output || (kind == Kind::Args && shows_default(&input.data, &serde)) {
        derives.push(quote!(#private::serde::Serialize));
    }
    let remote = original.to_string();
    input.attrs.push(parse_quote!(#[serde(remote = #remote)]));
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
    // The impl of a public trait names this type, so the type must be `pub`.
    input.vis = if kind == Kind::Output { parse_quote!(pub) } else { syn::Visibility::Inherited };
    let FieldLowering { helpers, has_secrets, .. } = lowering;
    Mirror { helpers: quote!(#(#helpers)*), item: quote!(#[derive(#(#derives),*)] #input), has_secrets }
}

struct Cases {
    all: Option<Case>,
    fields: Option<Case>,
}

/// Translates the options of every field and variant to attributes of serde and schemars. For a struct with flattened fields, returns the
/// attribute that [`compare_names`] creates.
fn data(
    data: &mut Data,
    words: &Words,
    cases: &Cases,
    lowering: &mut FieldLowering<'_>,
    errors: &mut Errors,
) -> Option<Attribute> {
    match data {
        Data::Struct(data) => return fields(&mut data.fields, cases.all, lowering, errors),
        Data::Enum(data) => {
            let mut names = Vec::new();
            for variant in &mut data.variants {
                let place = if lowering.kind == Kind::Output { ArgItem::Output } else { ArgItem::Variant };
                let options = parse(&variant.attrs, place, errors);
                let serde = Serde::of(&variant.attrs);
                let case = Case::of(&variant.attrs, "rename_all").or(cases.fields);
                let is_read = !["skip", "skip_deserializing", "untagged"].iter().any(|key| serde.has(key));
                if lowering.kind == Kind::Args && lowering.is_read && !words.untagged && is_read {
                    let own = (options.rename.as_ref(), &options.aliases[..]);
                    let by_rule =
                        |name: &str| cases.all.map_or_else(|| name.to_owned(), |case| case.of_variant(name));
                    names.push(Named::new(&variant.ident, &variant.attrs, own, by_rule));
                }
                if lowering.kind == Kind::Args && lowering.is_read {
                    unstated(&variant.attrs, errors);
                }
                let text = options.description.as_ref().filter(|_| lowering.described);
                let text = text.map(|text| text.tokens(Some(&lowering.this), lowering.private));
                describe(&mut variant.attrs, text.as_ref(), lowering.kind);
                // schemars moves variants without fields and description to the front. The extension keeps the declared order.
                if words.in_order && lowering.described && variant.fields.is_empty() {
                    variant.attrs.push(parse_quote!(#[schemars(extend("x-word" = true))]));
                }
                if let Some(name) = &options.rename {
                    variant.attrs.push(parse_quote!(#[serde(rename = #name)]));
                }
                for alias in &options.aliases {
                    variant.attrs.push(parse_quote!(#[serde(alias = #alias)]));
                }
                if lowering.kind == Kind::Args && !words.untagged && !serde.has("untagged") {
                    spell(variant, &options.aliases, &serde, errors);
                }
                // A skipped variant is never read, so its fields may have any type.
                if serde.has("skip") && lowering.kind == Kind::Args {
                    let fields = variant.fields.iter_mut();
                    fields.for_each(|field| keep(&mut field.attrs, &["serde", "schemars"]));
                } else {
                    let flattens = fields(&mut variant.fields, case, lowering, errors);
                    variant.attrs.extend(flattens);
                }
                variant.discriminant = None;
            }
            names::check(&names, "variants", errors);
        }
        Data::Union(data) => errors.at(&data.union_token, "a union cannot be an argument: write an enum"),
    }
    None
}

struct Words {
    /// Whether to restore the declared order. schemars moves variants that have neither fields nor a description to the front.
    in_order: bool,
    /// Whether a variant has `#[serde(other)]`, which accepts every name that no other variant has.
    has_other: bool,
    untagged: bool,
}

impl Words {
    fn of(data: &Data, untagged: bool) -> Self {
        let Data::Enum(data) = data else { return Self { in_order: false, has_other: false, untagged } };
        let has_key = |variant: &Variant, key| Serde::of(&variant.attrs).has(key);
        let stands_apart = |variant: &Variant| {
            let is_own = |attr: &Attribute| attr.path().is_ident("doc") || attr.path().is_ident("arg");
            !variant.fields.is_empty()
                || schemars_has(&variant.attrs, "description")
                || variant.attrs.iter().any(is_own)
                || has_key(variant, "alias")
                || has_key(variant, "other")
        };
        Self {
            in_order: data.variants.iter().any(stands_apart),
            has_other: data.variants.iter().any(|variant| has_key(variant, "other")),
            untagged,
        }
    }
}

/// Adds `x-aliases` and `x-other` to the schema of a variant, because schemars ignores `alias` and `other`.
fn spell(variant: &mut Variant, aliases: &[LitStr], serde: &Serde, errors: &mut Errors) {
    let aliases: Vec<LitStr> = aliases.iter().cloned().chain(serde.texts("alias")).collect();
    if !aliases.is_empty() {
        check_aliases(&aliases, errors);
        variant.attrs.push(parse_quote!(#[schemars(extend("x-aliases" = [#(#aliases),*]))]));
    }
    if serde.has("other") {
        variant.attrs.push(parse_quote!(#[schemars(extend("x-other" = true))]));
    }
}

/// Translates the options of the fields to attributes of serde and schemars. If some fields are flattened, returns the attribute of
/// [`compare_names`].
fn fields(
    fields: &mut Fields,
    case: Option<Case>,
    lowering: &mut FieldLowering<'_>,
    errors: &mut Errors,
) -> Option<Attribute> {
    let mut named = Vec::new();
    if lowering.kind == Kind::Args && lowering.is_read && matches!(fields, Fields::Named(_)) {
        let mut quiet = Errors::default(); // the fields are parsed again below, where errors are reported
        for field in &*fields {
            let (options, serde) = (parse(&field.attrs, ArgItem::Field, &mut quiet), Serde::of(&field.attrs));
            let Some(ident) = field.ident.as_ref().filter(|_| !options.is_skipped(&serde)) else { continue };
            let by_rule = |name: &str| case.map_or_else(|| name.to_owned(), |case| case.of_field(name));
            let own = (options.rename.as_ref(), &options.aliases[..]);
            let mut name = Named::new(ident, &field.attrs, own, by_rule);
            if options.flatten.is_some() || serde.has("flatten") {
                (name.name, name.aliases) = (None, Vec::new());
            }
            named.push(name);
        }
        drop(quiet.finish());
        names::check(&named, "arguments", errors);
    }
    fields.iter_mut().for_each(|field| lowering.field(field, errors));
    let own: Vec<LitStr> =
        named.iter().flat_map(|field| field.name.iter().chain(&field.aliases)).cloned().collect();
    let flattened =
        fields.iter().filter(|field| Serde::of(&field.attrs).has("flatten")).filter_map(|field| {
            let name = field.ident.as_ref()?.unraw().to_string();
            Some((name, described_by(&field.attrs).unwrap_or_else(|| field.ty.clone())))
        });
    (lowering.kind == Kind::Args && lowering.described && lowering.is_read)
        .then(|| compare_names(&own, &flattened.collect::<Vec<_>>(), lowering.private))
        .flatten()
}

/// Returns an attribute that compares the names in flattened fields with the other names when the schema is made. A macro does not know
/// the fields of other types.
pub(crate) fn compare_names(
    own: &[LitStr],
    flattened: &[(String, Type)],
    private: &Private,
) -> Option<Attribute> {
    if flattened.is_empty() {
        return None;
    }
    let parts = flattened.iter().map(|(name, ty)| quote!((#name, #private::names_of::<#ty>)));
    Some(parse_quote! {
        #[schemars(transform = #private::CompareNames { own: &[#(#own),*], flattened: &[#(#parts),*] })]
    })
}

/// Reports serde's `deserialize_with` or `with` if no `schemars` attribute gives the schema.
pub(super) fn unstated(attrs: &[Attribute], errors: &mut Errors) {
    let serde = Serde::of(attrs);
    let stated = ["with", "schema_with"].iter().any(|key| schemars_has(attrs, key));
    if let Some(function) = serde.first_of(&["deserialize_with", "with"]).filter(|_| !stated)
        && !serde.has("skip")
        && !serde.has("skip_deserializing")
    {
        errors.at(
            function,
            "nothing here tells what the model sends: add `#[schemars(with = \"String\")]`, with the type that this function reads",
        );
    }
}

/// Returns whether a result of this type gets a schema. A type that is generic, has bounds of its own, or is converted by serde's `into`
/// gets none.
pub(super) fn is_described(input: &DeriveInput) -> bool {
    bounds::stand_alone(input) && !Serde::of(&input.attrs).has("into")
}

/// Returns whether values of an argument's type can be written as defaults in a schema: whether the type is an enum whose variants have no
/// fields. An enum with only one of serde's `from` and `into` is excluded, because its values are written in another form than they are
/// read.
pub(super) fn shows_default(data: &Data, serde: &Serde) -> bool {
    is_unit_enum(data) && serde.source().is_some() == serde.target().is_some()
}

fn is_unit_enum(data: &Data) -> bool {
    matches!(data, Data::Enum(data)
        if !data.variants.is_empty() && data.variants.iter().all(|variant| variant.fields.is_empty()))
}

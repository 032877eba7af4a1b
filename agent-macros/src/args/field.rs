//! Converts the `#[arg(…)]` and the docs of one argument to attributes of serde and schemars. An unsuitable type is replaced in the
//! generated code, so that one mistake causes only one error.

use super::Kind;
use super::attr::{ArgItem, ArgOptions, DefaultValue, With, parse};
use super::checks::field_name;
use super::foreign::{Serde, keep, names_key, schemars_has};
use crate::diag::Errors;
use crate::grammar::{Number, bare, string_of};
use crate::path::{Private, hidden, ours};
use crate::policy::Policy;
use crate::types::{self, mentions, owned, pretty, replace_self};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Attribute, Expr, Field, Generics, Lit, LitStr, Path, Type, Visibility, parse_quote};

/// The state while the fields of one type are converted: facts about the type, and generated functions and types.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct FieldLowering<'a> {
    pub(crate) private: &'a Private,
    /// The type that replaces `Self`.
    pub(crate) this: TokenStream,
    pub(crate) generics: &'a Generics,
    pub(crate) kind: Kind,
    /// Whether the type has functions of `#[arg(validate)]`. The schema then contains the fields' Rust names.
    pub(crate) checked: bool,
    /// Generated functions, types and assertions. They are emitted next to the type, where the user's names are in scope.
    pub(crate) helpers: Vec<TokenStream>,
    pub(crate) demands: bool,
    pub(crate) described: bool,
    pub(crate) transparent: bool,
    /// The names (`__Field0`, …) of the type aliases for the field types that have an assertion.
    pub(crate) demanded: Vec<Ident>,
    /// Whether the current field has the option `with`, so that its type is never replaced.
    pub(crate) as_is: bool,
    pub(crate) requires_docs: bool,
    /// Whether serde reads the fields. `false` for types with `from` or `try_from`.
    pub(crate) is_read: bool,
    /// Whether `#[serde(default)]` on the type fills in missing fields.
    pub(crate) filled: bool,
    pub(crate) has_secrets: bool,
}

/// The attributes that the derives of serde and schemars read. The derive of schemars also reads the constraints of two
/// validator crates.
const DESCRIBING: [&str; 4] = ["serde", "schemars", "validate", "garde"];
const VALIDATING: [&str; 3] = ["schemars", "validate", "garde"];

/// Types that need no assertion, because they can always be fields.
const KNOWN: [&str; 17] = [
    "String", "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
    "u64", "u128", "usize",
];

/// Returns whether a type is a number, `bool` or `char`, judged by its name. Users do not give these names to their own
/// types.
pub(crate) fn is_primitive(ty: &Type) -> bool {
    let is_own = |path: &Path| KNOWN.iter().any(|known| *known != "String" && path.is_ident(known));
    matches!(ty, Type::Path(path) if path.qself.is_none() && is_own(&path.path))
}

impl FieldLowering<'_> {
    pub(super) fn field(&mut self, field: &mut Field, errors: &mut Errors) {
        let place = if self.kind == Kind::Output { ArgItem::Output } else { ArgItem::Field };
        let options = parse(&field.attrs, place, errors);
        let serde = Serde::of(&field.attrs);
        if self.kind == Kind::Args
            && options.skip.is_none()
            && options.with.is_none()
            && !["skip", "skip_deserializing", "deserialize_with", "with"].iter().any(|key| serde.has(key))
            && let Some(owned) = owned(&field.ty)
        {
            let owned = pretty(&owned);
            errors.at(&field.ty, format!("arguments own their data: write `{owned}`"));
        }
        if self.kind == Kind::Args && self.is_read {
            super::mirror::unstated(&field.attrs, errors);
        }
        self.lower(field, &options, errors);
        if self.demands {
            // The attributes are read again, because `lower` has changed `#[arg(flatten)]` to `#[serde(flatten)]`.
            self.demand(field, &Serde::of(&field.attrs));
        }
    }

    /// Adds an assertion that the field's type can be an argument or a result, so that a wrong type causes one error with a clear message.
    fn demand(&mut self, field: &mut Field, serde: &Serde) {
        let (check, others) = match self.kind {
            Kind::Args => ("field", ["skip", "skip_deserializing", "deserialize_with", "with"]),
            Kind::Output => ("output", ["skip", "skip_serializing", "serialize_with", "with"]),
            Kind::Direct => return,
        };
        let described = self.kind == Kind::Args && schemars_has(&field.attrs, "with");
        if others.iter().any(|key| serde.has(key)) || described {
            return;
        }
        let (ty, inner) = (&field.ty, types::innermost(&field.ty));
        // An assertion costs time in every build, so common types have none. If a user's own type has the name of a common type, serde
        // reports the error.
        if KNOWN.iter().any(|known| matches!(inner, Type::Path(path) if path.path.is_ident(known))) {
            return;
        }
        let at = ours(types::point(inner));
        let (private, check) = (self.private.at(at), Ident::new(check, at));
        // The derives take bounds as text, in which `$crate` is not possible, so the type gets an alias.
        let alias = format_ident!("__Field{}", self.demanded.len());
        self.helpers.push(quote_spanned! {at=>
            type #alias = #ty;
            const _: fn() = || #private::#check::<#ty, #inner>();
        });
        // The assertion reports a type without a schema. The derive of schemars must not report it again, so `#[schemars(with = …)]` names
        // an alias: the field's type, or `StandIn` if the type has no schema. In a `#[serde(transparent)]` type, schemars must see the
        // field's own type.
        if self.kind == Kind::Args && !self.transparent {
            let described = format_ident!("__Described{}", self.demanded.len());
            self.helpers.push(described_as(&described, &quote!(#ty), self.private));
            let described =
                if serde.has("flatten") { self.flattened(&quote!(#described)) } else { described };
            let described = described.to_string();
            field.attrs.push(parse_quote!(#[schemars(with = #described)]));
        }
        self.demanded.push(alias);
    }

    /// Adds an assertion that no map has tuples, arrays or structs as keys. JSON keys are text, so serde would refuse every call with such
    /// a map.
    fn keys(&mut self, ty: &Type) {
        let parameters: Vec<&Ident> = self.generics.type_params().map(|parameter| &parameter.ident).collect();
        if self.kind == Kind::Output || mentions(ty.to_token_stream(), &parameters) {
            return;
        }
        for (map, key) in types::with_composed_keys(ty) {
            let at = ours(types::point(&map));
            let private = self.private.at(at);
            let is_text = match key {
                None => quote_spanned!(at=> #private::Probe::<#map>::TEXT_KEYS),
                Some(key) => quote_spanned! {at=>
                    !#private::Probe::<#map>::IS_MAP || !{
                        #[allow(unused_imports)]
                        use #private::ObjectUnknown as _;
                        #private::Probe::<#key>::OBJECT
                    }
                },
            };
            self.helpers.push(quote_spanned! {at=>
                const _: () = #private::text_keys({
                    #[allow(unused_imports)]
                    use #private::KeysUnknown as _;
                    #is_text
                });
            });
        }
    }

    fn flattened(&mut self, ty: &TokenStream) -> Ident {
        let (private, alias) = (self.private, format_ident!("__Flattened{}", self.helpers.len()));
        self.helpers.push(quote!(type #alias = #private::Flattened<#ty>;));
        alias
    }

    /// Translates the options of a field to attributes of serde and schemars. The functions and types in these attributes go into
    /// `helpers`.
    pub(crate) fn lower(&mut self, field: &mut Field, options: &ArgOptions, errors: &mut Errors) {
        self.as_is = options.with.is_some();
        field.vis = Visibility::Inherited; // `unreachable_pub` looks inside anonymous consts
        if let Ok(ty) = syn::parse2(replace_self(field.ty.to_token_stream(), &self.this)) {
            field.ty = ty;
        }
        self.keys(&field.ty);
        let own_description = schemars_has(&field.attrs, "description");
        let serde = Serde::of(&field.attrs);
        if self.kind == Kind::Args && self.requires_docs && options.description.is_none() && !own_description
        {
            undocumented(field, options, &serde, errors);
        }
        let mut aliases = options.aliases.clone();
        aliases.extend(serde.texts("alias"));
        keep(&mut field.attrs, if self.kind == Kind::Output { &["serde"] } else { &DESCRIBING });

        if let Some(name) = &options.rename {
            field.attrs.push(parse_quote!(#[serde(rename = #name)]));
        }
        if options.flatten.is_some() {
            field.attrs.push(parse_quote!(#[serde(flatten)]));
        }
        if let Some(at) = options.skip {
            field.attrs.push(parse_quote!(#[serde(skip)]));
            self.skipped(field, options, ours(at));
        }
        if self.kind == Kind::Output {
            if self.described {
                self.describe_output(field, options, &serde);
            }
            return;
        }
        if self.kind == Kind::Direct && options.flatten.is_some() {
            let (ty, private) = (&field.ty, self.private);
            let stand_in = argument_or_stand_in(&quote!(#ty), private);
            let flattened = self.flattened(&quote!(#stand_in::Field)).to_string();
            field.attrs.push(parse_quote!(#[schemars(with = #flattened)]));
        }
        for alias in &options.aliases {
            field.attrs.push(parse_quote!(#[serde(alias = #alias)]));
        }
        if let Some(text) = options.description.as_ref().filter(|_| !own_description) {
            let text = text.tokens(Some(&self.this), self.private);
            field.attrs.push(parse_quote!(#[schemars(description = #text)]));
        }
        match &options.default {
            None => {}
            Some(DefaultValue::OfType(at)) => {
                let (private, at) = (self.private.at(ours(*at)), ours(*at));
                self.default(field, quote_spanned!(at=> #private::default()), at);
            }
            Some(DefaultValue::Value(value)) => {
                let at = ours(types::span(value));
                let body = replace_self(value.to_token_stream(), &self.this);
                // A text literal is converted to any type that can be made from text. Numbers are not converted, because
                // a conversion would break type inference.
                let body = if string_of(value).is_some() {
                    let private = self.private.at(at);
                    quote_spanned!(at=> #private::from_text(#body))
                } else {
                    body
                };
                self.default(field, body, at);
            }
        }
        if let Some(with) = &options.with {
            self.with(field, with);
        }
        if let Some(length) = &options.length {
            self.length(field, length);
        }
        if !aliases.is_empty() {
            check_aliases(&aliases, errors);
        }
        let extensions = self.extensions(field, options, &aliases);
        if !extensions.is_empty() {
            field.attrs.push(parse_quote!(#[schemars(extend(#(#extensions),*))]));
        }
    }

    fn extensions(&mut self, field: &Field, options: &ArgOptions, aliases: &[LitStr]) -> Vec<TokenStream> {
        let mut extensions: Vec<TokenStream> =
            options.extend.iter().map(|(key, value)| quote!(#key = #value)).collect();
        let examples = &options.examples;
        for example in examples {
            if let Ok(Expr::Lit(literal)) = syn::parse2::<Expr>(example.clone()).as_ref().map(bare) {
                let check = match &literal.lit {
                    Lit::Str(_) => quote!(example_text()),
                    Lit::Int(_) | Lit::Float(_) => quote!(example_number()),
                    _ => continue,
                };
                self.suits(&field.ty, types::span(example), &check);
            }
        }
        if !examples.is_empty() {
            extensions.push(quote!("examples" = [#(#examples),*]));
        }
        if let Some(range) = &options.range {
            extensions.extend(self.range(&field.ty, range));
        }
        if let Some(pattern) = &options.pattern {
            self.suits(&field.ty, pattern.span(), &quote!(pattern()));
            extensions.push(quote!("pattern" = #pattern));
        }
        extensions.extend(self.formats(field, options));
        if let Some(multiple) = &options.multiple_of {
            let whole = matches!(Number::of(multiple), Some(Number::Whole(_)));
            self.suits(&field.ty, types::span(multiple), &quote!(multiple(#whole)));
            extensions.push(quote!("multipleOf" = #multiple));
        }
        if let Some(at) = options.unique {
            self.suits(&field.ty, at, &quote!(unique()));
            extensions.push(quote!("uniqueItems" = true));
        }
        if !aliases.is_empty() {
            extensions.push(quote!("x-aliases" = [#(#aliases),*]));
        }
        if self.checked && options.flatten.is_none() {
            extensions.extend(field_name(field.ident.as_ref()));
        }
        if options.secret {
            self.has_secrets = true;
            extensions.push(quote!("x-secret" = true));
        }
        if let Some(policy) = options.coerce.as_ref().map(Policy::words) {
            extensions.push(quote!("x-coerce" = #policy));
        }
        extensions
    }

    /// Adds the schema of a result's field. The schema comes from the `JsonSchema` impl or the `ToolOutput` derive of the field's type, or
    /// else accepts any value.
    fn describe_output(&mut self, field: &mut Field, options: &ArgOptions, serde: &Serde) {
        let (private, ty) = (self.private, &field.ty);
        let alias = format_ident!("__Output{}", self.helpers.len());
        let from = if ["serialize_with", "with"].iter().any(|key| serde.has(key)) {
            quote!(0)
        } else {
            quote! {{
                #[allow(unused_imports)]
                use #private::{NoOutputSchema as _, SchemaUnknown as _};
                #private::output_from(#private::Probe::<#ty>::DESCRIBED, #private::Probe::<#ty>::OUTPUT)
            }}
        };
        self.helpers.push(quote!(type #alias = #private::OutputField<#ty, #from>;));
        let alias = alias.to_string();
        field.attrs.push(parse_quote!(#[schemars(with = #alias)]));
        if let Some(text) = &options.description {
            let text = text.tokens(Some(&self.this), self.private);
            field.attrs.push(parse_quote!(#[schemars(description = #text)]));
        }
    }

    /// Translates `with(read as Sent)`: the schema describes `Sent`, and the function `read` converts a `Sent` to the field's value.
    fn with(&mut self, field: &mut Field, with: &With) {
        let (private, n, With { read, sent }) = (self.private, self.helpers.len(), with);
        let (make, alias, ty) = (format_ident!("__with{n}"), format_ident!("__Sent{n}"), &field.ty);
        let (at, sent_at) = (ours(types::span(read)), ours(types::point(sent)));
        let read = replace_self(read.to_token_stream(), &self.this);
        let there = private.at(sent_at);
        let checked = quote_spanned!(sent_at=> const _: fn() = || #there::argument::<#sent, #sent>(););
        let mut deserializer = hidden("deserializer");
        deserializer.set_span(at);
        let stand_in = argument_or_stand_in(&quote!(#sent), private);
        // If `read` takes another type than `Sent`, the compiler error points to `Sent`.
        let mut given = hidden("sent");
        given.set_span(sent_at);
        let call = quote_spanned! {at=>
            #private::read_with(#deserializer, |#given: #stand_in::Field| {
                let #given = #stand_in::give(#given);
                #read(#given)
            })
        };
        self.helpers.push(quote! {
            type #alias = #stand_in::Field;
            #checked
            fn #make<'de, __D: #private::serde::Deserializer<'de>>(#deserializer: __D) -> #private::Result<#ty, __D::Error> {
                #call
            }
        });
        let (make, alias) = (make.to_string(), alias.to_string());
        field.attrs.push(parse_quote!(#[serde(deserialize_with = #make)]));
        field.attrs.push(parse_quote!(#[schemars(with = #alias)]));
    }

    /// Returns the schema keywords for the format of a field. With `x-format`, the library checks the format strictly, as JSON Schema
    /// defines it. Without `x-format`, every text that the Rust type can parse is accepted.
    fn formats(&mut self, field: &Field, options: &ArgOptions) -> Vec<TokenStream> {
        if let Some((format, at)) = options.format {
            self.suits(&field.ty, at, &quote!(format()));
            return vec![quote!("format" = #format), quote!("x-format" = true)];
        }
        let of_validators = ["email", "url", "ip", "ipv4", "ipv6"];
        let said =
            VALIDATING.iter().any(|name| of_validators.iter().any(|key| names_key(&field.attrs, name, key)));
        said.then(|| quote!("x-format" = true)).into_iter().collect()
    }

    fn default(&mut self, field: &mut Field, body: TokenStream, at: Span) {
        let (private, n, ty) = (self.private, self.helpers.len(), &field.ty);
        let (make, show, schema) =
            (format_ident!("__default{n}"), format_ident!("__show{n}"), hidden("schema"));
        let (impl_generics, type_generics, predicates) = self.generics.split_for_impl();
        let turbofish = type_generics.as_turbofish();
        let make_path = quote!(#make #turbofish).to_string();
        let (value, ty) = if self.kind == Kind::Direct && !self.as_is {
            let field = argument_or_stand_in(&quote!(#ty), private);
            let value = format_ident!("__value{n}");
            self.helpers.push(quote_spanned!(at=> fn #value() -> #ty { #body }));
            (quote!(#field::take(#value())), quote!(#field::Field))
        } else {
            (body, quote!(#ty))
        };
        self.helpers.push(quote_spanned! {at=>
            fn #make #impl_generics () -> #ty #predicates { #value }
            fn #show #impl_generics (#schema: &mut #private::schemars::Schema) #predicates {
                #[allow(unused_imports)]
                use #private::JsonUnknown as _;
                #private::show_default(#schema, #private::DefaultValue(#make #turbofish ()).json())
            }
        });
        field.attrs.push(parse_quote!(#[serde(default = #make_path)]));
        field.attrs.push(parse_quote!(#[schemars(transform = #show #turbofish)]));
    }

    /// Lowers `skip` without a default: the type's own default is used. If the type has no default, the compile error has
    /// a message of this library.
    fn skipped(&mut self, field: &mut Field, options: &ArgOptions, at: Span) {
        let parameters: Vec<&Ident> = self.generics.type_params().map(|parameter| &parameter.ident).collect();
        let ty = &field.ty;
        let is_given = options.default.is_some() || self.filled || Serde::of(&field.attrs).has("default");
        if self.kind != Kind::Args || is_given || mentions(ty.to_token_stream(), &parameters) {
            return;
        }
        let (make, private) = (format_ident!("__skipped{}", self.helpers.len()), self.private.at(at));
        self.helpers.push(quote_spanned!(at=> fn #make() -> #ty { #private::skipped() }));
        let make = make.to_string();
        field.attrs.push(parse_quote!(#[serde(default = #make)]));
    }
}

/// Returns `type ALIAS = TYPE;`. `StandIn` replaces a type without a schema.
pub(super) fn described_as(alias: &Ident, ty: &TokenStream, private: &Private) -> TokenStream {
    quote! {
        type #alias = <#private::OwnType<{
            #[allow(unused_imports)]
            use #private::SchemaUnknown as _;
            #private::Probe::<#ty>::DESCRIBED
        }> as #private::OrStandIn<#ty>>::Field;
    }
}

/// Returns the path `<… as OrStandIn<T>>` for the type `T` of an argument. Its `Field` is `T`, or `StandIn` if `T` cannot be an argument.
/// The derives accept `StandIn`, so they report no second error.
pub(crate) fn argument_or_stand_in(ty: &TokenStream, private: &Private) -> TokenStream {
    if types::has_lifetime(ty) {
        // The type may be an alias of a reference. For such a type, `ARGUMENT` causes an unclear error about lifetimes. The text in
        // `BY_VALUE` is a clearer error, so `ARGUMENT` is not evaluated for a type that has this text.
        let is_advised = quote!({
            #[allow(unused_imports)]
            use #private::AdviceUnknown as _;
            #private::Probe::<#ty>::BY_VALUE.is_some()
        });
        return quote! {
            <#private::OwnType<{
                #[allow(unused_imports)]
                use #private::ArgumentUnknown as _;
                !#is_advised
                    && #private::Probe::<<#private::ReplacedType<#is_advised> as #private::OrStandIn<#ty>>::Field>::ARGUMENT
            }> as #private::OrStandIn<#ty>>
        };
    }
    let own_type = own_type(ty, private);
    quote!(<#own_type as #private::OrStandIn<#ty>>)
}

/// Returns `OwnType<true>` for a type that can be an argument, or else `OwnType<false>`.
pub(crate) fn own_type(ty: &TokenStream, private: &Private) -> TokenStream {
    quote! {
        #private::OwnType<{
            #[allow(unused_imports)]
            use #private::ArgumentUnknown as _;
            #private::Probe::<#ty>::ARGUMENT
        }>
    }
}

fn undocumented(field: &Field, options: &ArgOptions, serde: &Serde, errors: &mut Errors) {
    let hidden =
        options.flatten.is_some() || options.skip.is_some() || serde.has("flatten") || serde.has("skip");
    if let Some(name) = field.ident.as_ref().filter(|_| !hidden) {
        errors.at(name, format!("`require_docs`: say what `{name}` is, with `/// …` above it"));
    }
}

pub(super) fn check_aliases(aliases: &[LitStr], errors: &mut Errors) {
    for (at, alias) in aliases.iter().enumerate() {
        if aliases.iter().take(at).any(|other| other.value() == alias.value()) {
            errors.at(alias, format!("the alias `{}` is given twice", alias.value()));
        }
    }
}

/// Reports names that two arguments of one object share. `None` stands for a flattened argument, which has no name.
pub(crate) fn check_names(names: &[(Option<LitStr>, &[LitStr])], errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (name, aliases) in names {
        let own: Vec<String> = name.iter().chain(*aliases).map(LitStr::value).collect();
        for word in name.iter().chain(*aliases).filter(|word| seen.contains(&word.value())) {
            errors.at(word, format!("two arguments are named `{}`: rename one", word.value()));
        }
        seen.extend(own);
    }
}

/// Rewrites the attributes of a variant or a type: adds the description, and keeps only the attributes that the derives read.
pub(super) fn describe(attrs: &mut Vec<Attribute>, description: Option<&TokenStream>, kind: Kind) {
    let own_description = schemars_has(attrs, "description");
    keep(attrs, if kind == Kind::Output { &["serde"] } else { &["serde", "schemars"] });
    if let Some(text) = description.filter(|_| !own_description) {
        attrs.push(parse_quote!(#[schemars(description = #text)]));
    }
}

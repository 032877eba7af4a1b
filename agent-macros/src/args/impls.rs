//! The impls for the user's type. Each impl calls the impl of the mirror, the hidden copy of the type.

use super::checks::{Checks, implementation};
use super::field::described_as;
use super::foreign::Serde;
use super::{bounds, is_object, mirror};
use crate::path::{Private, hidden};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{DeriveInput, parse_quote};

#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) own_serde: bool,
    pub(super) failed: bool,
    pub(super) has_secrets: bool,
}

/// Returns the impls of `ToolArgs`, `Deserialize` and `JsonSchema`. With `own_serde`, returns only the impl of `ToolArgs`. If `failed`,
/// the impls of `Deserialize` and `JsonSchema` compile but never run, so that one mistake causes only one compiler error.
pub(super) fn args(
    input: &DeriveInput,
    mirror: &Ident,
    private: &Private,
    checks: &Checks,
    How { own_serde, failed, has_secrets }: How,
) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, type_generics, clause) = input.generics.split_for_impl();
    let object = is_object(input, private);
    let shows_default = mirror::shows_default(&input.data, &Serde::of(&input.attrs));
    let json = (shows_default && !own_serde && !failed).then(|| {
        quote! {
            fn __json(&self) -> #private::Option<#private::serde_json::Value> {
                #[allow(unused_imports)]
                use #private::NotWritten as _;
                <#mirror #type_generics>::serialize(self, #private::serde_json::value::Serializer).ok()
            }
        }
    });
    let (deserialize, schema) = match (own_serde, failed) {
        (true, _) => (None, None),
        (false, false) => (
            Some(deserialize(input, mirror, checks, private)),
            Some(schema(input, mirror, has_secrets, private)),
        ),
        (false, true) => (Some(no_deserialize(input, private)), Some(no_schema(input, private))),
    };
    quote! {
        #deserialize
        #schema
        #[automatically_derived]
        impl #impl_generics #private::ToolArgs for #name #type_generics #clause {
            const OBJECT: #private::bool = #object;
            #json
        }
    }
}

fn with_de(input: &DeriveInput) -> syn::Generics {
    let mut generics = input.generics.clone();
    generics.params.insert(0, parse_quote!('de));
    generics
}

fn predicates(input: &DeriveInput) -> Option<TokenStream> {
    let clause = input.generics.where_clause.as_ref()?;
    Some(clause.predicates.to_token_stream())
}

fn deserialize(input: &DeriveInput, mirror: &Ident, checks: &Checks, private: &Private) -> TokenStream {
    let body = {
        let (_, type_generics, _) = input.generics.split_for_impl();
        // If the derive on the mirror (the hidden copy of the type) fails, the trait `NotRead` provides `deserialize`, so that there is no
        // second error.
        let fallback = bounds::stand_alone(input).then(|| {
            quote! {
                #[allow(unused_imports)]
                use #private::NotRead as _;
            }
        });
        quote!(#fallback <#mirror #type_generics>::deserialize(deserializer))
    };
    if checks.is_empty() {
        return deserialize_with(input, private, &body);
    }
    let (name, (_, type_generics, _)) = (&input.ident, input.generics.split_for_impl());
    let (generics, bounds, predicates) =
        (with_de(input), bounds::of(input, private).deserialize, predicates(input));
    let (impl_generics, _, _) = generics.split_for_impl();
    let checked = implementation(
        &quote!(impl #impl_generics #private::CheckedType<'de> for #name #type_generics),
        &quote!(where #bounds #predicates),
        &body,
        &checks.run(private, |_, value| value),
        private,
    );
    let deserialize = deserialize_with(input, private, &quote!(#private::checked(deserializer)));
    quote!(#checked #deserialize)
}

fn no_deserialize(input: &DeriveInput, private: &Private) -> TokenStream {
    deserialize_with(
        input,
        private,
        &quote!({
            let _ = deserializer;
            ::core::unreachable!()
        }),
    )
}

fn deserialize_with(input: &DeriveInput, private: &Private, body: &TokenStream) -> TokenStream {
    let (name, (_, type_generics, _)) = (&input.ident, input.generics.split_for_impl());
    let (generics, bounds, predicates) =
        (with_de(input), bounds::of(input, private).deserialize, predicates(input));
    let (impl_generics, _, _) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #private::serde::Deserialize<'de> for #name #type_generics where #bounds #predicates {
            fn deserialize<__D>(deserializer: __D) -> #private::Result<Self, __D::Error>
            where
                __D: #private::serde::Deserializer<'de>,
            {
                #body
            }
        }
    }
}

fn schema(input: &DeriveInput, mirror: &Ident, has_secrets: bool, private: &Private) -> TokenStream {
    let (_, type_generics, _) = input.generics.split_for_impl();
    // If the derive on the mirror failed, the mirror has no schema. The alias then names `StandIn`, so that there is no second error.
    let (alias, described) = if bounds::stand_alone(input) {
        let alias = Ident::new("__Described", Span::call_site());
        (Some(described_as(&alias, &quote!(#mirror), private)), quote!(#alias))
    } else {
        (None, quote!(#mirror #type_generics))
    };
    let of = quote!(<#described as #private::schemars::JsonSchema>);
    // A macro cannot see the other derives of the type, so the generated code finds out whether the type's `Debug` shows secrets.
    let described = if has_secrets && bounds::stand_alone(input) {
        quote! {
            #private::debug_is_asked(#of::json_schema(generator), {
                #[allow(unused_imports)]
                use #private::DebugUnknown as _;
                #private::Probe::<Self>::DEBUG
            })
        }
    } else {
        quote!(#of::json_schema(generator))
    };
    // Without the last two functions, which are private API of schemars, a newtype of an `Option` would be required in the schema: see the
    // test `a_transparent_option_stays_optional`.
    let implementation = schema_with(
        input,
        private,
        &quote! {
            fn inline_schema() -> #private::bool { #of::inline_schema() }
            fn schema_name() -> #private::Cow<'static, #private::str> { #of::schema_name() }
            fn schema_id() -> #private::Cow<'static, #private::str> { #of::schema_id() }
            fn json_schema(generator: &mut #private::schemars::SchemaGenerator) -> #private::schemars::Schema {
                #described
            }
            fn _schemars_private_non_optional_json_schema(
                generator: &mut #private::schemars::SchemaGenerator,
            ) -> #private::schemars::Schema {
                #of::_schemars_private_non_optional_json_schema(generator)
            }
            fn _schemars_private_is_option() -> #private::bool { #of::_schemars_private_is_option() }
        },
    );
    quote!(#alias #implementation)
}

fn no_schema(input: &DeriveInput, private: &Private) -> TokenStream {
    schema_with(
        input,
        private,
        &quote! {
            fn schema_name() -> #private::Cow<'static, #private::str> { ::core::unreachable!() }
            fn json_schema(generator: &mut #private::schemars::SchemaGenerator) -> #private::schemars::Schema {
                let _ = generator;
                ::core::unreachable!()
            }
        },
    )
}

fn schema_with(input: &DeriveInput, private: &Private, body: &TokenStream) -> TokenStream {
    let (name, (impl_generics, type_generics, _)) = (&input.ident, input.generics.split_for_impl());
    let (bounds, predicates) = (bounds::of(input, private).schema, predicates(input));
    quote! {
        #[automatically_derived]
        impl #impl_generics #private::schemars::JsonSchema for #name #type_generics where #bounds #predicates {
            #body
        }
    }
}

pub(super) fn output(input: &DeriveInput, mirror: &Ident, private: &Private, failed: bool) -> TokenStream {
    let (name, (impl_generics, type_generics, _)) = (&input.ident, input.generics.split_for_impl());
    let (bounds, predicates) = (bounds::of(input, private).serialize, predicates(input));
    let serializer = hidden("serializer");
    let body = if failed {
        quote!({ let _ = #serializer; ::core::unreachable!() })
    } else {
        let fallback = bounds::stand_alone(input).then(|| {
            quote! {
                #[allow(unused_imports)]
                use #private::NotWritten as _;
            }
        });
        quote!(#fallback <#mirror #type_generics>::serialize(self, #serializer))
    };
    let described = (!failed && mirror::is_described(input)).then(|| {
        let alias = Ident::new("__Described", Span::call_site());
        let described = described_as(&alias, &quote!(#mirror), private);
        quote! {
            #described
            #[automatically_derived]
            impl #private::ResultSchema for #name {
                type Described = #alias;
            }
        }
    });
    quote! {
        #described
        #[automatically_derived]
        impl #impl_generics #private::serde::Serialize for #name #type_generics where #bounds #predicates {
            fn serialize<__S>(&self, #serializer: __S) -> #private::Result<__S::Ok, __S::Error>
            where
                __S: #private::serde::Serializer,
            {
                #body
            }
        }
    }
}

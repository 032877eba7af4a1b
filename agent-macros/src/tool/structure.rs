//! `#[tool]` on a struct: its fields are the arguments, `RunTool` is its body.

use super::attr::Place;
use super::{cfgs, expand, parse_options, refuse_second, said};
use crate::args::quiet;
use crate::diag::Errors;
use crate::path::{Private, hidden, ours};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Data, DeriveInput, Fields};

pub(super) fn process(tokens: TokenStream, input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let mut input = input.clone();
    let options = parse_options(tokens, Place::Struct, &mut errors);
    refuse_second(&mut input.attrs, &mut errors);
    let (private, krate) = (Private::new(options.krate.as_ref()), options.krate.clone());
    check(&input, &mut errors);
    let name = input.ident.clone();
    let said = said(options, &name, true, &input.attrs, &mut errors);

    let (at, args, cx) = (ours(name.span()), hidden("args"), hidden("cx"));
    let running = quote! {
        <#private::Pick<{
            #[allow(unused_imports)]
            use #private::RunUnknown as _;
            #private::Probe::<#name>::RUNS
        }> as #private::OrIdle<#name>>::run(#args, #cx).await
    };
    let converted = expand::converted(&running, at, &private);
    let (spec, tool_name) = (expand::spec(&said, &private), &said.name);
    let there = private.at(at);
    let object =
        quote_spanned!(at=> const _: () = #there::whole_object(<#name as #there::ToolArgs>::OBJECT););
    let runs = quote_spanned!(at=> const _: fn() = || #there::runs::<#name>(););
    let body = quote! {
        #object
        #runs
        static __BLUEPRINT: #private::LazyLock<#private::Compiled> =
            #private::LazyLock::new(|| #spec.compile::<#name>());
        #private::typed::<#name, _>(&__BLUEPRINT, #private::keys(&[]), |#args, #cx| {
            #private::Box::pin(async move { #converted })
        })
    };
    // After a mistake nothing is derived either: the derive would repeat what is wrong with the fields.
    let failed = !errors.is_empty();
    let derive = (!failed && !derives_args(&input)).then(|| {
        let krate = krate.map(|path| quote!(#[arg(crate = #path)]));
        quote!(#[derive(#private::ToolArgs)] #krate)
    });
    if failed {
        strip(&mut input);
    }
    let body = if failed { quote!(::core::unreachable!()) } else { body };
    let (impl_generics, type_generics, clause) = input.generics.split_for_impl();
    let (cfgs, errors, quiet) = (cfgs(&input.attrs), errors.finish(), quiet());
    quote! {
        #errors
        #derive
        #input
        #(#cfgs)*
        #quiet
        const _: () = {
            #[automatically_derived]
            impl #impl_generics #private::StaticTool for #name #type_generics #clause {
                const NAME: &'static #private::str = #tool_name;
                fn entry() -> #private::Entry { #body }
            }
        };
    }
}

fn check(input: &DeriveInput, errors: &mut Errors) {
    let name = &input.ident;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(_) => {}
            Fields::Unnamed(fields) => {
                errors.at(fields, format!("arguments have names: write `struct {name} {{ name: Type }}`"));
            }
            Fields::Unit => errors.at(name, format!("write `struct {name} {{}}` for a tool without arguments")),
        },
        Data::Enum(data) => errors.at(
            &data.enum_token,
            format!("an enum is an argument, not a tool: derive `ToolArgs` on it and write a function that takes `{name}`"),
        ),
        Data::Union(data) => errors.at(&data.union_token, "a union cannot be a tool: write a struct"),
    }
    if let Some(param) = input.generics.params.first() {
        errors.at(param, "a tool has one schema: write a struct without generic parameters");
    }
}

/// Whether the user derives `ToolArgs` below `#[tool]`.
fn derives_args(input: &DeriveInput) -> bool {
    let derives = input.attrs.iter().filter(|attr| attr.path().is_ident("derive"));
    derives.into_iter().any(|attr| {
        let list =
            attr.parse_args_with(syn::punctuated::Punctuated::<syn::Path, syn::Token![,]>::parse_terminated);
        list.is_ok_and(|paths| {
            paths.iter().any(|path| path.segments.last().is_some_and(|last| last.ident == "ToolArgs"))
        })
    })
}

/// Takes away the attributes that need our derive.
fn strip(input: &mut DeriveInput) {
    // Another derive may still want those of validators.
    let alone = !input.attrs.iter().any(|attr| {
        attr.path().is_ident("derive") && attr.to_token_stream().to_string().contains("Validate")
    });
    let ours = |attr: &syn::Attribute| {
        ["arg", "serde", "schemars"].iter().any(|name| attr.path().is_ident(name))
            || (alone && ["validate", "garde"].iter().any(|name| attr.path().is_ident(name)))
            || (attr.path().is_ident("derive") && attr.to_token_stream().to_string().contains("ToolArgs"))
    };
    input.attrs.retain(|attr| !ours(attr));
    match &mut input.data {
        Data::Struct(data) => data.fields.iter_mut().for_each(|field| field.attrs.retain(|attr| !ours(attr))),
        Data::Enum(data) => data.variants.iter_mut().for_each(|variant| {
            variant.attrs.retain(|attr| !ours(attr));
            variant.fields.iter_mut().for_each(|field| field.attrs.retain(|attr| !ours(attr)));
        }),
        Data::Union(_) => {}
    }
}

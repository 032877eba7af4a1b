//! `#[tool]` on a struct, whose fields are the arguments, or on an enum, whose variants are actions. The code of the tool is the impl of
//! `RunTool`.

use super::approval::Approval;
use super::attr::{Options, ToolItem};
use super::{approval, cfgs, expand, parse_options, refuse_second, tool_header};
use crate::args::foreign::Serde;
use crate::args::quiet;
use crate::diag::Errors;
use crate::path::{Private, hidden, ours};
use crate::types::Ungroup;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{Attribute, Data, DataEnum, DeriveInput, Fields, Path, Token, parse_quote};

pub(super) fn process(tokens: TokenStream, input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let mut input = input.clone();
    Ungroup.visit_derive_input_mut(&mut input);
    let options = parse_options(tokens, ToolItem::Type, &mut errors);
    refuse_second(&mut input.attrs, &mut errors);
    let (private, krate) = (Private::new(options.krate.as_ref()), options.krate.clone());
    check(&input, &options, &mut errors);
    let (name, is_enum) = (input.ident.clone(), matches!(input.data, Data::Enum(_)));
    if options.require_docs {
        input.attrs.push(parse_quote!(#[arg(require_docs)]));
    }
    let none = options.none.clone();
    let (header, _) = tool_header(options, &name, true, &input.attrs, &mut errors);
    if is_enum {
        tag(&mut input.attrs);
    }

    let (at, args, cx) = (ours(name.span()), hidden("args"), hidden("cx"));
    let running = quote! {
        <#private::OwnType<{
            #[allow(unused_imports)]
            use #private::RunUnknown as _;
            #private::Probe::<#name>::RUNS
        }> as #private::OrIdle<#name>>::run(#args, #cx).await
    };
    let converted = expand::converted(&running, none.as_ref(), at, &private);
    let output = quote! {
        <#private::OwnType<{
            #[allow(unused_imports)]
            use #private::RunUnknown as _;
            #private::Probe::<#name>::RUNS
        }> as #private::OrIdle<#name>>::Output
    };
    let (spec, tool_name) =
        (expand::spec(&header, Some(&output), Some(&name.to_token_stream()), &private), &header.name);
    let rule = approval::of_type(header.options.approval.as_ref(), &name, &private);
    let (rule_helper, rule) = (rule.helper, rule.whole);
    let there = private.at(at);
    // Asserts that the struct's fields are the arguments. For an enum, the library checks this when it compiles the schema.
    let object = (!is_enum).then(
        || quote_spanned!(at=> const _: () = #there::whole_object(<#name as #there::ToolArgs>::OBJECT);),
    );
    let runs = quote_spanned!(at=> const _: fn() = || #there::runs::<#name>(););
    let body = quote! {
        #object
        #runs
        #rule_helper
        #spec
        static __DEFINITION: #private::LazyLock<#private::Compiled> =
            #private::LazyLock::new(|| __options()#rule.compile_type::<#name>());
        #private::typed::<#name, _>(&__DEFINITION, #private::keys(&[#private::Option::None]), |#args, #cx| {
            #private::Box::pin(async move { #converted })
        })
    };
    // After a mistake, nothing is derived, because the derive would report mistakes in the fields again.
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

fn check(input: &DeriveInput, options: &Options, errors: &mut Errors) {
    let name = &input.ident;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(_) => {}
            Fields::Unnamed(fields) => {
                errors.at(fields, format!("arguments have names: write `struct {name} {{ name: Type }}`"));
            }
            Fields::Unit => {
                errors.at(name, format!("write `struct {name} {{}}` for a tool without arguments"));
            }
        },
        Data::Enum(data) => {
            check_actions(data, input, errors);
            if let Some(Approval::When(closure, _)) = &options.approval {
                errors.at(
                    closure,
                    format!("each action has its own arguments: write a function that takes `&{name}`, and its path here"),
                );
            }
        }
        Data::Union(data) => errors.at(&data.union_token, "a union cannot be a tool: write a struct"),
    }
    if let Some(param) = input.generics.params.first() {
        errors.at(param, "a tool has one schema: write a type without generic parameters");
    }
}

fn check_actions(data: &DataEnum, input: &DeriveInput, errors: &mut Errors) {
    if data.variants.is_empty() {
        errors.at(&input.ident, "each variant is an action of the tool: write at least one");
    }
    let serde = Serde::of(&input.attrs);
    for variant in &data.variants {
        let name = &variant.ident;
        if let Fields::Unnamed(fields) = &variant.fields
            && (fields.unnamed.len() != 1 && !serde.has("content"))
        {
            errors.at(
                fields,
                format!("arguments have names: write `{name} {{ name: Type }}`, or `{name}(Arguments)` with a struct"),
            );
        }
    }
}

/// Adds attributes of serde, so that the key `action` contains the name of the variant in snake case. Adds no attribute if the user's
/// attributes choose the tag, and no `rename_all` if they have one.
fn tag(attrs: &mut Vec<Attribute>) {
    let serde = Serde::of(attrs);
    let (tagged, renamed) =
        (["tag", "untagged", "content"].iter().any(|key| serde.has(key)), serde.has("rename_all"));
    if !tagged {
        attrs.push(parse_quote!(#[serde(tag = "action")]));
        if !renamed {
            attrs.push(parse_quote!(#[serde(rename_all = "snake_case")]));
        }
    }
}

fn derives_args(input: &DeriveInput) -> bool {
    input.attrs.iter().any(|attr| derived_beside(attr).is_some())
}

/// Returns the other derives beside `ToolArgs` in a `#[derive(…)]`. Returns `None` if the attribute does not derive `ToolArgs`.
fn derived_beside(attr: &Attribute) -> Option<Vec<Path>> {
    if !attr.path().is_ident("derive") {
        return None;
    }
    let paths = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).ok()?;
    let is_args = |path: &Path| path.segments.last().is_some_and(|last| last.ident == "ToolArgs");
    let (args, others): (Vec<Path>, Vec<Path>) = paths.into_iter().partition(is_args);
    (!args.is_empty()).then_some(others)
}

/// Removes the derive of `ToolArgs`. Also removes attributes such as `#[arg(…)]`, which the compiler does not know without this derive.
fn strip(input: &mut DeriveInput) {
    // The attributes of validators stay if another derive may need them.
    let alone = !input.attrs.iter().any(|attr| {
        attr.path().is_ident("derive") && attr.to_token_stream().to_string().contains("Validate")
    });
    let ours = |attr: &Attribute| {
        ["arg", "serde", "schemars"].iter().any(|name| attr.path().is_ident(name))
            || (alone && ["validate", "garde"].iter().any(|name| attr.path().is_ident(name)))
            || derived_beside(attr).is_some()
    };
    let others: Vec<Path> = input.attrs.iter().filter_map(derived_beside).flatten().collect();
    input.attrs.retain(|attr| !ours(attr));
    if !others.is_empty() {
        // A derive stands before the attributes that only it knows.
        input.attrs.insert(0, parse_quote!(#[derive(#(#others),*)]));
    }
    match &mut input.data {
        Data::Struct(data) => data.fields.iter_mut().for_each(|field| field.attrs.retain(|attr| !ours(attr))),
        Data::Enum(data) => data.variants.iter_mut().for_each(|variant| {
            variant.attrs.retain(|attr| !ours(attr));
            variant.fields.iter_mut().for_each(|field| field.attrs.retain(|attr| !ours(attr)));
        }),
        Data::Union(_) => {}
    }
}

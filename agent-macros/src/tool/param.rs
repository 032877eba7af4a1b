//! Parameters: argument or injected by their syntax, and nothing else by it.

use super::model::{Param, Pass};
use crate::args::attr::{Place, parse};
use crate::args::field::check_names;
use crate::diag::Errors;
use crate::path::hidden;
use crate::types::{self, make_static, owned, pretty};
use syn::ext::IdentExt;
use syn::{
    Attribute, FnArg, Lifetime, LitStr, Pat, PatType, Signature, Type, TypeReference, parse_quote,
    parse_quote_spanned,
};

/// Reads the parameters and takes our attributes and their docs out of the signature.
pub(super) fn take(sig: &mut Signature, errors: &mut Errors) -> Vec<Param> {
    let declared: Vec<Lifetime> = sig.generics.lifetimes().map(|param| param.lifetime.clone()).collect();
    let typed = sig.inputs.iter_mut().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        FnArg::Receiver(_) => None,
    });
    let params: Vec<Param> = typed.filter_map(|param| one(param, &declared, errors)).collect();
    let name = |param: &Param| {
        let own = || LitStr::new(&param.ident.unraw().to_string(), param.ident.span());
        (param.options.flatten.is_none()).then(|| param.options.rename.clone().unwrap_or_else(own))
    };
    // Parameters under `#[cfg]` may replace each other.
    let names: Vec<_> = params
        .iter()
        .filter(|param| param.is_argument() && param.cfgs.is_empty())
        .map(|param| (name(param), &param.options.aliases[..]))
        .collect();
    check_names(&names, errors);
    params
}

fn one(param: &mut PatType, declared: &[Lifetime], errors: &mut Errors) -> Option<Param> {
    let (ours, rest): (Vec<Attribute>, Vec<Attribute>) =
        param.attrs.drain(..).partition(|attr| attr.path().is_ident("doc") || attr.path().is_ident("arg"));
    param.attrs = rest;
    for attr in param.attrs.iter().filter(|attr| {
        ["serde", "schemars", "validate", "garde"].iter().any(|name| attr.path().is_ident(name))
    }) {
        errors.at(attr, "this attribute is for fields: on a parameter write `#[arg(…)]`");
    }
    param.attrs.retain(|attr| {
        ["serde", "schemars", "validate", "garde"].iter().all(|name| !attr.path().is_ident(name))
    });
    let cfgs = param.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    let options = parse(&ours, Place::Parameter, errors);
    let passed = passed(&param.ty, errors);
    // A parameter whose type is refused may still lack a name.
    let ident = match &passed {
        Some((Pass::Injected, _)) => Some(hidden("injected")),
        _ => named(&param.pat, options.rename.is_some(), errors),
    };
    let (pass, mut ty) = passed?;
    if pass == Pass::Injected {
        injected(&ours, &param.ty, errors);
    } else if let Some(owned) = owned(&ty) {
        errors.at(&param.ty, format!("an argument owns its data: write `{}`", pretty(&owned)));
        return None;
    }
    let span = types::point(&param.ty);
    make_static(&mut ty, declared);
    Some(Param { ident: ident?, pass, ty, span, cfgs, options })
}

/// The one identifier that an argument is known by.
fn named(pat: &Pat, renamed: bool, errors: &mut Errors) -> Option<syn::Ident> {
    match pat {
        Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() => {
            if pat.ident.to_string().starts_with('_') && !renamed {
                // An argument that is not used yet: the underscore is for the compiler, not for the model.
                let stripped = bare_name(&pat.ident);
                if stripped.is_none() {
                    errors.at(
                        &pat.ident,
                        "the model sees the name of a parameter, without underscores in front: write one that is a name then",
                    );
                }
                return stripped;
            }
            Some(pat.ident.clone())
        }
        Pat::Wild(_) => {
            errors.at(pat, "the model sees the name of a parameter: write one instead of `_`");
            None
        }
        _ => {
            errors.at(
                pat,
                "the model sees the name of a parameter: write `name: Type` and take it apart in the body",
            );
            None
        }
    }
}

/// The name without leading underscores, if that is one.
fn bare_name(ident: &syn::Ident) -> Option<syn::Ident> {
    let name = ident.to_string();
    let name = name.trim_start_matches('_');
    let plain = syn::parse_str::<syn::Ident>(name);
    let raw = || syn::parse_str::<syn::Ident>(&format!("r#{name}"));
    let mut bare = plain.or_else(|_| raw()).ok()?;
    bare.set_span(ident.span());
    Some(bare)
}

/// By value, or what kind of reference; with the type that is made or looked up.
fn passed(ty: &Type, errors: &mut Errors) -> Option<(Pass, Type)> {
    match bare(ty) {
        Type::Reference(reference) => by_reference(reference, errors),
        Type::ImplTrait(_) => {
            errors.at(ty, "a tool has one schema: write the concrete type, for example `String`");
            None
        }
        Type::Infer(_) => {
            errors.at(ty, "the model must know the type: write it instead of `_`");
            None
        }
        Type::Ptr(_) | Type::FnPtr(_) => {
            errors.at(ty, "a model cannot send this: take data by value, or `&T` for state");
            None
        }
        Type::Slice(_) | Type::TraitObject(_) => {
            errors.at(ty, format!("this has no size: write `&{}`", pretty(ty)));
            None
        }
        _ => Some((Pass::Value, ty.clone())),
    }
}

fn by_reference(reference: &TypeReference, errors: &mut Errors) -> Option<(Pass, Type)> {
    if reference.mutability.is_some() {
        errors.at(
            reference,
            "calls run side by side: take state as `&T` with a `Mutex` or an atomic inside, an argument by value",
        );
        return None;
    }
    let inner = bare(&reference.elem);
    match inner {
        Type::Path(path) if path.path.is_ident("str") => {
            Some((Pass::Lent, parse_quote!(::std::string::String)))
        }
        Type::Slice(slice) => {
            let item = &*slice.elem;
            if matches!(item, Type::Path(path) if path.path.is_ident("u8")) {
                errors.at(
                    reference,
                    "a model has no bytes to send: write `agent::Base64` for base64 text, or `Vec<u8>` for a list \
                     of small numbers",
                );
                return None;
            }
            let at = types::point(item);
            Some((Pass::Lent, parse_quote_spanned!(at=> ::std::vec::Vec<#item>)))
        }
        Type::Reference(_) => {
            errors.at(reference, format!("write one reference: `{}`", pretty(inner)));
            None
        }
        Type::ImplTrait(bounds) => {
            let bounds = &bounds.bounds;
            let shown = pretty(&quote::quote!(#bounds));
            errors.at(reference, format!("state is found by its type: write `&Type`, or `&dyn {shown}`"));
            None
        }
        _ => Some((Pass::Injected, inner.clone())),
    }
}

/// Without parentheses and the invisible groups of `macro_rules`.
fn bare(ty: &Type) -> &Type {
    let mut ty = ty;
    loop {
        ty = match ty {
            Type::Paren(paren) => &paren.elem,
            Type::Group(group) => &group.elem,
            _ => return ty,
        };
    }
}

/// Injected parameters are not the model's business.
fn injected(ours: &[Attribute], ty: &Type, errors: &mut Errors) {
    if let Some(attr) = ours.iter().find(|attr| attr.path().is_ident("arg")) {
        let by_value = owned(ty).map(|ty| pretty(&ty)).unwrap_or_default();
        errors.at(
            attr,
            format!("a `&T` is injected, the model never sees it: remove this, or take the argument as `{by_value}`"),
        );
    }
}

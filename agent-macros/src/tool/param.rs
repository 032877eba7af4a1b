//! Reads the parameters of a function. Only their syntax decides whether they are arguments or injected.

use super::is_tool;
use super::model::{Param, Pass};
use crate::args::attr::{ArgItem, parse};
use crate::args::field::{check_names, is_primitive};
use crate::diag::{Errors, listed as listed_words, nearest};
use crate::doc::Text;
use crate::path::hidden;
use crate::types::{self, make_static, owned, pretty};
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{
    Attribute, FnArg, Lifetime, LitStr, Pat, PatType, Signature, Type, TypeReference, parse_quote,
    parse_quote_spanned,
};

const NAMELESS: &str = "the model sees the name of a parameter: write one instead of `_`, or `#[arg(name = \"…\")]` in front of it";
const TAKEN_APART: &str = "the model sees the name of a parameter: write `name: Type` and take it apart in the body, or \
                           `#[arg(name = \"…\")]` in front of the pattern; only a struct that derives `ToolArgs` is the \
                           whole argument object, which needs no name";

/// Reads the parameters, and removes their docs and the attributes of this crate from the signature. `listed` has the names and texts of
/// the parameters in the function's docs.
pub(super) fn take(
    sig: &mut Signature,
    listed: &[(String, String)],
    require_docs: bool,
    errors: &mut Errors,
) -> Vec<Param> {
    let declared: Vec<Lifetime> = sig.generics.lifetimes().map(|param| param.lifetime.clone()).collect();
    let typed = sig.inputs.iter_mut().filter_map(|input| match input {
        FnArg::Typed(param) => Some(param),
        FnArg::Receiver(_) => None,
    });
    let mut params: Vec<Param> =
        typed.enumerate().filter_map(|(n, param)| one(n, param, &declared, errors)).collect();
    let before = errors.len();
    describe(sig, &mut params, listed, errors);
    // Only the whole argument object may lack a name. With several arguments, no parameter is the whole object.
    if params.iter().filter(|param| param.is_argument()).count() > 1 {
        for param in &mut params {
            if let Some((advice, at)) = param.nameless.take() {
                errors.at_span(at, advice);
            }
        }
    }
    if require_docs && errors.len() == before {
        for param in params.iter().filter(|param| param.is_argument() && param.options.flatten.is_none()) {
            if param.options.description.is_none() && !may_be_whole(param, &params) {
                let name = param.ident.unraw();
                errors.at_span(
                    param.ident.span(),
                    format!("`require_docs`: say what `{name}` is, with `/// …` above it or a line in `# Arguments`"),
                );
            }
        }
    }
    let name = |param: &Param| {
        let own = || LitStr::new(&param.ident.unraw().to_string(), param.ident.span());
        (param.options.flatten.is_none()).then(|| param.options.rename.clone().unwrap_or_else(own))
    };
    // Parameters with `#[cfg]` are left out, because they may replace each other.
    let names: Vec<_> = params
        .iter()
        .filter(|param| param.is_argument() && param.cfgs.is_empty())
        .map(|param| (name(param), &param.options.aliases[..]))
        .collect();
    check_names(&names, errors);
    params
}

/// Returns whether a parameter may be the whole argument object: the only argument, taken by value, with a type that is named like a
/// struct.
fn may_be_whole(param: &Param, all: &[Param]) -> bool {
    param.pass == Pass::Value
        && param.options.nested.is_none()
        && all.iter().filter(|param| param.is_argument()).count() == 1
        && matches!(&param.ty, Type::Path(path) if path.path.get_ident().is_none_or(|name| {
            name.to_string().starts_with(char::is_uppercase) && name != "String"
        }) && path.path.segments.last().is_some_and(|last| last.arguments.is_empty()))
}

/// Adds the texts in the function's docs to the parameters. Reports texts for parameters that do not exist.
fn describe(sig: &Signature, params: &mut [Param], listed: &[(String, String)], errors: &mut Errors) {
    let names: Vec<String> = sig
        .inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Typed(PatType { pat, .. }) => match &**pat {
                Pat::Ident(pat) => Some(pat.ident.unraw().to_string()),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        })
        .collect();
    let typed = sig.inputs.len() - usize::from(sig.receiver().is_some());
    for (name, text) in listed {
        // A parameter `_city` is the argument `city`.
        let written = if names.contains(name) { name.trim_start_matches('_') } else { name };
        let is = |param: &&mut Param| {
            let renamed = param.options.rename.as_ref().map(LitStr::value);
            let own = param.ident.unraw();
            param.is_argument() && (own == *name || own == written || renamed.as_ref() == Some(name))
        };
        if let Some(param) = params.iter_mut().find(is) {
            param.options.description.get_or_insert_with(|| Text::Known(text.clone()));
        } else if !names.contains(name) && names.len() == typed {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let advice = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "it takes none, remove the line".to_owned(),
                None => format!("it has {}", listed_words(&known, "and")),
            };
            errors.at(
                &sig.ident,
                format!("the docs list an argument `{name}` that the function does not have: {advice}"),
            );
        }
    }
}

fn one(n: usize, param: &mut PatType, declared: &[Lifetime], errors: &mut Errors) -> Option<Param> {
    let (ours, rest): (Vec<Attribute>, Vec<Attribute>) =
        param.attrs.drain(..).partition(|attr| attr.path().is_ident("doc") || attr.path().is_ident("arg"));
    param.attrs = rest;
    for attr in param.attrs.iter().filter(|attr| is_tool(attr)) {
        errors.at(
            attr,
            "options of a parameter go in `#[arg(…)]`; it is an argument without any attribute, and a struct that derives \
             `ToolArgs` is the whole argument object",
        );
    }
    param.attrs.retain(|attr| !is_tool(attr));
    for attr in param.attrs.iter().filter(|attr| {
        ["serde", "schemars", "validate", "garde"].iter().any(|name| attr.path().is_ident(name))
    }) {
        errors.at(attr, "this attribute is for fields: on a parameter write `#[arg(…)]`");
    }
    param.attrs.retain(|attr| {
        ["serde", "schemars", "validate", "garde"].iter().all(|name| !attr.path().is_ident(name))
    });
    let cfgs = param.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    let options = parse(&ours, ArgItem::Parameter, errors);
    let passed = passed(&param.ty, errors);
    // The name is checked even if the type is refused, so that both mistakes are reported.
    let mut nameless = None;
    let ident = match &passed {
        Some((Pass::Injected, _)) => Some(hidden("injected")),
        _ => named(n, &param.pat, options.rename.is_some(), &mut nameless, errors),
    };
    if let (Some((advice, at)), true) = (nameless, options.nested.is_some()) {
        errors.at_span(at, advice);
    }
    let (pass, mut ty) = passed?;
    if pass == Pass::Injected {
        injected(&ours, &param.ty, errors);
    } else if let Some(owned) = owned(&ty) {
        let state = types::referenced(&ty).filter(|inner| !is_primitive(inner)).map(|inner| {
            let inner = pretty(&inner);
            format!(
                "; for state that may be missing take `cx: &ToolContext`, and write `cx.get::<{inner}>()`"
            )
        });
        let state = state.unwrap_or_default();
        errors.at(&param.ty, format!("an argument owns its data: write `{}`{state}", pretty(&owned)));
        return None;
    }
    let span = types::point(&param.ty);
    make_static(&mut ty, declared);
    Some(Param { ident: ident?, pass, ty, span, cfgs, options, nameless, own_type: None })
}

/// Returns the identifier of an argument; for a pattern such as `(a, b)`, a generated one. Sets `nameless` if such a pattern gives the
/// model no name. Other patterns, such as `&a`, are errors.
fn named(
    n: usize,
    pat: &Pat,
    renamed: bool,
    nameless: &mut Option<(&'static str, Span)>,
    errors: &mut Errors,
) -> Option<syn::Ident> {
    match pat {
        Pat::Ident(pat) if pat.subpat.is_none() && pat.by_ref.is_none() => {
            if pat.ident.to_string().starts_with('_') && !renamed {
                // The underscore of an unused argument is only for the compiler, so the model sees the name without the
                // underscore.
                let stripped = bare_name(&pat.ident);
                if stripped.is_none() {
                    errors.at(
                        &pat.ident,
                        "the model sees the name of a parameter without the underscores in front: write one that is a name without them",
                    );
                }
                return stripped;
            }
            Some(pat.ident.clone())
        }
        Pat::Wild(_)
        | Pat::Struct(_)
        | Pat::Tuple(_)
        | Pat::TupleStruct(_)
        | Pat::Ident(_)
        | Pat::Slice(_) => {
            // The option `rename` may give the argument a name. Without a name, the parameter must be the whole argument object. `take`
            // and `check::nameless` check this later.
            if !renamed {
                let advice = if matches!(pat, Pat::Wild(_)) { NAMELESS } else { TAKEN_APART };
                *nameless = Some((advice, types::span(pat)));
            }
            Some(hidden(&format!("argument{n}")))
        }
        _ => {
            errors.at(pat, TAKEN_APART);
            None
        }
    }
}

/// Returns the name without leading underscores, if the rest is an identifier. A keyword becomes a raw identifier.
fn bare_name(ident: &syn::Ident) -> Option<syn::Ident> {
    let name = ident.to_string();
    let name = name.trim_start_matches('_');
    let plain = syn::parse_str::<syn::Ident>(name);
    let raw = || syn::parse_str::<syn::Ident>(&format!("r#{name}"));
    let mut bare = plain.or_else(|_| raw()).ok()?;
    bare.set_span(ident.span());
    Some(bare)
}

/// Returns how a parameter gets its value, and its type without a reference, such as `String` for `&str`. Reports unsuitable types.
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
    if reference.lifetime.as_ref().is_some_and(|lifetime| lifetime.ident == "static") {
        errors.at(
            reference,
            format!("a reference lasts as long as the call, not `'static`: write `&{}`", pretty(inner)),
        );
        return None;
    }
    if let Some(data) = types::shared_data(inner) {
        errors.at(
            reference,
            format!("`&T` is state from the context: for an argument write `&{}`", pretty(data)),
        );
        return None;
    }
    match inner {
        Type::Path(path) if path.path.is_ident("str") => {
            Some((Pass::Lent, parse_quote!(::std::string::String)))
        }
        Type::Slice(slice) => {
            let item = &*slice.elem;
            if matches!(item, Type::Path(path) if path.path.is_ident("u8")) {
                errors.at(
                    reference,
                    "a model has no bytes to send: write `agent::args::Base64` for base64 text, or `Vec<u8>` for a \
                     list of small numbers",
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

/// Removes parentheses, and the invisible groups around fragments of `macro_rules!`.
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

fn injected(ours: &[Attribute], ty: &Type, errors: &mut Errors) {
    if let Some(attr) = ours.iter().find(|attr| attr.path().is_ident("arg")) {
        let by_value = owned(ty).map(|ty| pretty(&ty)).unwrap_or_default();
        errors.at(
            attr,
            format!("a `&T` is injected, the model never sees it: remove this, or take the argument as `{by_value}`"),
        );
    }
}

//! `#[tool]` on a function, and the validation that functions and methods share.

use super::attr::{Options, ToolItem};
use super::item::Function;
use super::model::{Execution, Receiver, Tool};
use super::{cfgs, expand, param, parse_options, refuse_second, tool_header};
use crate::args::quiet;
use crate::diag::Errors;
use crate::path::Private;
use crate::types::{self, Ungroup};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{
    GenericArgument, GenericParam, Path, PathArguments, ReturnType, Safety, Signature, Token, Type,
    TypeParamBound, parse_quote,
};

/// Names of types and crates that a generated type must not shadow.
const HIDDEN_NAMES: [&str; 20] = [
    "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
    "u64", "u128", "usize", "std", "core", "alloc",
];

pub(super) fn process(tokens: TokenStream, mut function: Function) -> TokenStream {
    let mut errors = Errors::default();
    let options = parse_options(tokens, ToolItem::Function, &mut errors);
    refuse_second(&mut function.attrs, &mut errors);
    let private = Private::new(options.krate.as_ref());
    if let Some(receiver) = function.sig.receiver() {
        errors.at(
            receiver,
            "a method becomes a tool by its block: put `#[tool]` above `impl Type { … }` and on the method",
        );
    }
    let is_method = function.sig.receiver().is_some();
    let type_name = options.type_name.clone().unwrap_or_else(|| function.sig.ident.clone());
    let hides = HIDDEN_NAMES.iter().any(|name| type_name == name);
    if hides && !is_method {
        errors.at(
            &type_name,
            format!(
                "the type of this tool would hide `{type_name}` of the language: give it another name, `#[tool(type = SomeTool)]`, \
                 and list `tools![SomeTool]`"
            ),
        );
    }
    let tool = tool(options, &mut function, None, &mut errors);
    if is_method || hides {
        // An impl block cannot contain a type next to the method, and a type must not shadow a name of the language, so
        // nothing is generated.
        let errors = errors.finish();
        return quote!(#errors #function);
    }
    let name = tool.header.name.clone();
    let entry = if errors.is_empty() { Some(expand::entry(tool, &private, &mut errors)) } else { None };
    let body = entry.filter(|_| errors.is_empty()).unwrap_or_else(|| quote!(::core::unreachable!()));
    let (vis, cfgs, errors, quiet) = (&function.vis, cfgs(&function.attrs), errors.finish(), quiet());
    let documented = if type_name == function.sig.ident {
        quote!(#[doc(hidden)])
    } else {
        let text = format!("The type of the tool [`{}`], for `tools![…]`.", function.sig.ident);
        quote!(#[doc = #text])
    };
    quote! {
        #errors
        #function
        #(#cfgs)*
        #documented
        #[allow(
            dead_code, non_camel_case_types, missing_debug_implementations, missing_copy_implementations,
            unreachable_pub, clippy::all, clippy::nursery, clippy::pedantic, clippy::restriction
        )]
        #vis struct #type_name {}
        #(#cfgs)*
        #quiet
        const _: () = {
            #[automatically_derived]
            impl #private::StaticTool for #type_name {
                const NAME: &'static #private::str = #name;
                fn entry() -> #private::Entry { #body }
            }
        };
    }
}

/// Validates a function or method. Removes the attributes of this crate and the docs of parameters from the signature.
pub(super) fn tool(
    options: Options,
    function: &mut Function,
    receiver: Option<Receiver>,
    errors: &mut Errors,
) -> Tool {
    Ungroup.visit_signature_mut(&mut function.sig);
    check_signature(&function.sig, errors);
    // These lints do not apply: a tool gets its arguments by value, and a method may have a `&self` that it does not use.
    function.attrs.push(parse_quote!(#[allow(
        clippy::needless_pass_by_value,
        clippy::unused_self,
        reason = "the signature is that of a tool"
    )]));
    let execution = match (function.sig.asyncness, options.inline) {
        (Some(_), Some(inline)) => {
            errors
                .at_span(inline, "an async function is never moved to another thread pool: remove `inline`");
            Execution::Async
        }
        (Some(_), None) => Execution::Async,
        (None, Some(_)) => Execution::Inline,
        (None, None) => Execution::Blocking,
    };
    let require_docs = options.require_docs;
    let (header, listed) = tool_header(options, &function.sig.ident, false, &function.attrs, errors);
    let params = param::take(&mut function.sig, &listed, require_docs, errors);
    if let Some(approval) = &header.options.approval {
        approval.check(&params, errors);
    }
    if let Some(receiver) = &receiver {
        let names: Vec<_> = receiver.generics.type_params().map(|parameter| &parameter.ident).collect();
        for param in params.iter().filter(|param| param.is_argument()) {
            let is_own = !names.is_empty() && types::contains_word(param.ty.to_token_stream(), &["Self"]);
            if is_own || types::mentions(param.ty.to_token_stream(), &names) {
                errors.at(
                    &param.ty,
                    "a tool has one schema: its arguments cannot use a type parameter of the block",
                );
            }
        }
    }
    let (result, output) = match &function.sig.output {
        ReturnType::Default => (function.sig.ident.span(), None),
        ReturnType::Type(_, ty) => {
            (types::point(ty), Some(&**ty).and_then(|ty| named_output(ty, &function.sig)))
        }
    };
    let output = output.filter(|ty| {
        let generics = receiver.as_ref().map(|receiver| &receiver.generics);
        let names: Vec<_> = generics.into_iter().flat_map(|generics| generics.type_params()).collect();
        let names: Vec<_> = names.iter().map(|parameter| &parameter.ident).collect();
        // A tool of a generic block has one schema for all type arguments. So a result that depends on the type parameters gets no schema.
        !types::mentions(ty.to_token_stream(), &names)
            && (names.is_empty() || !types::contains_word(ty.to_token_stream(), &["Self"]))
    });
    let takes_self = function.sig.receiver().is_some();
    let function = function.sig.ident.clone();
    Tool { header, function, receiver, takes_self, params, execution, result, output }
}

/// Returns the type of the result with `'static` lifetimes, if the type is written out. Returns `None` for `!`, and for a type
/// with `impl` or `dyn`.
fn named_output(ty: &Type, sig: &Signature) -> Option<Type> {
    let declared: Vec<_> = sig.generics.lifetimes().map(|param| param.lifetime.clone()).collect();
    let mut ty = ty.clone();
    types::make_static(&mut ty, &declared);
    let hides = types::contains_word(ty.to_token_stream(), &["impl", "dyn"]);
    (!hides && !matches!(ty, Type::Never(_))).then_some(ty)
}

fn check_signature(sig: &Signature, errors: &mut Errors) {
    if let Safety::Unsafe(token) = &sig.safety {
        errors.at(token, "a model cannot promise what `unsafe` asks for: wrap the function in a safe one");
    }
    if let ReturnType::Type(_, ty) = &sig.output {
        let (streams, iterators) =
            (["Stream", "TryStream", "BoxStream"], ["Iterator", "IntoIterator", "DoubleEndedIterator"]);
        if is_spelled(ty, &streams) {
            errors.at(
                ty,
                "a tool returns once: report what is there before the end with `cx.progress(…)`, and return all of it, for \
                 example as `Vec<T>`",
            );
        } else if is_spelled(ty, &iterators) {
            errors.at(ty, "a tool returns once: collect the items, and return `Vec<T>`");
        }
    }
    if let (None, ReturnType::Type(_, ty)) = (&sig.asyncness, &sig.output)
        && is_spelled(ty, &["Future", "BoxFuture"])
    {
        errors.at(
            ty,
            "a future is awaited before the model reads anything: write `async fn`, and its result here",
        );
    }
    if let ReturnType::Type(_, ty) = &sig.output
        && matches!(&**ty, Type::Never(_))
    {
        errors.at(
            ty,
            "a tool that never returns has no answer: write the type of its result, or leave `-> !` out",
        );
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, "a tool is called from Rust: remove the ABI, or wrap the function");
    }
    if let Some(variadic) = &sig.variadic {
        errors.at(variadic, "a tool has a fixed list of parameters: take `Vec<T>` instead");
    }
    for param in &sig.generics.params {
        match param {
            GenericParam::Lifetime(_) => {}
            GenericParam::Type(param) => errors.at(
                param,
                format!("a tool has one schema: write the concrete type instead of `{}`", param.ident),
            ),
            GenericParam::Const(param) => errors
                .at(param, format!("a tool has one schema: write the value instead of `{}`", param.ident)),
        }
    }
}

/// Returns whether a type is `impl T`, `dyn T` or `T<…>` for a `T` in `names`, or is a `Pin`, `Box`, `Result` or `Option` of such a type.
/// The form `T<…>` counts only for names such as `BoxStream`, which start with `Box`.
fn is_spelled(ty: &Type, names: &[&str]) -> bool {
    let is_named =
        |path: &Path| path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name));
    let any = |bounds: &Punctuated<TypeParamBound, Token![+]>| {
        bounds.iter().any(|bound| matches!(bound, TypeParamBound::Trait(bound) if is_named(&bound.path)))
    };
    match ty {
        Type::Paren(paren) => is_spelled(&paren.elem, names),
        Type::Group(group) => is_spelled(&group.elem, names),
        Type::ImplTrait(of) => any(&of.bounds),
        Type::TraitObject(of) => any(&of.bounds),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return false };
            let inner = arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(inner) => Some(inner),
                _ => None,
            });
            (is_named(&path.path) && last.ident.to_string().starts_with("Box"))
                || (["Pin", "Box", "Result", "Option"].iter().any(|name| last.ident == name)
                    && inner.is_some_and(|inner| is_spelled(inner, names)))
        }),
        _ => false,
    }
}

//! Generates assertions about types, because only the compiler knows, for example, whether a type can be an
//! argument. The assertions have the user's spans, so that errors point to the user's code.

use super::model::{Param, Pass, Receiver, Tool};
use crate::path::{Private, ours};
use crate::types::{innermost, shared_data};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

pub(super) fn argument(param: &Param, ty: &TokenStream, private: &Private) -> TokenStream {
    // For `with(read as Sent)`, `FieldLowering` generates an assertion about `Sent`.
    if param.options.with.is_some() {
        return quote!();
    }
    let (at, cfgs) = (ours(param.span), &param.cfgs);
    let private = private.at(at);
    let inner = innermost(&param.ty);
    if param.pass == Pass::Lent || shared_data(&param.ty).is_some() {
        return quote_spanned!(at=> #(#cfgs)* const _: fn() = || #private::argument::<#ty, #inner>(););
    }
    // Some types have their own advice, which replaces the general message.
    quote_spanned! {at=>
        #(#cfgs)*
        const _: () = {
            #[allow(unused_imports)]
            use #private::AdviceUnknown as _;
            #private::advise(#private::Probe::<#ty>::BY_VALUE)
        };
        #(#cfgs)*
        const _: fn() = || #private::argument::<<#private::ReplacedType<{
            #[allow(unused_imports)]
            use #private::AdviceUnknown as _;
            #private::Probe::<#ty>::BY_VALUE.is_some()
        }> as #private::OrStandIn<#ty>>::Field, #inner>();
    }
}

/// Returns an assertion about the type of a `&T` parameter. If the library advises against injecting this type, the assertion fails with
/// the advice.
pub(super) fn state(param: &Param, ty: &TokenStream, private: &Private) -> TokenStream {
    let (at, cfgs) = (ours(param.span), &param.cfgs);
    let private = private.at(at);
    quote_spanned! {at=>
        #(#cfgs)*
        const _: () = {
            #[allow(unused_imports)]
            use #private::AdviceUnknown as _;
            #private::advise(#private::Probe::<#ty>::BY_REFERENCE)
        };
    }
}

/// Returns an assertion that fails if the parameter receives all arguments as one object. Returns `None` if the parameter has no option
/// other than `nested` and `flatten`.
pub(super) fn not_whole(param: &Param, private: &Private) -> Option<TokenStream> {
    let at = ours(param.options.own?);
    let private = private.at(at);
    Some(quote_spanned!(at=> const _: () = #private::own_argument(__WHOLE);))
}

/// Returns the assertion that a parameter without a name, such as `Point { x, y }: Point`, is the whole argument object.
pub(super) fn nameless(param: &Param, private: &Private) -> Option<TokenStream> {
    let (advice, at) = param.nameless?;
    let private = private.at(ours(at));
    Some(quote_spanned!(ours(at)=> const _: () = #private::needs_name(__WHOLE, #advice);))
}

pub(super) fn shared(receiver: &Receiver, at: proc_macro2::Span, private: &Private) -> TokenStream {
    let ty = &receiver.ty;
    let at = ours(at);
    quote_spanned!(at=> #private::shared::<#ty>();)
}

/// Returns the assertions about all parameters. `types` are the types of the parameters, with `Self` replaced.
pub(super) fn params(tool: &Tool, types: &[TokenStream], private: &Private) -> TokenStream {
    let generic: Vec<_> = tool.receiver.iter().flat_map(|receiver| receiver.generics.type_params()).collect();
    let names: Vec<_> = generic.iter().map(|parameter| &parameter.ident).collect();
    let checks = tool.params.iter().zip(types).map(|(param, ty)| match param.pass {
        // An assertion is a constant, which cannot refer to the type parameters of the block. So a parameter
        // of such a type has no assertion.
        Pass::Injected if crate::types::mentions(ty.clone(), &names) => quote!(),
        Pass::Injected => state(param, ty, private),
        Pass::Value | Pass::Lent => argument(param, ty, private),
    });
    quote!(#(#checks)*)
}

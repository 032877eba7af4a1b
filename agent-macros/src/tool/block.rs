//! `#[tool]` on an impl block: every method marked `#[tool]` is a tool of the value.

use super::attr::ToolItem;
use super::function;
use super::item::{Block, Function, Member};
use super::model::{Receiver, Tool};
use super::{cfgs, check, expand, is_tool, parse_options, refuse_second};
use crate::args::quiet;
use crate::diag::Errors;
use crate::path::{Private, hidden};
use crate::types::{self, Ungroup, as_self};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{Attribute, Meta, ReceiverKind, Type};

pub(super) fn process(tokens: TokenStream, mut block: Block) -> TokenStream {
    let mut errors = Errors::default();
    let options = parse_options(tokens, ToolItem::Block, &mut errors);
    refuse_second(&mut block.attrs, &mut errors);
    let private = Private::new(options.krate.as_ref());
    check_block(&block, &mut errors);
    Ungroup.visit_type_mut(&mut block.self_ty);
    let ty = &block.self_ty;
    let receiver = Receiver { ty: ty.to_token_stream(), this: as_self(ty), generics: block.generics.clone() };
    let require_docs = options.require_docs;

    let mut tools: Vec<(Vec<Attribute>, Tool)> = Vec::new();
    for member in &mut block.members {
        match member {
            Member::Method(method) => {
                if let Some(tool) = marked(method, &receiver, require_docs, &mut errors) {
                    let cfgs = cfgs(&method.attrs).into_iter().cloned().collect();
                    tools.push((cfgs, tool));
                }
            }
            Member::Other { attrs, .. } => {
                for attr in attrs.iter().filter(|attr| is_tool(attr)) {
                    errors.at(attr, "only a method can be a tool");
                }
                attrs.retain(|attr| !is_tool(attr));
            }
        }
    }
    if tools.is_empty() && errors.is_empty() {
        errors.at(
            ty,
            "no method of this block is marked: write `#[tool]` above each one that a model may call",
        );
    }
    check_names(&tools, &mut errors);

    let (set, this) = (hidden("set"), hidden("this"));
    let mut adds = Vec::new();
    for (cfgs, tool) in tools {
        if errors.is_empty() {
            let entry = expand::entry(tool, &private, &mut errors);
            adds.push(quote! {
                #(#cfgs)*
                #set.push({
                    let #this = #private::share(&#this);
                    (move || -> #private::Entry { #entry })()
                });
            });
        }
    }
    let shared = check::shared(&receiver, types::point(ty), &private);
    let body = if errors.is_empty() {
        quote! {
            #shared
            let mut #set = #private::ToolSet::new();
            #(#adds)*
            #set
        }
    } else {
        quote!({ let _ = #this; ::core::unreachable!() })
    };
    let (cfgs, quiet) = (cfgs(&block.attrs), quiet());
    let unnamed = options.is_further && options.set.is_none();
    let tools = (!unnamed).then(|| published(&block, options.set.as_ref(), &body, &private));
    let errors = errors.finish();
    quote! {
        #errors
        #block
        #(#cfgs)*
        #quiet
        const _: () = {
            #tools
        };
    }
}

/// Returns the impls for `tools![value]`. A block with a `set` gets a method that returns the tools.
fn published(block: &Block, set: Option<&Ident>, body: &TokenStream, private: &Private) -> TokenStream {
    let (ty, this) = (&block.self_ty, hidden("this"));
    let (impl_generics, _, clause) = block.generics.split_for_impl();
    if let Some(name) = set {
        let text = format!("The tools of the set `{name}`, for `tools![…]`.");
        return quote! {
            #[automatically_derived]
            impl #impl_generics #ty #clause {
                #[doc = #text]
                pub fn #name(self: &#private::Arc<Self>) -> #private::ToolSet {
                    let #this = #private::share(self);
                    #body
                }
            }
        };
    }
    quote! {
        // If two blocks lack `set`, the impls of this trait conflict. The compiler then shows the trait's name, which says what to write.
        #[automatically_derived]
        impl #impl_generics #private::further_tool_blocks_say_set_and_a_name for #ty #clause {
            fn shared_tools(#this: #private::Arc<Self>) -> #private::ToolSet { #body }
        }
        #[automatically_derived]
        impl #impl_generics #private::IntoTools for #ty #clause {
            fn into_tools(self) -> #private::ToolSet {
                <Self as #private::further_tool_blocks_say_set_and_a_name>::shared_tools(#private::Arc::new(self))
            }
        }
    }
}

fn check_block(block: &Block, errors: &mut Errors) {
    if let Some(path) = &block.of_trait {
        errors.at(
            path,
            "tools are methods of a type: put `#[tool]` on `impl Type { … }`, not on the impl of a trait",
        );
    }
    if let Some(token) = &block.unsafety {
        errors.at(token, "an impl block of tools is not `unsafe`");
    }
    if let Some(lifetime) = block.generics.lifetimes().next() {
        errors.at(
            lifetime,
            "a tool outlives the place where it is made: let the type own its data, or use `'static`",
        );
    }
}

/// Reads a method with `#[tool]`, and removes the attribute. Returns `None` for any other method.
fn marked(
    method: &mut Function,
    receiver: &Receiver,
    require_docs: bool,
    errors: &mut Errors,
) -> Option<Tool> {
    let at = method.attrs.iter().position(is_tool)?;
    let attr = method.attrs.remove(at);
    let tokens = match &attr.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            errors.at(&attr, "options go in parentheses: write `#[tool(…)]`");
            TokenStream::new()
        }
    };
    refuse_second(&mut method.attrs, errors);
    let mut options = parse_options(tokens, ToolItem::Method, errors);
    options.require_docs |= require_docs;
    check_receiver(method, errors);
    Some(function::tool(options, method, Some(receiver.clone()), errors))
}

fn check_receiver(method: &Function, errors: &mut Errors) {
    // A function without `self` is a tool, too.
    let Some(receiver) = method.sig.receiver() else { return };
    match &receiver.kind {
        ReceiverKind::Reference(_, _, None) => {}
        ReceiverKind::Reference(_, _, Some(_)) => errors.at(
            receiver,
            "calls run side by side: take `&self` and keep what changes in a `Mutex` or an atomic",
        ),
        ReceiverKind::Value => errors.at(receiver, "a tool is called many times: take `&self`"),
        ReceiverKind::Typed(_, ty) if matches!(&**ty, Type::Reference(r) if r.mutability.is_none() && r.elem.to_token_stream().to_string() == "Self") =>
            {}
        _ => errors.at(receiver, "the tools of a value share it: take `&self`"),
    }
}

/// Reports names that two tools share. Methods with `#[cfg]` are left out, because they may replace each
/// other.
fn check_names(tools: &[(Vec<Attribute>, Tool)], errors: &mut Errors) {
    let mut seen: Vec<(String, Ident)> = Vec::new();
    for (_, tool) in tools.iter().filter(|(cfgs, _)| cfgs.is_empty()) {
        let name = tool.header.name.value();
        if seen.iter().any(|(other, _)| *other == name) {
            errors.at(&tool.header.name, format!("two tools of this block are named `{name}`: rename one"));
        }
        seen.push((name, tool.function.clone()));
    }
}

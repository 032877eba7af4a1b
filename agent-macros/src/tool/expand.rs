//! Expands one tool to tokens.

use super::model::{Execution, Param, Pass, Tool, ToolHeader};
use super::options::ROWS;
use super::{approval, check};
use crate::args::Kind;
use crate::args::checks::{Checks, implementation};
use crate::args::field::{FieldLowering, argument_or_stand_in, own_type};
use crate::args::foreign::described_by;
use crate::args::mirror::compare_names;
use crate::diag::Errors;
use crate::path::{Private, hidden, ours};
use crate::types::{has_lifetime, replace_self};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Field, Generics, LitStr, Type, parse_quote};

/// Returns the body of a function or closure that returns an `Entry`: the compiled tool, or the reason why it cannot be compiled.
///
/// For a method, the hidden variable `this` must be in scope. It holds the value of the impl block's type.
pub(super) fn entry(mut tool: Tool, private: &Private, errors: &mut Errors) -> TokenStream {
    if let Some(receiver) = &tool.receiver {
        for param in &mut tool.params {
            let resolved = replace_self(param.ty.to_token_stream(), &receiver.this);
            param.ty = syn::parse2(resolved).unwrap_or_else(|_| param.ty.clone());
        }
    }
    let types: Vec<TokenStream> = tool.params.iter().map(|param| param.ty.to_token_stream()).collect();
    let checks = check::params(&tool, &types, private);
    let own_types = own_types(&mut tool, &types, private);
    let run = run(&tool, &types, private);
    let whole = whole(&tool, &types, private);
    let requires = requires(&tool, &types, private);
    let this_type = tool.receiver.as_ref().map(|receiver| &receiver.this);
    let rule = approval::of_function(
        tool.header.options.approval.as_ref(),
        &tool.params,
        &types,
        this_type,
        private,
    );
    let output = tool.output.as_ref().map(|ty| match this_type {
        Some(this) => replace_self(ty.to_token_stream(), this),
        None => ty.to_token_stream(),
    });
    let spec = spec(&tool.header, output.as_ref(), this_type, private);
    let Tool { receiver, params, .. } = tool;
    let (args, cx, requires_var) = (hidden("args"), hidden("cx"), hidden("requires"));
    let this = hidden("this");
    let give_this = receiver.as_ref().map(|_| quote!(#private::share(&#this),));
    let take_this = receiver.as_ref().map(|_| quote!(let #this = #private::share(&#this);));

    let arguments: Vec<_> = params.iter().filter(|param| param.is_argument()).collect();
    let (fields, vars): (Vec<_>, Vec<_>) = arguments
        .iter()
        .enumerate()
        .map(|(n, param)| (field_pattern(param, n), argument_var(param, n)))
        .unzip();
    let field_types: Vec<_> = types
        .iter()
        .zip(&params)
        .filter(|(_, param)| param.is_argument())
        .map(|(ty, _)| ty.clone())
        .collect();
    let own_check = match (&whole, &arguments[..]) {
        (Some(_), [param]) => check::not_whole(param, private),
        _ => None,
    };
    let nameless = arguments.first().and_then(|param| check::nameless(param, private));
    let approval::Expanded { helper: rule_helper, whole: rule_whole, apart: rule_apart } = rule;
    let (is_whole, compile, whole_entry) = match &whole {
        Some(Whole { ty, is_whole }) => (
            quote!(const __WHOLE: #private::bool = #is_whole; #own_check #nameless),
            quote! {
                if __WHOLE {
                    __options()#rule_whole.compile::<#ty>()
                } else {
                    __options()#rule_apart.compile::<__Args>()
                }
            },
            quote! {
                // `__WHOLE` is a constant. If it is `false`, this branch compiles to nothing.
                if __WHOLE {
                    #take_this
                    return #private::typed::<#ty, _>(&__DEFINITION, #requires_var, move |#args, #cx| __run(#give_this #args, #cx));
                }
            },
        ),
        None => (
            nameless.map(|check| quote!(const __WHOLE: #private::bool = false; #check)).unwrap_or_default(),
            quote!(__options()#rule_apart.compile::<__Args>()),
            quote!(),
        ),
    };
    let (helpers, arguments) =
        arguments_struct(params, &field_types, receiver.map(|receiver| receiver.this), private, errors);
    quote! {
        #own_types
        #helpers
        #checks
        #rule_helper
        #spec
        {
            #[allow(unused_imports)]
            use #private::{From as _, Into as _, Some};
            #arguments
            #run
            #is_whole
            static __DEFINITION: #private::LazyLock<#private::Compiled> = #private::LazyLock::new(|| #compile);
            let #requires_var = #requires;
            #whole_entry
            #private::typed::<__Args, _>(&__DEFINITION, #requires_var, move |#args: __Args, #cx| {
                let __Args { #(#fields)* } = #args;
                __run(#give_this #(#vars)* #cx)
            })
        }
    }
}

/// Returns a path to `OrStandIn<T>`. `OrStandIn::Field` is `T`, or the placeholder `StandIn` if a model cannot send `T`.
pub(super) fn stand_in(param: &Param, ty: &TokenStream, private: &Private) -> TokenStream {
    if param.options.with.is_some() {
        return quote!(<#private::OwnType<true> as #private::OrStandIn<#ty>>);
    }
    match &param.own_type {
        Some(alias) => quote!(<#alias as #private::OrStandIn<#ty>>),
        None => argument_or_stand_in(ty, private),
    }
}

/// Returns a type alias for each argument, and stores the name of the alias in `own_type`.
fn own_types(tool: &mut Tool, types: &[TokenStream], private: &Private) -> TokenStream {
    let mut aliases = TokenStream::new();
    for (n, (param, ty)) in tool.params.iter_mut().zip(types).enumerate() {
        // A type with a lifetime gets no alias: a signature may omit the lifetime, but an alias must name it.
        if !param.is_argument() || param.options.with.is_some() || has_lifetime(ty) {
            continue;
        }
        let (alias, cfgs, question) = (format_ident!("__OwnType{n}"), &param.cfgs, own_type(ty, private));
        aliases.extend(quote!(#(#cfgs)* type #alias = #question;));
        param.own_type = Some(alias);
    }
    aliases
}

fn variable(n: usize) -> Ident {
    hidden(&format!("p{n}"))
}

fn field_pattern(param: &Param, n: usize) -> TokenStream {
    let (cfgs, ident, variable) = (&param.cfgs, &param.ident, variable(n));
    quote!(#(#cfgs)* #ident: #variable,)
}

fn argument_var(param: &Param, n: usize) -> TokenStream {
    let (cfgs, variable) = (&param.cfgs, variable(n));
    quote!(#(#cfgs)* #variable,)
}

/// The only argument of a tool, taken by value. A struct may be the whole argument object.
struct Whole {
    ty: TokenStream,
    /// A constant expression that is `true` if the parameter is the whole argument object.
    is_whole: TokenStream,
}

fn whole(tool: &Tool, types: &[TokenStream], private: &Private) -> Option<Whole> {
    let mut arguments = tool.params.iter().zip(types).filter(|(param, _)| param.is_argument());
    let (only, ty) = arguments.next()?;
    let options = &only.options;
    let apart = options.nested.is_some()
        || options.flatten.is_some()
        || options.with.is_some()
        || !only.cfgs.is_empty();
    if arguments.next().is_some() || apart || only.pass != Pass::Value {
        return None;
    }
    let field = stand_in(only, ty, private);
    let is_whole = quote!({
        #[allow(unused_imports)]
        use #private::ObjectUnknown as _;
        #private::Probe::<#ty>::OBJECT
    });
    Some(Whole { ty: quote!(#field::Field), is_whole })
}

/// Returns the helper items, and the hidden struct `__Args`, with the impl that calls the functions of `#[arg(validate)]`. The attributes
/// of the struct's fields refer to the helper items.
fn arguments_struct(
    params: Vec<Param>,
    types: &[TokenStream],
    this: Option<TokenStream>,
    private: &Private,
    errors: &mut Errors,
) -> (TokenStream, TokenStream) {
    let generics = Generics::default();
    let this = this.unwrap_or_else(|| quote!(Self));
    let checks = checks(&params, types, &this, private);
    let mut lowering = FieldLowering {
        private,
        this,
        generics: &generics,
        kind: Kind::Direct,
        checked: params.iter().any(|param| !param.options.checks.is_empty()),
        helpers: Vec::new(),
        demands: false,
        described: true,
        transparent: false,
        demanded: Vec::new(),
        as_is: false,
        requires_docs: false,
        is_read: true,
        filled: false,
        has_secrets: false,
    };
    let arguments = params.into_iter().filter(Param::is_argument).zip(types);
    let (mut own, mut flattened): (Vec<LitStr>, Vec<(String, Type)>) = (Vec::new(), Vec::new());
    let fields: Vec<TokenStream> = arguments
        .map(|(param, ty)| {
            let (ident, cfgs) = (&param.ident, &param.cfgs);
            let mut field: Field = parse_quote!(#ident: #ty);
            lowering.lower(&mut field, &param.options, errors);
            let name = param.ident.unraw().to_string();
            if let (Some(_), Some(ty)) = (param.options.flatten, described_by(&field.attrs)) {
                flattened.push((name, ty));
            } else {
                let renamed = param.options.rename.clone();
                own.push(renamed.unwrap_or_else(|| LitStr::new(&name, param.ident.span())));
                own.extend(param.options.aliases.iter().cloned());
            }
            let (attrs, stand_in) = (&field.attrs, stand_in(&param, ty, private));
            quote!(#(#cfgs)* #(#attrs)* #ident: #stand_in::Field,)
        })
        .collect();
    let (serde, schemars) = (private.text("serde"), private.text("schemars"));
    let compared = compare_names(&own, &flattened, private);
    let helpers = lowering.helpers;
    let checked = checks.is_some().then(|| {
        // With `remote = "Self"`, serde generates an inherent function, which the impl below calls.
        quote!(#[serde(remote = "Self")] #[schemars(extend("x-checked" = true))])
    });
    let item = quote! {
        #[derive(#private::serde::Deserialize, #private::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        #checked
        #compared
        struct __Args { #(#fields)* }
        #checks
    };
    (quote!(#(#helpers)*), item)
}

fn checks(
    params: &[Param],
    types: &[TokenStream],
    this: &TokenStream,
    private: &Private,
) -> Option<TokenStream> {
    let arguments = || params.iter().filter(|param| param.is_argument());
    let own = |check: &syn::Path| replace_self(check.to_token_stream(), this);
    let checks = Checks::of_parameters(
        arguments()
            .map(|param| (&param.ident, &param.cfgs[..], param.options.checks.iter().map(own).collect())),
    );
    if checks.is_empty() {
        return None;
    }
    let run = checks.run(private, |member, value| {
        let found = arguments().zip(types).find(|(param, _)| *member == param.ident.clone().into());
        let ty = found.map(|(param, ty)| stand_in(param, ty, private));
        quote!(#ty::lend(#value))
    });
    let checked = implementation(
        &quote!(impl<'de> #private::CheckedType<'de> for __Args),
        &quote!(),
        &quote!(__Args::deserialize(deserializer)),
        &run,
        private,
    );
    Some(quote! {
        #checked
        #[automatically_derived]
        impl<'de> #private::serde::Deserialize<'de> for __Args {
            fn deserialize<__D>(deserializer: __D) -> #private::Result<Self, __D::Error>
            where
                __D: #private::serde::Deserializer<'de>,
            {
                #private::checked(deserializer)
            }
        }
    })
}

fn run(tool: &Tool, types: &[TokenStream], private: &Private) -> TokenStream {
    let (cx, body) = (hidden("cx"), hidden("body"));
    let (mut inputs, mut lets, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    let mut arguments = 0;
    for (n, (param, ty)) in tool.params.iter().zip(types).enumerate() {
        let (cfgs, at) = (&param.cfgs, ours(param.span));
        if param.pass == Pass::Injected {
            let (injected, state) = (hidden(&format!("injected{n}")), hidden("state"));
            lets.push(quote_spanned! {at=>
                #(#cfgs)*
                let #injected = match #private::Inject::<#ty>::get(#cx) {
                    #private::Result::Ok(#state) => #state,
                    #private::Result::Err(#state) => return *#state,
                };
            });
            passed.push(quote!(#(#cfgs)* #injected,));
            continue;
        }
        let (variable, field) = (variable(arguments), stand_in(param, ty, private));
        arguments += 1;
        inputs.push(quote!(#(#cfgs)* #variable: #field::Field,));
        lets.push(quote!(#(#cfgs)* let #variable = #field::give(#variable);));
        passed.push(match param.pass {
            Pass::Lent => quote!(#(#cfgs)* &#variable,),
            Pass::Value | Pass::Injected => quote!(#(#cfgs)* #variable,),
        });
    }
    let function = &tool.function;
    let this = hidden("this");
    let (this_input, call) = match &tool.receiver {
        None => (None, quote!(#function(#(#passed)*))),
        Some(receiver) => {
            let ty = &receiver.ty;
            let lent = tool.takes_self.then(|| quote!(&#this,));
            (Some(quote!(#this: #private::Arc<#ty>,)), quote!(<#ty>::#function(#lent #(#passed)*)))
        }
    };
    let call = if tool.execution == Execution::Async { quote!(#call.await) } else { call };
    let none = tool.header.options.none.as_ref();
    let converted = converted(&call, none, ours(tool.result), private);
    let running = match tool.execution {
        Execution::Blocking => quote! {
            #private::blocking(#cx, move |#cx: &#private::ToolContext| {
                let _ = #cx;
                #(#lets)*
                #converted
            })
        },
        Execution::Async | Execution::Inline => {
            let mut at_name = body.clone();
            at_name.set_span(ours(tool.function.span()));
            quote! {{
                let #body = async move {
                    let _ = #cx;
                    #(#lets)*
                    #converted
                };
                #private::Box::pin(#private::sendable(#at_name))
            }}
        }
    };
    let mut generics = tool.receiver.as_ref().map(|receiver| receiver.generics.clone()).unwrap_or_default();
    generics.params.insert(0, parse_quote!('__a));
    let (impl_generics, _, clause) = generics.split_for_impl();
    let inject = tool.params.iter().any(|param| !param.is_argument()).then(|| {
        quote! {
            #[allow(unused_imports)]
            use #private::InjectState as _;
        }
    });
    quote! {
        fn __run #impl_generics (
            #this_input
            #(#inputs)*
            #cx: &'__a #private::ToolContext,
        ) -> #private::BoxFuture<'__a, #private::ToolOutcome> #clause {
            #inject
            #running
        }
    }
}

/// Returns an expression that converts the value of `call` to a `ToolOutcome`. The model reads the text `none` if the value is `None`.
/// Compiler errors about missing traits point to `at`, the span of the result type.
pub(super) fn converted(
    call: &TokenStream,
    none: Option<&LitStr>,
    at: proc_macro2::Span,
    private: &Private,
) -> TokenStream {
    let (value, error, kind) = (hidden("value"), hidden("error"), hidden("kind"));
    let (mut value_at, mut error_at) = (value.clone(), error.clone());
    value_at.set_span(at);
    error_at.set_span(at);
    // For some result types, `kind` is deprecated. The span makes the warning of the compiler point to the type.
    let kind_of_value = quote_spanned!(at=> (&#private::OfValue(&#value)).kind());
    let of_value = match none {
        None => quote_spanned!(at=> #kind.outcome(#value_at)),
        Some(none) => quote_spanned!(at=> #kind.outcome_or(#value_at, #none)),
    };
    let of_error = quote_spanned!(at=> #kind.outcome(#error_at));
    quote! {{
        #[allow(unused_imports)]
        use #private::{ErrorUnknown as _, PlainValue as _, ErrorWithSource as _, ValueUnknown as _};
        match #private::Returned(#call).peel() {
            #private::Result::Ok(#value) => {
                let #kind = #kind_of_value;
                #of_value
            }
            #private::Result::Err(#error) => {
                let #kind = (&#private::OfError(&#error)).kind();
                #of_error
            }
        }
    }}
}

/// Returns an expression for the state that the function needs: its parameters that are not arguments.
fn requires(tool: &Tool, types: &[TokenStream], private: &Private) -> TokenStream {
    let injected = tool.params.iter().zip(types).filter(|(param, _)| !param.is_argument());
    let keys = injected.map(|(param, ty)| {
        let (cfgs, at) = (&param.cfgs, ours(param.span));
        let private = private.at(at);
        quote_spanned!(at=> #(#cfgs)* #private::Inject::<#ty>::key(),)
    });
    quote!({
        #[allow(unused_imports)]
        use #private::InjectState as _;
        #private::keys(&[#(#keys)*])
    })
}

/// Returns `fn __options`, which creates the options of the tool. The function is generated where the user's own items are in scope, so
/// that the options can refer to them.
pub(super) fn spec(
    header: &ToolHeader,
    output: Option<&TokenStream>,
    this: Option<&TokenStream>,
    private: &Private,
) -> TokenStream {
    let ToolHeader { name, description, options } = header;
    let settings =
        ROWS.iter().flat_map(|row| options.settings.iter().filter(move |setting| setting.row.key == row.key));
    let mut calls: Vec<TokenStream> = settings.map(|setting| setting.emit(this, private)).collect();
    calls.extend(output.map(|ty| {
        quote!(.output_schema({
            #[allow(unused_imports)]
            use #private::{OutputOfValue as _, OutputUnknown as _, OutputWithSchema as _};
            (&#private::ResultOf::<#ty>::NEW.value()).schema()
        }))
    }));
    let describe = match description {
        None => quote!(.undescribed()),
        Some(description) => {
            let description = description.tokens(this, private);
            quote!(.description(#description))
        }
    };
    quote! {
        fn __options() -> #private::ToolOptions {
            #[allow(unused_imports)]
            use #private::Into as _;
            #private::ToolOptions::new(#name)#describe #(#calls)*
        }
    }
}

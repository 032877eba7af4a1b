//! `approval = …`: whether a call waits for a decision.

use super::expand::stand_in;
use super::model::{Param, Pass};
use crate::args::field::is_primitive;
use crate::diag::{Errors, listed, nearest};
use crate::grammar::{Entry, Value, bare};
use crate::path::{Private, hidden, ours};
use crate::types::{self, Ungroup, replace_self};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprClosure, Pat, Path, Type};

pub(crate) enum Approval {
    Never,
    Always,
    /// The path of a function that takes all arguments as one object.
    Path(Path),
    When(Box<ExprClosure>, Vec<Ident>),
}

const WORDS: &[&str] = &["never", "always"];
const SYNTAX: &str = "write `approval = \"always\"`, `approval = \"never\"`, a rule such as `approval = when(|amount: \
                      &u64| *amount > 100)`, or the path of a function that takes the arguments: `approval = is_risky`";

impl Approval {
    pub(super) fn of(entry: &Entry, errors: &mut Errors) -> Option<Self> {
        let Value::Equals(expr) = &entry.value else {
            entry.wrong(errors, SYNTAX);
            return None;
        };
        match bare(expr) {
            Expr::Lit(_) if entry.literal_text().is_some() => match entry.word(WORDS, errors)? {
                "always" => Some(Self::Always),
                _ => Some(Self::Never),
            },
            Expr::Path(path) if path.qself.is_none() => Some(Self::Path(path.path.clone())),
            Expr::Call(call) => match (bare(&call.func), call.args.first()) {
                (Expr::Path(when), Some(rule)) if when.path.is_ident("when") && call.args.len() == 1 => {
                    Self::rule(rule, errors)
                }
                _ => {
                    errors.at(expr, SYNTAX);
                    None
                }
            },
            _ => {
                errors.at(expr, SYNTAX);
                None
            }
        }
    }

    fn rule(expr: &Expr, errors: &mut Errors) -> Option<Self> {
        let Expr::Closure(closure) = bare(expr) else {
            errors.at(expr, "write a closure over arguments: `when(|amount: &u64| *amount > 100)`");
            return None;
        };
        let mut closure = closure.clone();
        closure.inputs.iter_mut().for_each(|input| Ungroup.visit_pat_mut(input));
        if closure.inputs.is_empty() {
            errors.at(&closure, "a rule looks at arguments: name them, or write `approval = \"always\"`");
            return None;
        }
        let names: Option<Vec<Ident>> = closure.inputs.iter().map(|input| named(input, errors)).collect();
        Some(Self::When(Box::new(closure), names?))
    }

    /// Reports names in the rule that are not arguments. If the only argument may be a struct, the compiler checks the names as its
    /// fields.
    pub(super) fn check(&self, params: &[Param], errors: &mut Errors) {
        let Self::When(_, names) = self else { return };
        let arguments: Vec<&Param> = params.iter().filter(|param| param.is_argument()).collect();
        if let [only] = &arguments[..]
            && (only.options.nested.is_none() && only.options.flatten.is_none())
            && only.pass == Pass::Value
            && !is_primitive(&only.ty)
        {
            return;
        }
        let known: Vec<String> = arguments.iter().map(|param| param.ident.unraw().to_string()).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        for name in names {
            let word = name.unraw().to_string();
            if known.contains(&word.as_str()) {
                continue;
            }
            let advice = match (nearest(&word, &known), known.is_empty()) {
                (_, true) => "the tool takes none, write `approval = \"always\"`".to_owned(),
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, _) => format!("its arguments are {}", listed(&known, "and")),
            };
            errors.at(name, format!("the tool has no argument `{word}`: {advice}"));
        }
    }
}

fn named(input: &Pat, errors: &mut Errors) -> Option<Ident> {
    let Pat::Type(typed) = input else {
        errors.at(input, "write the type, too: `when(|amount: &u64| …)`");
        return None;
    };
    if !matches!(&*typed.ty, Type::Reference(reference) if reference.mutability.is_none()) {
        let ty = types::pretty(&typed.ty);
        errors.at(&typed.ty, format!("a rule looks at arguments without taking them: write `&{ty}`"));
        return None;
    }
    match &*typed.pat {
        Pat::Ident(pat) if pat.subpat.is_none() => Some(pat.ident.clone()),
        other => {
            errors.at(other, "write the name of an argument");
            None
        }
    }
}

/// The generated code of an approval: a function with the rule, and two forms of the call `.approval(…)`.
#[derive(Default)]
pub(super) struct Expanded {
    pub(super) helper: TokenStream,
    /// The call of `.approval` if the arguments are read as one type of the user: the only parameter's type, or the tool itself.
    pub(super) whole: TokenStream,
    /// The method call for arguments that are read as the generated struct, which has a field for each parameter.
    pub(super) apart: TokenStream,
}

/// Expands the approval of a function or method. `types` are the types of `params`; `this` replaces `Self`.
pub(super) fn of_function(
    approval: Option<&Approval>,
    params: &[Param],
    types: &[TokenStream],
    this: Option<&TokenStream>,
    private: &Private,
) -> Expanded {
    let own = |tokens: TokenStream| match this {
        Some(this) => replace_self(tokens, this),
        None => tokens,
    };
    let (at, closure, names) = match simple(approval, private, &own) {
        Ok(call) => return Expanded { helper: quote!(), whole: call.clone(), apart: call },
        Err((closure, names)) => (verdict(closure), own(closure.to_token_stream()), names),
    };
    let arguments: Vec<(&Param, &TokenStream)> =
        params.iter().zip(types).filter(|(param, _)| param.is_argument()).collect();
    let (args, value) = (hidden("args"), hidden("value"));
    let field_of = |param: &Param, ty: &TokenStream| {
        let (field, ident) = (stand_in(param, ty, private), &param.ident);
        quote!(#field::lend(&#args.#ident))
    };
    if let [(only, ty)] = &arguments[..] {
        let call = call_of(names, &only.ident, &value);
        let (field, own) = (stand_in(only, ty, private), field_of(only, ty));
        return Expanded {
            helper: {
                let verdict = quote_spanned!(at=> (#closure)(#(#call),*));
                quote!(fn __approval(#value: &#ty) -> #private::bool { #verdict })
            },
            whole: quote!(.approval(#private::Approval::when::<#field::Field>(|#args| __approval(#field::lend(#args))))),
            apart: quote!(.approval(#private::Approval::when::<__Args>(|#args| __approval(#own)))),
        };
    }
    let known = |name: &&Ident| arguments.iter().find(|(param, _)| param.ident.unraw() == name.unraw());
    let (types, fields): (Vec<&TokenStream>, Vec<TokenStream>) =
        names.iter().filter_map(|name| known(&name)).map(|(param, ty)| (*ty, field_of(param, ty))).unzip();
    Expanded {
        helper: {
            let verdict = quote_spanned!(at=> (#closure)(#(#names),*));
            quote!(fn __approval(#(#names: &#types),*) -> #private::bool { #verdict })
        },
        whole: quote!(),
        apart: quote!(.approval(#private::Approval::when::<__Args>(|#args| __approval(#(#fields),*)))),
    }
}

pub(super) fn of_type(approval: Option<&Approval>, name: &Ident, private: &Private) -> Expanded {
    let this = name.to_token_stream();
    let own = |tokens: TokenStream| replace_self(tokens, &this);
    match simple(approval, private, &own) {
        Ok(call) => Expanded { whole: call, ..Expanded::default() },
        Err((closure, names)) => {
            let (at, closure, value) = (verdict(closure), own(closure.to_token_stream()), hidden("value"));
            let call = names.iter().map(|name| quote!(&#value.#name));
            let verdict = quote_spanned!(at=> (#closure)(#(#call),*));
            Expanded {
                helper: quote!(fn __approval(#value: &#name) -> #private::bool { #verdict }),
                whole: quote!(.approval(#private::Approval::when::<#name>(__approval))),
                apart: quote!(),
            }
        }
    }
}

fn verdict(closure: &ExprClosure) -> Span {
    ours(types::span(&closure.body))
}

/// Returns the method call `.approval(…)`. The code for a closure depends on the tool's parameters, so the error is the closure with its
/// argument names.
fn simple<'a>(
    approval: Option<&'a Approval>,
    private: &Private,
    own: &dyn Fn(TokenStream) -> TokenStream,
) -> Result<TokenStream, (&'a ExprClosure, &'a [Ident])> {
    Ok(match approval {
        None => quote!(),
        Some(Approval::Never) => quote!(.approval(#private::Approval::NEVER)),
        Some(Approval::Always) => quote!(.approval(#private::Approval::ALWAYS)),
        Some(Approval::Path(path)) => {
            let at = ours(types::span(path));
            let (path, there) = (own(path.to_token_stream()), private.at(at));
            quote_spanned!(at=> .approval(#there::Approval::when(#path)))
        }
        Some(Approval::When(closure, names)) => return Err((closure, names)),
    })
}

/// Returns the arguments for the closure in `approval = when(…)`: `value` itself if the only parameter of the closure is `only`, or else
/// the fields of `value` that the parameters name.
fn call_of(names: &[Ident], only: &Ident, value: &Ident) -> Vec<TokenStream> {
    match names {
        [name] if name.unraw() == only.unraw() => vec![quote!(#value)],
        names => names.iter().map(|name| quote!(&#value.#name)).collect(),
    }
}

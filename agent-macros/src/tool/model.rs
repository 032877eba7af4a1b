//! One validated tool, ready for expansion.

use super::attr::Options;
use crate::args::attr::ArgOptions;
use crate::doc::Text;
use proc_macro2::{Ident, Span, TokenStream};
use syn::{Attribute, Generics, LitStr, Type};

/// A function or method that is a tool.
pub(crate) struct Tool {
    pub(crate) header: ToolHeader,
    /// The function to call.
    pub(crate) function: Ident,
    pub(crate) receiver: Option<Receiver>,
    /// A method that takes `&self`; one that does not is a function of the type.
    pub(crate) takes_self: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) execution: Execution,
    /// Where the type of the result stands.
    pub(crate) result: Span,
    /// The type of the result, where it has a name and stands for itself.
    pub(crate) output: Option<Type>,
}

/// Name, description and options of a tool.
pub(crate) struct ToolHeader {
    pub(crate) name: LitStr,
    /// `None` where none is wanted.
    pub(crate) description: Option<Text>,
    pub(crate) options: Options,
}

/// `&self`: the type whose methods are tools.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) ty: TokenStream,
    /// The type that replaces `Self`.
    pub(crate) this: TokenStream,
    pub(crate) generics: Generics,
}

/// How the body runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    /// An async function.
    Async,
    /// A synchronous function where blocking does no harm.
    Blocking,
    /// A synchronous function in place.
    Inline,
}

/// One parameter.
pub(crate) struct Param {
    pub(crate) ident: Ident,
    pub(crate) pass: Pass,
    /// The owned type of an argument, or the type that is injected.
    pub(crate) ty: Type,
    /// The span of the type in the signature.
    pub(crate) span: Span,
    /// `#[cfg]`, repeated wherever the parameter is.
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) options: ArgOptions,
    /// It has no name that a model could be shown, so it must be the whole argument object: why, and where it stands.
    pub(crate) nameless: Option<(&'static str, Span)>,
    /// The alias of the answer whether its type is used, or a stand-in: the question is asked once, and not in each place of the type.
    pub(crate) own_type: Option<Ident>,
}

/// Where its value comes from, and how it is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// `T`: an argument.
    Value,
    /// `&str`, `&[T]`: an argument, lent.
    Lent,
    /// `&T`: from the context.
    Injected,
}

impl Param {
    pub(crate) fn is_argument(&self) -> bool {
        self.pass != Pass::Injected
    }
}

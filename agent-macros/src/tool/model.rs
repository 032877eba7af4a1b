//! One validated tool, ready for expansion.

use super::attr::Options;
use crate::args::attr::ArgOptions;
use crate::doc::Text;
use proc_macro2::{Ident, Span, TokenStream};
use syn::{Attribute, Generics, LitStr, Type};

pub(crate) struct Tool {
    pub(crate) header: ToolHeader,
    pub(crate) function: Ident,
    pub(crate) receiver: Option<Receiver>,
    /// Whether the function is a method that takes `&self`. In an impl block, a function may have no `self`.
    pub(crate) takes_self: bool,
    pub(crate) params: Vec<Param>,
    pub(crate) execution: Execution,
    pub(crate) result: Span,
    /// The type of the result, if it is written out and does not depend on type parameters.
    pub(crate) output: Option<Type>,
}

pub(crate) struct ToolHeader {
    pub(crate) name: LitStr,
    /// The description for the model. `None` with the option `doc = false`, unless the option `description` is given.
    pub(crate) description: Option<Text>,
    pub(crate) options: Options,
}

/// The type of an impl block with tools. Its methods take a value of the type as `&self`.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) ty: TokenStream,
    pub(crate) this: TokenStream,
    pub(crate) generics: Generics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Execution {
    Async,
    /// A synchronous function that runs on a thread that may be blocked.
    Blocking,
    /// A synchronous function that runs on the thread of the call.
    Inline,
}

pub(crate) struct Param {
    pub(crate) ident: Ident,
    pub(crate) pass: Pass,
    /// The type without the reference: `String` for `&str`.
    pub(crate) ty: Type,
    pub(crate) span: Span,
    /// The `#[cfg]` attributes, which are repeated wherever the parameter is used.
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) options: ArgOptions,
    /// The text and span of an error. Set for a pattern without a name, such as `(a, b)`. The error is reported unless the parameter is
    /// the whole argument object.
    pub(crate) nameless: Option<(&'static str, Span)>,
    /// The name of an alias: of `OwnType<true>` if the parameter's type can be an argument, or else of `OwnType<false>`.
    pub(crate) own_type: Option<Ident>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// `T`: an argument, passed by value.
    Value,
    /// `&str` or `&[T]`: an argument, passed by reference.
    Lent,
    /// `&T`: state from the context.
    Injected,
}

impl Param {
    pub(crate) fn is_argument(&self) -> bool {
        self.pass != Pass::Injected
    }
}

//! The path from generated code to the library.

use crate::manifest;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Path;

/// The path of the library's private module, `::agent::__private` unless `crate = path` or the manifest names another
/// crate.
///
/// Generated code refers to all items of the library by this path, so that nothing depends on names that the user
/// imported, shadowed or renamed.
#[derive(Debug, Clone)]
pub(crate) struct Private(TokenStream);

impl Private {
    pub(crate) fn new(krate: Option<&Path>) -> Self {
        if let Some(path) = krate {
            return Self(quote!(#path::__private));
        }
        let renamed = manifest::renamed();
        Self(renamed.map_or_else(|| quote!(::agent::__private), |name| quote!(::#name::__private)))
    }

    /// Returns the path with this span, so that the compiler reports errors about the path at the span.
    pub(crate) fn at(&self, span: Span) -> Self {
        Self(crate::types::respan(self.0.clone(), span))
    }

    /// Returns the path of an item in the module as text, for attributes of serde and schemars such as `crate = "…"`.
    pub(crate) fn text(&self, name: &str) -> String {
        let name = Ident::new(name, Span::call_site());
        let private = &self.0;
        quote!(#private::#name).to_string().replace(' ', "")
    }
}

impl ToTokens for Private {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.0.to_tokens(tokens);
    }
}

/// Returns an identifier with the macro's hygiene. A local variable with this identifier cannot collide with a variable of the user.
pub(crate) fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Returns the user's span with the macro's hygiene: the compiler points to the user's code, but resolves names as
/// names of generated code.
pub(crate) fn ours(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}

//! Parses the item below `#[tool]`. Function bodies stay tokens, so that the compiler reports errors in a body at their positions.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, DeriveInput, Generics, ImplItem, Path, Signature, Token, Type, Visibility, braced, token,
};

pub(super) enum Item {
    Function(Function),
    Type(DeriveInput),
    Block(Block),
}

pub(super) struct Function {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) sig: Signature,
    pub(super) body: TokenStream,
}

pub(super) struct Block {
    pub(super) attrs: Vec<Attribute>,
    pub(super) unsafety: Option<Token![unsafe]>,
    pub(super) generics: Generics,
    pub(super) of_trait: Option<Path>,
    pub(super) self_ty: Type,
    pub(super) members: Vec<Member>,
}

pub(super) enum Member {
    Method(Box<Function>),
    Other { attrs: Vec<Attribute>, item: TokenStream },
}

impl Parse for Item {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let ahead = input.fork();
        ahead.call(Attribute::parse_outer)?;
        ahead.parse::<Visibility>()?;
        if ahead.peek(Token![struct]) || ahead.peek(Token![enum]) || ahead.peek(Token![union]) {
            return input.parse().map(Item::Type);
        }
        if ahead.peek(Token![impl]) || (ahead.peek(Token![unsafe]) && ahead.peek2(Token![impl])) {
            return input.parse().map(Item::Block);
        }
        let place = ahead.fork();
        let is_function = ahead.peek(Token![fn])
            || [
                ahead.peek(Token![const]),
                ahead.peek(Token![async]),
                ahead.peek(Token![unsafe]),
                ahead.peek(Token![extern]),
            ]
            .contains(&true)
                && ahead.parse::<Signature>().is_ok();
        if !is_function {
            return Err(place.error("`#[tool]` goes on a function, a struct, an enum or an impl block"));
        }
        let function: Function = input.parse()?;
        if !input.is_empty() {
            return Err(input.error("unexpected tokens after the function"));
        }
        Ok(Item::Function(function))
    }
}

impl Parse for Function {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let (attrs, vis, sig) = (input.call(Attribute::parse_outer)?, input.parse()?, input.parse()?);
        if !input.peek(token::Brace) {
            return Err(input.error("a tool needs a body: `{ … }`"));
        }
        let body = braces(input.parse()?).ok_or_else(|| input.error("a tool needs a body: `{ … }`"))?;
        Ok(Self { attrs, vis, sig, body: body.to_token_stream() })
    }
}

/// Returns the braces of a function's body, even if they are in the invisible group of a `block` fragment of `macro_rules!`.
fn braces(token: TokenTree) -> Option<Group> {
    let TokenTree::Group(group) = token else { return None };
    match group.delimiter() {
        Delimiter::Brace => Some(group),
        Delimiter::None => {
            let mut inside = group.stream().into_iter();
            let only = inside.next()?;
            if inside.next().is_some() { None } else { braces(only) }
        }
        Delimiter::Parenthesis | Delimiter::Bracket => None,
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, vis, sig, body } = self;
        tokens.extend(quote!(#(#attrs)* #vis #sig #body));
    }
}

impl Parse for Block {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let unsafety = input.parse()?;
        input.parse::<Token![impl]>()?;
        let mut generics = if input.peek(Token![<]) { input.parse()? } else { Generics::default() };
        let mut self_ty: Type = input.parse()?;
        let mut of_trait = None;
        if input.peek(Token![for]) {
            input.parse::<Token![for]>()?;
            if let Type::Path(path) = &self_ty {
                of_trait = Some(path.path.clone());
            }
            self_ty = input.parse()?;
        }
        generics.where_clause = input.parse()?;
        let content;
        braced!(content in input);
        let attrs = attrs.into_iter().chain(content.call(Attribute::parse_inner)?).collect();
        let mut members = Vec::new();
        while !content.is_empty() {
            members.push(content.parse()?);
        }
        Ok(Self { attrs, unsafety, generics, of_trait, self_ty, members })
    }
}

impl Parse for Member {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let ahead = input.fork();
        ahead.call(Attribute::parse_outer)?;
        ahead.parse::<Visibility>()?;
        if ahead.parse::<Signature>().is_ok() && ahead.peek(token::Brace) {
            return input.parse().map(Box::new).map(Member::Method);
        }
        let attrs = input.call(Attribute::parse_outer)?;
        let item: ImplItem = input.parse()?;
        Ok(Member::Other { attrs, item: item.to_token_stream() })
    }
}

impl ToTokens for Block {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attrs, unsafety, generics, of_trait, self_ty, members } = self;
        let (impl_generics, _, clause) = generics.split_for_impl();
        let of_trait = of_trait.as_ref().map(|path| quote!(#path for));
        let (outer, inner): (Vec<_>, Vec<_>) =
            attrs.iter().partition(|attr| matches!(attr.style, syn::AttrStyle::Outer));
        let members = members.iter().map(|member| match member {
            Member::Method(method) => method.to_token_stream(),
            Member::Other { attrs, item } => quote!(#(#attrs)* #item),
        });
        tokens.extend(quote! {
            #(#outer)* #unsafety impl #impl_generics #of_trait #self_ty #clause { #(#inner)* #(#members)* }
        });
    }
}

//! Reads and changes types as tokens, without resolving names.

use crate::args::field::is_primitive;
use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{GenericArgument, Lifetime, PathArguments, Type, TypePath, parse_quote};

/// Replaces `Self` by the user's type, because `Self` has another meaning inside generated types. `with` has the form
/// that [`as_self`] returns.
pub(crate) fn replace_self(tokens: TokenStream, with: &TokenStream) -> TokenStream {
    let starts_path = syn::parse2::<syn::Path>(with.clone()).is_ok();
    let qualified = if starts_path { with.clone() } else { quote!(<#with>) };
    replaced(tokens, with, &qualified)
}

fn replaced(tokens: TokenStream, with: &TokenStream, qualified: &TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut out = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(ident) if ident == "Self" => {
                let is_path = matches!(tokens.peek(), Some(TokenTree::Punct(next))
                    if next.as_char() == ':' && next.spacing() == Spacing::Joint);
                out.extend(if is_path { qualified.clone() } else { with.clone() });
            }
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), replaced(group.stream(), with, qualified));
                inside.set_span(group.span());
                out.extend([TokenTree::Group(inside)]);
            }
            token => out.extend([token]),
        }
    }
    out
}

/// Returns a type in the form that can replace `Self` in types, expressions and patterns: `Node::<T>` for `Node<T>`.
pub(crate) fn as_self(ty: &Type) -> TokenStream {
    let mut ty = ty.clone();
    if let Type::Path(path) = &mut ty {
        for segment in &mut path.path.segments {
            if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                arguments.colon2_token.get_or_insert_with(Default::default);
            }
        }
    }
    ty.to_token_stream()
}

/// Removes the invisible groups around types that are fragments of `macro_rules!`.
pub(crate) struct Ungroup;

impl VisitMut for Ungroup {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        while let Type::Group(group) = ty {
            let inner = std::mem::replace(&mut *group.elem, Type::Verbatim(TokenStream::new()));
            let several = match &inner {
                Type::TraitObject(of) => of.bounds.len() > 1,
                Type::ImplTrait(of) => of.bounds.len() > 1,
                _ => false,
            };
            // `&$t` needs parentheses if `$t` is `dyn A + B`.
            *ty = if several { parse_quote!((#inner)) } else { inner };
        }
        visit_mut::visit_type_mut(self, ty);
    }
}

/// Returns the tokens without invisible groups. The result is only useful as text, and not as code.
pub(crate) fn flat(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
            TokenTree::Group(group) => {
                TokenTree::from(Group::new(group.delimiter(), flat(group.stream()))).into()
            }
            token => token.into(),
        })
        .collect()
}

pub(crate) fn mentions(tokens: TokenStream, names: &[&Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}

pub(crate) fn contains_word(tokens: TokenStream, words: &[&str]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => words.iter().any(|word| ident == word),
        TokenTree::Group(group) => contains_word(group.stream(), words),
        _ => false,
    })
}

/// Replaces `'_` and the lifetimes in `declared` by `'static`, because arguments and state own their data. The compiler accepts `'static`
/// for any shorter lifetime in the signature.
pub(crate) fn make_static(ty: &mut Type, declared: &[Lifetime]) {
    struct Static<'a>(&'a [Lifetime]);
    impl VisitMut for Static<'_> {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            if lifetime.ident == "_" || self.0.iter().any(|known| known.ident == lifetime.ident) {
                lifetime.ident = Ident::new("static", lifetime.ident.span());
            }
        }
    }
    Static(declared).visit_type_mut(ty);
}

/// Returns the type with owned types instead of references, such as `Option<String>` for `Option<&str>`. Returns `None` for a type without
/// references.
pub(crate) fn owned(ty: &Type) -> Option<Type> {
    struct Owned(bool);
    impl VisitMut for Owned {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            while let Type::Reference(reference) = ty {
                self.0 = true;
                *ty = owned_form(&reference.elem).unwrap_or_else(|| (*reference.elem).clone());
            }
            // A function pointer or trait object does not hold the references in its signature, so these references stay.
            if !matches!(ty, Type::FnPtr(_) | Type::TraitObject(_)) {
                visit_mut::visit_type_mut(self, ty);
            }
        }
    }
    let (mut found, mut ty) = (Owned(false), ty.clone());
    found.visit_type_mut(&mut ty);
    found.0.then_some(ty)
}

/// Returns the owned form of an unsized type, such as `String` for `str`.
fn owned_form(ty: &Type) -> Option<Type> {
    match ty {
        Type::Slice(slice) => {
            let item = &slice.elem;
            Some(parse_quote!(Vec<#item>))
        }
        Type::Path(path) if path.path.is_ident("str") => Some(parse_quote!(String)),
        Type::Path(path) if path.path.segments.last()?.to_token_stream().to_string() == "Path" => {
            let mut path = path.clone();
            path.path.segments.last_mut()?.ident = Ident::new("PathBuf", point(ty));
            Some(Type::Path(path))
        }
        _ => None,
    }
}

pub(crate) fn pretty(tokens: &impl ToTokens) -> String {
    let mut text = flat(tokens.to_token_stream()).to_string();
    for (from, to) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
        ("[ ", "["),
        (" ]", "]"),
        ("( ", "("),
        (" )", ")"),
        (" ;", ";"),
        ("- ", "-"),
    ] {
        text = text.replace(from, to);
    }
    text
}

/// Returns the innermost type of lists, maps, `Option`s and pointers. Compile errors about a `Vec<T>` are then about `T`.
pub(crate) fn innermost(ty: &Type) -> &Type {
    let inside = match ty {
        Type::Paren(paren) => Some(&*paren.elem),
        Type::Group(group) => Some(&*group.elem),
        Type::Array(array) => Some(&*array.elem),
        Type::Path(path) => path.path.segments.last().and_then(|last| {
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            let mut types = arguments.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            match last.ident.to_string().as_str() {
                "Option" | "Vec" | "VecDeque" | "Box" | "Arc" | "Rc" | "BTreeSet" | "HashSet" => types.next(),
                "BTreeMap" | "HashMap" => types.nth(1),
                _ => None,
            }
        }),
        _ => None,
    };
    inside.map_or(ty, innermost)
}

/// Returns the `str` or `[T]` in an `Arc<str>` or `Arc<[T]>` (or `Rc`). Such a parameter is data from the model, and not application
/// state.
pub(crate) fn shared_data(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last =
        path.path.segments.last().filter(|last| ["Arc", "Rc"].iter().any(|name| last.ident == name))?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(data @ Type::Slice(_))) => Some(data),
        Some(GenericArgument::Type(data @ Type::Path(path))) if path.path.is_ident("str") => Some(data),
        _ => None,
    }
}

/// Returns the type behind the first reference, such as `Db` for `Option<&Db>`. Skips references to unsized types such as `str`, and to
/// types without a path, such as tuples.
pub(crate) fn referenced(ty: &Type) -> Option<Type> {
    struct FoundType(Option<Type>);
    impl VisitMut for FoundType {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if let Type::Reference(reference) = &*ty
                && let elem @ Type::Path(_) = &*reference.elem
                && owned_form(elem).is_none()
            {
                self.0.get_or_insert_with(|| elem.clone());
            }
            visit_mut::visit_type_mut(self, ty);
        }
    }
    let mut found = FoundType(None);
    found.visit_type_mut(&mut ty.clone());
    found.0
}

pub(crate) fn has_lifetime(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Punct(punct) => punct.as_char() == '\'',
        TokenTree::Group(group) => has_lifetime(&group.stream()),
        _ => false,
    })
}

/// Finds types in `ty` that look like maps whose keys may not be text, such as `HashMap<Id, T>`. Returns each type with its key type, or
/// with `None` if the key is a tuple or an array.
pub(crate) fn with_composed_keys(ty: &Type) -> Vec<(Type, Option<Type>)> {
    struct FoundPairs(Vec<(Type, Option<Type>)>);
    impl VisitMut for FoundPairs {
        fn visit_type_mut(&mut self, ty: &mut Type) {
            if let Type::Path(path) = &*ty
                && let Some(PathArguments::AngleBracketed(arguments)) =
                    path.path.segments.last().map(|segment| &segment.arguments)
                && arguments.args.len() > 1
                && let Some(GenericArgument::Type(key)) = arguments.args.first()
            {
                let text = |path: &TypePath| path.path.is_ident("String") || is_primitive(key);
                match key {
                    Type::Tuple(_) | Type::Array(_) => self.0.push((ty.clone(), None)),
                    Type::Path(path) if !text(path) => self.0.push((ty.clone(), Some(key.clone()))),
                    _ => {}
                }
            }
            visit_mut::visit_type_mut(self, ty);
        }
    }
    let mut found = FoundPairs(Vec::new());
    found.visit_type_mut(&mut ty.clone());
    found.0
}

/// Returns the span of the first token, because stable compilers cannot join spans.
pub(crate) fn span(tokens: &impl ToTokens) -> Span {
    tokens.to_token_stream().into_iter().next().map_or_else(Span::call_site, |token| token.span())
}

/// Returns the span of a type's name, at which errors about the type point.
pub(crate) fn point(ty: &Type) -> Span {
    match ty {
        Type::Reference(reference) => point(&reference.elem),
        Type::Paren(paren) => point(&paren.elem),
        Type::Group(group) => point(&group.elem),
        Type::Path(path) => match path.path.segments.last() {
            Some(segment) => segment.ident.span(),
            None => span(ty),
        },
        _ => span(ty),
    }
}

pub(crate) fn respan(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => {
                let mut moved = Group::new(group.delimiter(), respan(group.stream(), span));
                moved.set_span(span);
                TokenTree::Group(moved)
            }
            mut token => {
                token.set_span(span);
                token
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_at_any_depth() {
        let of = |ty: Type| owned(&ty).map(|ty| pretty(&ty));
        assert_eq!(of(parse_quote!(Option<&str>)).as_deref(), Some("Option<String>"));
        assert_eq!(of(parse_quote!(Vec<(&'a [u8], u8)>)).as_deref(), Some("Vec<(Vec<u8>, u8)>"));
        assert_eq!(of(parse_quote!(Option<&'static Thing>)).as_deref(), Some("Option<Thing>"));
        assert_eq!(of(parse_quote!(Option<&&str>)).as_deref(), Some("Option<String>"));
        assert_eq!(of(parse_quote!(Option<&std::path::Path>)).as_deref(), Some("Option<std::path::PathBuf>"));
        assert_eq!(of(parse_quote!(HashMap<String, fn(&str)>)), None);
        assert_eq!(of(parse_quote!(Cow<'_, str>)), None);
    }

    #[test]
    fn containers_are_peeled() {
        let of = |ty: Type| pretty(innermost(&ty));
        assert_eq!(of(parse_quote!(Option<std::vec::Vec<Box<a::Inner>>>)), "a::Inner");
        assert_eq!(of(parse_quote!(HashMap<String, [Inner; 2], S>)), "Inner");
        assert_eq!(of(parse_quote!(Inner<Vec<u8>>)), "Inner<Vec<u8>>");
        assert_eq!(of(parse_quote!((Inner, u8))), "(Inner, u8)");
    }

    #[test]
    fn what_references_lead_to() {
        let of = |ty: Type| referenced(&ty).map(|ty| pretty(&ty));
        assert_eq!(of(parse_quote!(Option<Vec<&a::Db>>)).as_deref(), Some("a::Db"));
        assert_eq!(of(parse_quote!(Option<&str>)), None);
        assert_eq!(of(parse_quote!(Option<&[u8]>)), None);
        assert_eq!(of(parse_quote!(Option<&Path>)), None);
        assert!(has_lifetime(&quote!(Option<S<'static>>)) && !has_lifetime(&quote!(Option<S>)));
        let data = |ty: Type| shared_data(&ty).map(pretty);
        assert_eq!(data(parse_quote!(std::sync::Arc<str>)).as_deref(), Some("str"));
        assert_eq!(data(parse_quote!(Arc<[u8]>)).as_deref(), Some("[u8]"));
        assert_eq!(data(parse_quote!(Arc<Db>)), None);
        assert_eq!(data(parse_quote!(Arc<dyn Clock>)), None);
    }

    #[test]
    fn only_the_lifetimes_of_the_signature_become_static() {
        let mut ty: Type = parse_quote!(Thing<'a, '_, 'static, for<'b> fn(&'b str)>);
        make_static(&mut ty, &[parse_quote!('a)]);
        assert_eq!(pretty(&ty), "Thing<'static, 'static, 'static, for<'b> fn (&'b str)>");
    }

    #[test]
    fn self_is_replaced_inside_groups() {
        let replaced = replace_self(quote!(Vec<(Self, [Self; 2])>), &quote!(Node<T>));
        assert_eq!(replaced.to_string(), quote!(Vec<(Node<T>, [Node<T>; 2])>).to_string());
        let assumed =
            replace_self(quote!((Self::Kind, <Self as Tr>::Kind, Self { a: Self::A })), &quote!(Node));
        let expected = quote!((Node::Kind, <Node as Tr>::Kind, Node { a: Node::A }));
        assert_eq!(assumed.to_string(), expected.to_string());
        let slice = replace_self(quote!((Self, Self::Kind)), &quote!([u8]));
        assert_eq!(slice.to_string(), quote!(([u8], <[u8]>::Kind)).to_string());
        assert_eq!(as_self(&parse_quote!(a::Node<T>)).to_string(), quote!(a::Node::<T>).to_string());
        let t: Ident = parse_quote!(T);
        assert!(mentions(quote!(Vec<(u8, [T; 2])>), &[&t]));
        assert!(!mentions(quote!(Vec<Text>), &[&t]));
    }
}

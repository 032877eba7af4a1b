use super::*;
use crate::grammar::Keys;
use quote::quote;

fn expanded(options: TokenStream, item: &TokenStream) -> (String, Vec<String>) {
    let text = expand(options, item).to_string();
    let messages = text.split("compile_error ! { \"").skip(1);
    let messages = messages.filter_map(|rest| rest.split("\" }").next()).map(str::to_owned).collect();
    (text, messages)
}

#[test]
fn every_key_of_every_table_is_read() {
    for place in [ToolItem::Function, ToolItem::Method, ToolItem::Type, ToolItem::Block] {
        let Keys { known, .. } = attr::keys(place);
        for key in known {
            let key = syn::parse_str::<proc_macro2::TokenTree>(key).expect("a word");
            let mut errors = Errors::default();
            let _ = attr::parse(quote!(#key = []), place, &mut errors);
            assert_eq!(errors.messages().len(), 1, "`{key} = []` is a mistake for every option");
        }
    }
}

#[test]
fn the_item_is_emitted_whatever_happens() {
    for (options, item, kept) in [
        (
            quote!(nonsense),
            quote!(
                fn f(
                    #[arg(x)]
                    /** doc */
                    a: &mut u8,
                ) {
                    body
                }
            ),
            "fn f (a : & mut u8",
        ),
        (
            quote!(),
            quote!(
                struct S(#[arg(default)] u8);
            ),
            "struct S (u8) ;",
        ),
        (
            quote!(),
            quote!(
                #[derive(Clone, ToolArgs)]
                struct S(#[arg(default)] u8);
            ),
            "# [derive (Clone)] struct S (u8) ;",
        ),
        (quote!(), quote!(impl S { #[tool] fn f(&mut self) { body } }), "fn f (& mut self"),
        (
            quote!(),
            quote!(
                trait T {}
            ),
            "trait T { }",
        ),
        (quote!(), quote!(fn f(), ), "fn f () ,"),
    ] {
        let (text, messages) = expanded(options, &item);
        assert!(!messages.is_empty(), "{text}");
        assert!(text.contains(kept), "{kept} is not in {text}");
        assert!(!text.contains("arg (") && !text.contains("# [tool]"), "{text}");
    }
}

#[test]
fn mistakes_are_reported_together() {
    let (_, messages) = expanded(
        quote!(nmae = "x", timeout = "1"),
        &quote!(
            unsafe fn f<T>((a, b): (u8, u8), c: &mut u8, #[arg(defualt = 1)] d: u8) {}
        ),
    );
    assert_eq!(messages.len(), 8, "{messages:#?}");
    let (_, messages) = expanded(
        quote!(description = "x", effect = "idempotant", max_attempts = 3),
        &quote!(
            fn f() {}
        ),
    );
    assert_eq!(messages.len(), 1, "the effect is not known: {messages:#?}");
}

#[test]
fn a_listed_argument_that_a_method_lacks_is_reported() {
    let (_, messages) = expanded(
        quote!(),
        &quote!(
            impl S {
                /// Looks.
                ///
                /// # Arguments
                /// * `ctiy` - Where.
                #[tool]
                fn f(&self, city: String) {}
            }
        ),
    );
    assert_eq!(
        messages,
        ["the docs list an argument `ctiy` that the function does not have: did you mean `city`?"]
    );
}

#[test]
fn after_a_mistake_the_type_is_still_a_tool() {
    let (text, _) = expanded(
        quote!(),
        &quote!(
            fn f(a: &mut u8) {}
        ),
    );
    assert!(text.contains("struct f { }") && text.contains(":: StaticTool for f"), "{text}");
    let (text, _) = expanded(quote!(), &quote!(impl F { #[tool] fn f(&mut self) {} }));
    assert!(text.contains(":: IntoTools for F"), "{text}");
}

#[test]
fn a_method_alone_emits_nothing_beside_itself() {
    let (text, messages) = expanded(
        quote!(description = "x"),
        &quote!(
            fn f(&self) {}
        ),
    );
    assert_eq!(messages.len(), 1);
    assert!(!text.contains("struct") && !text.contains("const _"), "{text}");
}

#[test]
fn all_that_is_generated_is_rooted() {
    // In the whole expansion of a tool, no path begins with a name of the prelude or of the standard library.
    let (text, messages) = expanded(
        quote!(description = "x", title = "t", coerce = "exact", unknown = "strip", timeout = "1s"),
        &quote!(
            async fn f(
                a: u8,
                #[arg(default = 1, range(1..=2), length(1), alias = "z")] b: u8,
                c: &str,
                d: &D,
            ) {
            }
        ),
    );
    assert_eq!(messages, [""; 0]);
    let spaced = text.replace("::", " :: ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let banned = [
            "Option", "Result", "Vec", "String", "Box", "Ok", "Err", "None", "vec", "format", "Arc", "panic",
        ];
        if banned.contains(word) {
            assert_eq!(words.get(at.wrapping_sub(1)), Some(&"::"), "`{word}` is not rooted: {text}");
        }
        // A path either continues another one or starts at the root.
        if ["std", "core", "agent", "alloc"].contains(word) {
            assert_eq!(words.get(at.wrapping_sub(1)), Some(&"::"), "`{word}` is not rooted: {text}");
        }
    }
}

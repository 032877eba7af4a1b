use super::*;
use proc_macro2::Span;
use syn::{LitStr, parse_quote};

fn expanded(input: &DeriveInput, kind: Kind) -> (String, usize) {
    let text = derive(input, kind).to_string();
    let mistakes = text.matches("compile_error").count();
    (text, mistakes)
}

#[test]
fn every_key_of_every_place_is_read() {
    for place in [ArgItem::Parameter, ArgItem::Field, ArgItem::Variant, ArgItem::Output, ArgItem::Foreign] {
        for key in place.keys().known {
            if *key == "example" {
                continue; // any JSON will do
            }
            let key = syn::parse_str::<proc_macro2::TokenTree>(key).expect("a word");
            let item: syn::ItemStruct = parse_quote!(
                #[arg(#key(!))]
                struct S;
            );
            let mut errors = Errors::default();
            let _ = parse(&item.attrs, place, &mut errors);
            assert!(!errors.messages().is_empty(), "`{key}(!)` is a mistake for every option");
        }
    }
}

#[test]
fn attributes_of_other_derives_stay_away_from_the_mirror() {
    let input: DeriveInput = parse_quote! {
        /// Doc.
        #[serde(rename_all = "camelCase")]
        #[other(thing)]
        pub struct S<T> where T: Clone {
            /// Field.
            #[other]
            #[serde(rename = "x")]
            pub(crate) a: Option<Box<Self>>,
            t: T,
        }
    };
    let (text, mistakes) = expanded(&input, Kind::Args);
    assert_eq!(mistakes, 0, "{text}");
    assert!(!text.contains("other"), "{text}");
    assert!(text.contains(r#"rename_all = "camelCase""#) && text.contains(r#"remote = "S""#), "{text}");
    assert!(text.contains("a : Option < Box < S :: < T > > >"), "`Self` means the user's type: {text}");
    assert!(!text.contains("pub struct") && !text.contains("pub (crate)"), "the mirror is private: {text}");
    assert!(text.contains(r#"description = "Field.""#), "{text}");
}

#[test]
fn after_a_mistake_the_impls_are_stand_ins() {
    let input: DeriveInput = parse_quote! {
        struct S { #[arg(defualt)] a: u8 }
    };
    let (text, mistakes) = expanded(&input, Kind::Args);
    assert_eq!(mistakes, 1);
    assert!(text.contains("Deserialize < 'de > for S") && text.contains("JsonSchema for S"), "{text}");
    assert!(!text.contains("__Mirror"), "{text}");
}

#[test]
fn an_output_is_written_and_described_but_never_read() {
    let input: DeriveInput = parse_quote! {
        #[arg(own_serde)]
        struct S { #[arg(default = 3, range(1..=3), rename = "b")] a: u8 }
    };
    let (text, mistakes) = expanded(&input, Kind::Output);
    assert_eq!(mistakes, 0, "options for arguments change nothing: {text}");
    assert!(text.contains("Serialize for S") && text.contains(r#"rename = "b""#), "{text}");
    assert!(!text.contains("Deserialize") && !text.contains("JsonSchema for S"), "{text}");
    assert!(text.contains("ResultSchema for S"), "{text}");
}

#[test]
fn patterns_are_read_as_ecma_262_writes_them() {
    let mistakes = |text: &str| {
        let mut errors = Errors::default();
        pattern::is_pattern(&LitStr::new(text, Span::call_site()), &mut errors);
        errors.messages()
    };
    let own = ["^[[]", "[^]", r"^[\w-.]+$", r"\cJ\0", "[](]b)", r"[\](]", r"\u{1F600}{2}", r"\/[(?=]"];
    for text in own {
        assert!(mistakes(text).is_empty(), "{text}");
    }
    for text in ["[a-", r"[a\]", "(a", "a)", "*", "a\\", "(?=a)", r"(a)\1", r"[]](?!\d)"] {
        assert_eq!(mistakes(text).len(), 1, "{text}");
    }
}

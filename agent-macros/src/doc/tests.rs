use super::*;
use syn::{ItemFn, parse_str};

/// The description of a function written with these doc comments.
fn of(source: &str) -> String {
    let item: ItemFn = parse_str(&format!("{source}\nfn f() {{}}")).unwrap();
    let mut errors = Errors::default();
    let text = description(&item.attrs, &mut errors).unwrap_or_default();
    assert!(errors.messages().is_empty());
    text
}

#[test]
fn lines_of_a_paragraph_are_joined() {
    assert_eq!(of("/// One\n///   two  \n/// three."), "One two three.");
}

#[test]
fn a_blank_line_stays_one_line_break() {
    assert_eq!(of("///\n/// One.\n///\n///\n/// Two\n/// more.\n///"), "One.\nTwo more.");
}

#[test]
fn block_comments_with_and_without_stars() {
    assert_eq!(of("/** Relative to the root. */"), "Relative to the root.");
    assert_eq!(of("/**\n * One\n * two.\n *\n * Three.\n */"), "One two.\nThree.");
    assert_eq!(of("/**\n    One\n    two.\n\n    Three.\n*/"), "One two.\nThree.");
    // A list is no column of stars: the line before it has none.
    assert_eq!(of("/**\nOne:\n* a\n* b\n*/"), "One:\n* a\n* b");
}

#[test]
fn doc_attributes_mix_with_comments() {
    assert_eq!(of("/// One\n#[doc = \" two.\"]\n#[doc(hidden)]\n/// Three."), "One two. Three.");
    assert_eq!(of("#[doc = \"One\\ntwo.\\n\\nThree.\"]"), "One two.\nThree.");
}

#[test]
fn lists_keep_their_breaks_and_join_their_own_lines() {
    assert_eq!(
        of(
            "/// Modes:\n/// - `fast`: quick\n///   and rough\n/// - `good`\n///   - nested\n/// 1. first\n/// 2) second\n///\n/// End."
        ),
        "Modes:\n- `fast`: quick and rough\n- `good`\n  - nested\n1. first\n2) second\nEnd."
    );
    // Not a list: no space, or too much of a number.
    assert_eq!(of("/// a\n/// -b\n/// 3.5 c\n/// *d*"), "a -b 3.5 c *d*");
}

#[test]
fn tables_headings_and_quotes_keep_their_breaks() {
    assert_eq!(
        of("/// T:\n/// | a | b |\n/// |---|---|\n/// | 1 | 2 |\n/// after\n/// on"),
        "T:\n| a | b |\n|---|---|\n| 1 | 2 |\nafter on"
    );
    assert_eq!(of("/// # Errors\n/// When\n/// not.\n/// #hash"), "# Errors\nWhen not. #hash");
    assert_eq!(of("/// > q\n/// text"), "> q\ntext");
}

#[test]
fn code_is_untouched() {
    assert_eq!(
        of("/// Like\n/// so:\n/// ```json\n/// {\n///   \"a\": 1\n///\n/// }\n/// ```\n/// done\n/// now"),
        "Like so:\n```json\n{\n  \"a\": 1\n\n}\n```\ndone now"
    );
    assert_eq!(
        of("/// One\n///\n///     let a = 1;\n///     let b = 2;\n///\n/// two"),
        "One\n    let a = 1;\n    let b = 2;\ntwo"
    );
}

#[test]
fn nothing_is_no_description() {
    let item: ItemFn = syn::parse_quote!(
        ///
        #[doc = "  "]
        fn f() {}
    );
    let mut errors = Errors::default();
    assert_eq!(description(&item.attrs, &mut errors), None);
    assert!(errors.messages().is_empty());
}

#[test]
fn text_made_by_a_macro_is_refused() {
    let item: ItemFn = syn::parse_quote!(
        #[doc = include_str!("x.md")]
        fn f() {}
    );
    let mut errors = Errors::default();
    assert_eq!(description(&item.attrs, &mut errors), None);
    assert_eq!(
        errors.messages(),
        ["a macro cannot read this text: write it as a doc comment, or as `description = \"…\"`"]
    );
}

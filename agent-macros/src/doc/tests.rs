use super::*;
use quote::ToTokens;
use syn::{ItemFn, parse_str};

fn of(source: &str) -> String {
    let item: ItemFn = parse_str(&format!("{source}\nfn f() {{}}")).unwrap();
    let mut errors = Errors::default();
    let text = description(&item.attrs, &mut errors);
    assert!(errors.messages().is_empty());
    known(text).unwrap_or_default()
}

fn known(text: Option<Text>) -> Option<String> {
    text.map(|text| match text {
        Text::Known(text) => text,
        Text::Composed(_) => panic!("this text is not known while the macro expands"),
    })
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
    assert_eq!(of("/**\n\u{a0}One\n\u{3000}two.\n*/"), "One two.", "blanks of different widths");
    // This is a list and not a column of stars, because the line before the list has no star.
    assert_eq!(of("/**\nOne:\n* a\n* b\n*/"), "One:\n* a\n* b");
}

#[test]
fn doc_attributes_mix_with_comments() {
    assert_eq!(of("/// One\n#[doc = \" two.\"]\n#[doc(hidden)]\n/// Three."), "One two. Three.");
    assert_eq!(of("#[doc = \"One\\ntwo.\\n\\nThree.\"]"), "One two.\nThree.");
    assert_eq!(of("#[doc = \"Modes:\\n* fast\\n* good\"]"), "Modes:\n* fast\n* good");
}

#[test]
fn lists_keep_their_breaks_and_join_their_own_lines() {
    assert_eq!(
        of(
            "/// Modes:\n/// - `fast`: quick\n///   and rough\n/// - `good`\n///   - nested\n/// 1. first\n/// 2) second\n///\n/// End."
        ),
        "Modes:\n- `fast`: quick and rough\n- `good`\n  - nested\n1. first\n2) second\nEnd."
    );
    // These lines are not a list: after the dash, the number or the star there is no space.
    assert_eq!(of("/// a\n/// -b\n/// 3.5 c\n/// *d*"), "a -b 3.5 c *d*");
}

#[test]
fn tables_headings_and_quotes_keep_their_breaks() {
    assert_eq!(
        of("/// T:\n/// | a | b |\n/// |---|---|\n/// | 1 | 2 |\n/// after\n/// on"),
        "T:\n| a | b |\n|---|---|\n| 1 | 2 |\nafter on"
    );
    assert_eq!(of("/// # Modes\n/// When\n/// not.\n/// #hash"), "# Modes\nWhen not. #hash");
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
fn a_code_block_ends_at_its_own_mark() {
    let text = "A reading.\n````\n```\n# Errors\n[Reading](x)\n[x]: crate::Y\n````\nAnother.";
    let docs = text.replace("A reading", "A [reading](crate::R)").replace('\n', "\n/// ");
    assert_eq!(of(&format!("/// {docs}")), text);
    assert_eq!(
        of("/// A [reading](crate::R).\n/// ~~~\n/// [Reading](x)"),
        "A reading.\n~~~\n[Reading](x)",
        "an unclosed block"
    );
    assert_eq!(
        of("/// ```\n/// ```rust\n/// [Reading]\n/// ```\n/// ```a``` is\n/// the [Reading]."),
        "```\n```rust\n[Reading]\n```\n```a``` is the Reading.",
        "a fence has no text after it at the end, and no backtick at the beginning"
    );
}

#[test]
fn indented_code_is_code_but_in_a_list() {
    assert_eq!(
        of(
            "/// Like [Reading]:\n///\n///     # Examples\n///     table[name](arg)\n///\n///     [Reading]\n///\n/// 1. A\n///\n///     [reading](crate::R).\n///\n/// Done."
        ),
        "Like Reading:\n    # Examples\n    table[name](arg)\n    [Reading]\n1. A\n    reading.\nDone."
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
    assert!(description(&item.attrs, &mut errors).is_none());
    assert!(errors.messages().is_empty());
}

#[test]
fn literals_that_are_put_together_are_a_literal() {
    assert_eq!(
        of("#[doc = concat!(\"Looks \", \"up \", 1_000, ' ', -2.50, ' ', true, \".\")]"),
        "Looks up 1000 -2.50 true."
    );
    assert_eq!(of("#[doc = std::concat!(\"A \", concat!(\"b\", \".\"),)]\n/// C."), "A b. C.");
    assert_eq!(of("#[doc = concat!(\"# Errors\\n\", \"Never.\")]"), "");
    assert_eq!(of("#[doc = concat!(\"Gets \", stringify!(word), \".\")]"), "Gets word.");
}

#[test]
fn what_the_compiler_evaluates_keeps_its_place() {
    let item: ItemFn = parse_str(
        "/// One.\n#[doc = include_str!(\"x.md\")]\n/// Two\n/// lines.\n/// # Examples\n#[doc = EXAMPLES]\n/// # More\n\
         #[doc = concat!(\"a\", env!(\"X\"))]\nfn f() {}",
    )
    .unwrap();
    let mut errors = Errors::default();
    let Some(Text::Composed(pieces)) = description(&item.attrs, &mut errors) else { panic!("a text") };
    assert!(errors.messages().is_empty());
    let shown: Vec<String> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Known(text) => text.clone(),
            Piece::Constant(expr) => format!("<{}>", expr.to_token_stream().to_string().replace(' ', "")),
        })
        .collect();
    assert_eq!(
        shown,
        ["One.", "<include_str!(\"x.md\")>", "Two lines.\n# More", "<concat!(\"a\",env!(\"X\"))>"]
    );
}

#[test]
fn what_is_not_a_constant_text_is_refused() {
    let refused = |text: &str| {
        let item: ItemFn = parse_str(&format!("#[doc = {text}]\nfn f() {{}}")).unwrap();
        let mut errors = Errors::default();
        assert!(description(&item.attrs, &mut errors).is_none());
        errors.messages()
    };
    let advice = "write a text: `doc = \"…\"`, `concat!(…)`, `include_str!(…)` or a constant of type `&str`";
    assert_eq!(refused("5"), [advice]);
    assert_eq!(refused("|| \"a\""), [advice]);
    assert_eq!(
        refused("format!(\"a\")"),
        ["`format!` runs with the program, and this text is part of it: write `concat!(…)`, or a constant"]
    );
}

#[test]
fn sections_for_people_are_left_out() {
    let docs = "/// Reads.\n///\n/// # Errors\n/// When not.\n/// ## More\n/// of it\n/// # Modes\n/// Fast.\n/// # Examples\n/// ```\n/// # Modes\n/// f();\n/// ```\n/// # Panics:\n/// Never.";
    assert_eq!(of(docs), "Reads.\n# Modes\nFast.");
    assert_eq!(of("/// # Errors\n/// When not."), "");
}

fn told(source: &str, doc: Doc) -> Docs {
    let item: ItemFn = parse_str(&format!("{source}\nfn f() {{}}")).unwrap();
    let mut errors = Errors::default();
    let docs = of_tool(&item.attrs, doc, &mut errors);
    assert!(errors.messages().is_empty());
    docs
}

#[test]
fn as_much_as_is_asked_for() {
    let docs = "/// Reads\n/// it.\n///\n/// At once.\n/// # Errors\n/// When not.";
    assert_eq!(known(told(docs, Doc::ForModels).description).as_deref(), Some("Reads it.\nAt once."));
    assert_eq!(known(told(docs, Doc::Summary).description).as_deref(), Some("Reads it."));
    assert_eq!(
        known(told(docs, Doc::All).description).as_deref(),
        Some("Reads it.\nAt once.\n# Errors\nWhen not.")
    );
    assert_eq!(known(told(docs, Doc::Nothing).description), None);
}

#[test]
fn a_link_finds_its_target_in_every_part_of_the_docs() {
    let docs = "/// A [page][p] and a [reading][r].\n///\n/// # Arguments\n/// * `a` - On the [page][p].\n///\n/// [r]: crate::R\n/// # Errors\n/// Never.\n///\n/// [p]: https://a.b";
    for doc in [Doc::ForModels, Doc::Summary] {
        let docs = told(docs, doc);
        assert_eq!(known(docs.description).as_deref(), Some("A [page](https://a.b) and a reading."));
        assert_eq!(docs.arguments, [("a".to_owned(), "On the [page](https://a.b).".to_owned())]);
    }
}

#[test]
fn arguments_are_listed_in_many_ways() {
    let docs = "/// Reads.\n/// # Arguments\n/// Some words.\n/// * `path` - Where it is,\n///   below the root.\n///   - not this\n/// - **limit**: At most [`Limit`] of them.\n/// * mode (`u8`) – How.\n/// * Nothing at all\n///   that goes on.\n/// # Returns\n/// A text.";
    let docs = told(docs, Doc::ForModels);
    assert_eq!(known(docs.description).as_deref(), Some("Reads.\n# Returns\nA text."));
    let listed: Vec<(&str, &str)> =
        docs.arguments.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(
        listed,
        [
            ("path", "Where it is, below the root.\n- not this"),
            ("limit", "At most `Limit` of them."),
            ("mode", "How."),
        ]
    );
}

#[test]
fn links_that_only_rustdoc_follows_are_text() {
    for (docs, expected) in [
        ("/// See [`Reading`] and [crate::Reading].", "See `Reading` and crate::Reading."),
        ("/// A [reading](crate::Reading \"title\") of [`x`](struct@X).", "A reading of `x`."),
        ("/// A [page](https://a.b/c) of the web.", "A [page](https://a.b/c) of the web."),
        (
            "/// A [reading][r] and a [page][p].\n///\n/// [r]: crate::R\n/// [p]: https://a.b",
            "A reading and a [page](https://a.b).",
        ),
        (
            "/// One of [Reading], [read()], [`fn@read`], [macro@tool].",
            "One of Reading, read(), `read`, tool.",
        ),
        (
            "/// Ranges [0, 1], [optional], a[i], \\[Reading\\], `[Reading]`.",
            "Ranges [0, 1], [optional], a[i], \\[Reading\\], `[Reading]`.",
        ),
        (
            "/// Sends mail[^1].\n///\n/// [^1]: Only to known addresses.\n///\n/// [note]: not a link",
            "Sends mail[^1].\n[^1]: Only to known addresses.\n[note]: not a link",
        ),
        ("/// A [page][p].\n///\n/// [p]: https://a.b \"A title\"", "A [page](https://a.b)."),
        ("/// - [ ] open\n/// - [x] done", "- [ ] open\n- [x] done"),
        ("/// Over [two\n/// lines](crate::X).", "Over two lines."),
        ("/// ```json\n/// [Reading](x)\n/// ```", "```json\n[Reading](x)\n```"),
        ("/// Unclosed [`Reading and [x](y", "Unclosed [`Reading and [x](y"),
    ] {
        assert_eq!(of(docs), expected, "{docs}");
    }
}

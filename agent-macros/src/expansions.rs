//! Snapshots of the macros' expansions, one file for each kind of item. A test checks that no path in them begins with a name that the
//! user's code may define.
//!
//! `UPDATE_EXPECT=1 cargo test -p agent-macros` renews the files in `agent-macros/golden`. Review the difference.

use crate::{args, tool, tools};
use expect_test::{ExpectFile, expect_file};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::quote;

fn pretty(tokens: &TokenStream) -> String {
    let file = syn::parse2(tokens.clone()).expect("what is written is Rust");
    prettyplease::unparse(&file)
}

fn check(tokens: &TokenStream, golden: &ExpectFile) {
    assert!(!tokens.to_string().contains("compile_error"), "{tokens}");
    golden.assert_eq(&pretty(tokens));
}

fn function() -> TokenStream {
    tool::expand(
        quote!(read_only, timeout = "10s"),
        &quote! {
            /// How warm it is.
            ///
            /// # Errors
            /// When there is no station.
            pub async fn temperature(
                /// City name.
                city: String,
                #[arg(default = 1, range(0..=3))] decimals: u8,
                words: &[String],
                db: &Database,
                cx: &ToolContext,
            ) -> Result<Reading, Missing> { body }
        },
    )
}

fn whole_object() -> TokenStream {
    tool::expand(
        quote!(type = SearchTool, approval = when(|limit: &u32| *limit > 9)),
        &quote! {
            /// Searches.
            fn search(args: SearchArgs) -> Vec<Note> { body }
        },
    )
}

fn nothing() -> TokenStream {
    tool::expand(
        quote!(crate = renamed::sdk, inline),
        &quote! {
            /// Says pong.
            fn ping() { body }
        },
    )
}

fn structure() -> TokenStream {
    tool::expand(
        quote!(name = "add"),
        &quote! {
            /// Adds.
            struct AddNumbers { a: i64, #[arg(default)] b: i64 }
        },
    )
}

fn actions() -> TokenStream {
    tool::expand(
        quote!(),
        &quote! {
            /// Looks after notes.
            enum Notes { /** Adds one. */ Add { text: String }, Clear }
        },
    )
}

fn block() -> TokenStream {
    tool::expand(
        quote!(),
        &quote! {
            impl Files {
                fn new() -> Self { body }
                /// Reads.
                #[tool(read_only)]
                fn read(&self, /** Where. */ path: &str) -> Result<String, Error> { body }
            }
        },
    )
}

fn further_block() -> TokenStream {
    tool::expand(
        quote!(set = "admin"),
        &quote! {
            impl<T> Files<T> where T: Store {
                /// Wipes.
                #[tool(destructive)]
                async fn wipe(&self) { body }
            }
        },
    )
}

fn derived_args() -> TokenStream {
    let input = syn::parse_quote! {
        /// A search.
        #[serde(rename_all = "camelCase")]
        #[arg(validate = in_order)]
        struct SearchArgs {
            /// What to look for.
            #[arg(length(1..=80), alias = "q", validate = known)]
            query: String,
            #[arg(range(1..=50), default = 10)]
            limit: u32,
            #[arg(with(host as String))]
            from: Host,
            order: Order,
        }
    };
    args::derive(&input, args::Kind::Args)
}

fn derived_words() -> TokenStream {
    let input = syn::parse_quote! {
        enum Unit { /** Degrees. */ Celsius, Fahrenheit }
    };
    args::derive(&input, args::Kind::Args)
}

fn derived_output() -> TokenStream {
    let input = syn::parse_quote! {
        /// What was measured.
        struct Reading { /** Degrees. */ degrees: f64, sensor: Sensor }
    };
    args::derive(&input, args::Kind::Output)
}

fn list() -> TokenStream {
    let list =
        tools::expand(quote!((::agent) temperature, text::search, #[cfg(unix)] AddNumbers, Files::new(root)));
    quote!(fn set() -> ::agent::ToolSet { #list })
}

#[test]
fn every_shape_is_written_as_it_was() {
    check(&function(), &expect_file!["../golden/function.rs"]);
    check(&whole_object(), &expect_file!["../golden/whole_object.rs"]);
    check(&nothing(), &expect_file!["../golden/nothing.rs"]);
    check(&structure(), &expect_file!["../golden/structure.rs"]);
    check(&actions(), &expect_file!["../golden/actions.rs"]);
    check(&block(), &expect_file!["../golden/block.rs"]);
    check(&further_block(), &expect_file!["../golden/further_block.rs"]);
    check(&derived_args(), &expect_file!["../golden/derived_args.rs"]);
    check(&derived_words(), &expect_file!["../golden/derived_words.rs"]);
    check(&derived_output(), &expect_file!["../golden/derived_output.rs"]);
    check(&list(), &expect_file!["../golden/list.rs"]);
}

/// Collects the paths that begin with a name of the prelude or of a crate instead of `::`.
fn unrooted(tokens: TokenStream, found: &mut Vec<String>) {
    const BANNED: &[&str] = &[
        "Option",
        "Some",
        "None",
        "Ok",
        "Err",
        "Box",
        "Default",
        "Clone",
        "From",
        "Into",
        "Iterator",
        "ToString",
        "ToOwned",
        "Send",
        "Sync",
        "Sized",
        "Drop",
        "Fn",
        "FnOnce",
        "FnMut",
        "AsRef",
        "Debug",
        "Arc",
        "LazyLock",
        "Cow",
        "PhantomData",
        "bool",
        "usize",
        "std",
        "core",
        "alloc",
        "agent",
        "serde",
        "schemars",
        "serde_json",
        "vec",
        "format",
        "panic",
        "assert",
        "println",
        "unreachable",
        "matches",
        "concat",
        "stringify",
        "dbg",
        "todo",
    ];
    // In `a::b`, only `a` is checked, because the path begins there.
    let mut before: Vec<TokenTree> = Vec::new();
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            // Attributes are skipped. They contain names of lints and keys of serde, and their paths are string literals or begin with
            // `::`.
            let is_attribute =
                matches!(before.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
            if !is_attribute {
                unrooted(group.stream(), found);
            }
        }
        if let TokenTree::Ident(ident) = &token {
            let word = ident.to_string();
            let led = matches!(&before[..], [.., TokenTree::Punct(first), TokenTree::Punct(second)]
                if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':');
            let method = matches!(before.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '.');
            if BANNED.contains(&word.as_str()) && !led && !method {
                found.push(word);
            }
        }
        before.push(token);
    }
}

#[test]
fn no_name_is_said_without_a_root() {
    let generated = [
        function(),
        whole_object(),
        nothing(),
        structure(),
        actions(),
        block(),
        further_block(),
        derived_args(),
        derived_words(),
        derived_output(),
        list(),
    ];
    for tokens in generated {
        let mut found = Vec::new();
        unrooted(tokens.clone(), &mut found);
        // These names come from `use … {From as _, Into as _, Some};`, where the path begins with `::`. schemars uses the names without a
        // path.
        found.retain(|word| !["From", "Into", "Some"].contains(&word.as_str()));
        assert!(found.is_empty(), "{found:?} in {}", pretty(&tokens));
    }
}

#[test]
fn the_ban_finds_what_it_looks_for() {
    let found = |tokens: TokenStream| {
        let mut found = Vec::new();
        unrooted(tokens, &mut found);
        found
    };
    assert_eq!(
        found(quote!(
            fn f() {
                let _ = Option::None;
                vec![];
                std::mem::drop(x)
            }
        )),
        ["Option", "vec", "std"]
    );
    assert!(
        found(quote!(
            fn f() {
                ::std::option::Option::None;
                x.unwrap().serde()
            }
        ))
        .is_empty()
    );
}

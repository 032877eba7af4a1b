use super::*;
use quote::quote;

const KEYS: Keys = Keys {
    known: &["name", "read_only", "coerce", "crate", "range", "alias"],
    repeatable: &["alias"],
    elsewhere: &[(&["default"], "write it on the parameter")],
};

fn parse(tokens: TokenStream) -> (Vec<String>, Vec<String>) {
    let mut errors = Errors::default();
    let keys = options(tokens, KEYS, &mut errors).iter().map(|entry| entry.key.to_string()).collect();
    (keys, errors.messages())
}

#[test]
fn the_three_forms_are_read() {
    let (keys, errors) =
        parse(quote!(name = "x", read_only, range(1..=3), crate = ::a::b, alias = "a", alias = "b",));
    assert_eq!(keys, ["name", "read_only", "range", "crate", "alias", "alias"]);
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_mistake_does_not_hide_the_next_option() {
    let (keys, errors) = parse(quote!(name = , "text", range[1], 5, read_only coerce = "exact", crate = a));
    assert_eq!(keys, ["read_only", "crate"]);
    assert_eq!(
        errors,
        [
            "a value is missing after `name =`",
            "expected an option: a text needs its key, for example `description = \"…\"`",
            "use parentheses: `range(…)`",
            "expected an option: `key`, `key = value` or `key(…)`",
            "expected a comma before the next option",
        ]
    );
}

#[test]
fn unknown_duplicate_and_misplaced_keys() {
    let (keys, errors) = parse(quote!(nam = "x", name = "x", name = "y", default = 3, zebra));
    assert_eq!(keys, ["name"]);
    let known = "`name`, `read_only`, `coerce`, `crate`, `range` and `alias`";
    assert_eq!(
        errors,
        [
            "unknown option `nam`: did you mean `name`?".to_owned(),
            "`name` is given twice: keep one".into(),
            "`default` does not belong here: write it on the parameter".into(),
            format!("unknown option `zebra`: the options are {known}"),
        ]
    );
}

#[test]
fn values_of_the_wrong_kind_say_what_to_write() {
    let mut errors = Errors::default();
    let found = options(
        quote!(name, read_only = "yes", coerce = "strikt", crate = "path", range = 3),
        KEYS,
        &mut errors,
    );
    let [name, read_only, coerce, krate, range] = &found[..] else { panic!("five options") };
    assert!(name.text(&mut errors).is_none());
    assert!(read_only.flag(&mut errors).is_none());
    assert!(coerce.word(&["exact", "strict"], &mut errors).is_none());
    assert!(krate.path("::agent", &mut errors).is_none());
    assert!(range.list("1..=50", &mut errors).is_none());
    assert_eq!(
        errors.messages(),
        [
            "write a string literal, or `concat!(…)` of literals: `name = \"…\"`",
            "write `read_only`, or `read_only = true` or `read_only = false`",
            "`coerce` has no value `strikt`: did you mean `strict`? The values are `exact` and `strict`",
            "write a path without quotes: `crate = ::agent`",
            "write `range(1..=50)`",
        ]
    );
}

#[test]
fn helper_attributes_need_parentheses_and_content() {
    let item: syn::ItemStruct = syn::parse_quote! {
        #[arg] #[arg()] #[arg = 3] #[arg[name]] #[arg(name = "a")] #[arg(name = "b")] #[other(x)]
        struct S;
    };
    let mut errors = Errors::default();
    let found = helper_options("arg", &item.attrs, KEYS, &mut errors);
    assert_eq!(found.len(), 1);
    assert_eq!(
        errors.messages(),
        [
            "options go in parentheses: write for example `#[arg(name)]`",
            "no option given: write for example `#[arg(name)]`, or remove it",
            "options go in parentheses: write for example `#[arg(name)]`",
            "options go in parentheses: write `#[arg(…)]`",
            "`name` is given twice: keep one",
        ]
    );
}

#[test]
fn integers_are_read_as_rust_writes_them() {
    assert_eq!(integer_of(&quote!(1_000)), Some(1000));
    assert_eq!(integer_of(&quote!(-5)), Some(-5));
    assert_eq!(integer_of(&quote!(0x1_0)), Some(16));
    assert_eq!(integer_of(&quote!(-0b11i8)), Some(-3));
    assert_eq!(integer_of(&quote!(MAX)), None);
    assert_eq!(integer_of(&quote!(1.5)), None);
}

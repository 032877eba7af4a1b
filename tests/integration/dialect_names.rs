//! Names of parameters that Anthropic refuses: `check_dialect` and `lint` tell before a request does.

#![expect(dead_code, reason = "these tools are looked at, not called")]

use agent::schema::{Dialect, render};
use agent::{Registry, ToolArgs, lint::Lint, tool, tools};

#[derive(ToolArgs)]
struct Box_ {
    /// In metres.
    höhe: u32,
}

/// Packs goods.
#[tool]
fn pack(
    /// How large.
    größe: u32,
    /// Whose.
    #[arg(rename = "first name")]
    first_name: String,
    /// What it refers to.
    #[arg(rename = "$ref")]
    reference: String,
    /// Too long by one letter.
    #[arg(rename = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
    long: String,
    /// What it goes into.
    boxes: Vec<Box_>,
    /// As long as a name may be.
    #[arg(rename = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.-")]
    fits: String,
) {
    drop((größe, first_name, reference, long, boxes, fits));
}

const REFUSED: [&str; 5] = [
    "/größe",
    "/first name",
    "/$ref",
    "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "/boxes/*/höhe",
];

#[test]
fn lint_names_the_parameters() {
    let report = Registry::new(tools![pack]).unwrap().lint();
    let of_names: Vec<&str> = report
        .iter()
        .filter(|finding| finding.lint == Lint::RefusedName)
        .map(|finding| finding.path.as_str())
        .collect();
    assert_eq!(of_names, REFUSED);
}

#[test]
fn the_dialect_of_anthropic_cannot_express_them() {
    let registry = Registry::new(tools![pack]).unwrap();
    assert!(registry.check_dialect(Dialect::AnthropicStrict).is_err());
    let tools = registry.in_dialect(Dialect::AnthropicStrict);
    let paths: Vec<&str> = tools[0].not_expressible().map(|change| change.path.as_str()).collect();
    let expected: Vec<String> = REFUSED
        .iter()
        .map(|path| match path.strip_prefix("/boxes/*") {
            Some(rest) => format!("/properties/boxes/items/properties{rest}"),
            None => format!("/properties{path}"),
        })
        .collect();
    assert_eq!(paths, expected);
    assert_eq!(
        tools[0].changes[0].to_string(),
        "/properties/größe: `properties` cannot be expressed: a name has 1 to 64 ASCII letters, digits, `_`, `.` or `-`, and the provider \
         refuses a request with another"
    );
    // As everything that a strict dialect cannot express: without `strict`.
    let rendered = render(registry.definitions()[0].plan(), Dialect::AnthropicStrict);
    assert_eq!(rendered.dialect, Dialect::Plain);
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::AnthropicStrict) {
        assert!(registry.check_dialect(dialect).is_ok(), "{dialect}");
    }
}

//! Descriptions that are made by macros, read from files, or constants.

use crate::macro_support::{definition, property};
use agent::{RunTool, ToolArgs, ToolContext, ToolOutput, json, tool, tools};

const CITY: &str = "  The city.\n";

/// As an item of `macro_rules!` documents itself.
macro_rules! look_up {
    ($name:ident, $what:literal, $of:expr) => {
        #[doc = concat!("Looks up ", $what, ".")]
        ///
        /// # Arguments
        #[doc = concat!("* `word` - ", $of, ".")]
        #[tool(title = concat!("About ", $what))]
        fn $name(word: String) -> String {
            word
        }
    };
}
look_up!(plants, "plants", "A plant");

#[test]
fn a_concatenation_of_literals_is_a_doc_comment() {
    let definition = definition(tools![plants]);
    assert_eq!(definition.description(), "Looks up plants.");
    assert_eq!(definition.title(), Some("About plants"));
    assert_eq!(definition.parameters()["properties"]["word"]["description"], "A plant.");
}

#[tool(name = concat!("get_", "weather"), description = concat!("The weather", ' ', 1, "."))]
fn weather(
    #[doc = CITY] city: String,
    #[arg(description = concat!("In ", "days."), default = 1)] days: u8,
    #[arg(description = include_str!("macro_texts.md"))] note: String,
) -> String {
    format!("{city} {days} {note}")
}

#[test]
fn options_take_the_same_texts() {
    let set = || tools![weather];
    assert_eq!(definition(set()).name(), "get_weather");
    assert_eq!(definition(set()).description(), "The weather 1.");
    assert_eq!(property(set(), "city")["description"], "The city.");
    assert_eq!(property(set(), "days")["description"], "In days.");
    assert_eq!(property(set(), "note")["description"], "# Errors\n\nA note — as it is.");
}

/// Draws.
#[doc = include_str!("macro_texts.md")]
/// More of
/// it.
///
/// # Examples
#[doc = include_str!("macro_texts.md")]
#[tool]
fn draw() {}

#[tool(description = FROM_A_CONSTANT)]
fn constant() {}
const FROM_A_CONSTANT: &str = concat!("Of the crate ", env!("CARGO_PKG_NAME"), ".");

#[test]
fn files_and_constants_are_used_as_they_are() {
    assert_eq!(definition(tools![draw]).description(), "Draws.\n# Errors\n\nA note — as it is.\nMore of it.");
    assert_eq!(definition(tools![constant]).description(), "Of the crate agent-tests.");
}

struct Shop;

impl Shop {
    const ABOUT: &'static str = "Sells things.";
}

#[tool]
impl Shop {
    #[tool(description = Self::ABOUT)]
    fn sell(&self, #[arg(description = Self::ABOUT)] what: String) -> String {
        what
    }
}

#[test]
fn constants_of_the_type_of_a_block() {
    assert_eq!(definition(tools![{ Shop }]).description(), "Sells things.");
    assert_eq!(property(tools![{ Shop }], "what")["description"], "Sells things.");
}

mod texts {
    pub(crate) const SIZE: &str = "How big.";
    pub(crate) const fn of_color() -> &'static str {
        "Which color."
    }
}

#[doc = concat!("A ", "box.")]
#[derive(ToolArgs)]
struct Case {
    #[arg(description = texts::SIZE)]
    size: Size,
    #[arg(description = texts::of_color())]
    color: Option<String>,
    #[doc = include_str!("macro_texts.md")]
    note: Option<String>,
}

#[derive(ToolArgs, PartialEq, Debug)]
enum Size {
    #[arg(description = texts::SIZE)]
    Small,
    #[doc = concat!("Very ", "big.")]
    Large,
}

/// Takes boxes.
#[tool]
fn boxes(cases: Vec<Case>) -> usize {
    cases
        .iter()
        .filter(|case| case.size == Size::Small && case.color.is_some() && case.note.is_some())
        .count()
}

#[test]
fn types_fields_and_variants() {
    let cases = property(tools![boxes], "cases");
    let case = &cases["items"];
    assert_eq!(case["description"], "A box.", "{cases}");
    assert_eq!(case["properties"]["color"]["description"], "Which color.");
    assert_eq!(case["properties"]["note"]["description"], "# Errors\n\nA note — as it is.");
    let text = case["properties"]["size"].to_string();
    assert!(text.contains("How big.") && text.contains("Very big."), "{text}");
}

#[doc = texts_of!()]
#[tool]
enum Notes {
    #[arg(description = texts::SIZE)]
    Add { text: String },
}

/// A macro of the application.
macro_rules! texts_of {
    () => {
        "Manages notes."
    };
}
use texts_of;

impl RunTool for Notes {
    type Output = Answer;
    async fn run(self, _cx: &ToolContext) -> Answer {
        let Self::Add { text } = self;
        Answer { text }
    }
}

#[derive(ToolOutput)]
struct Answer {
    #[arg(description = texts::SIZE)]
    text: String,
}

#[test]
fn tools_that_are_types() {
    let definition = definition(tools![Notes]);
    assert_eq!(definition.description(), "Manages notes.");
    let schema = definition.output_schema().expect("an object").clone();
    assert_eq!(schema["properties"]["text"]["description"], json!("How big."));
}

//! The description of a tool stands in its definition once: what that saves of every request.
#![allow(dead_code, reason = "the bodies do nothing")]

use agent::args::{Plan, PlanOptions};
use agent::{Registry, RunTool, ToolArgs, ToolContext, ToolDefinition, ToolSet, json, tool, tools};
use schemars::JsonSchema;
use std::fmt::Write as _;

/// Finds hotels near a place that have rooms for all nights of a stay.
#[tool(name = "struct_with_its_doc_comment")]
struct FindHotels {
    /// Name of the place.
    place: String,
}

impl RunTool for FindHotels {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

/// Books a room, for a reader of the code: the card is charged by the booking service, and the room is held for an hour.
#[tool(name = "struct_with_a_description", description = "Books a room in a hotel.")]
struct BookRoom {
    /// Number of nights.
    nights: u8,
}

impl RunTool for BookRoom {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

/// Cancels a stay.
///
/// The hotel is told by mail, and the guest gets the money back within a week if the stay begins in more than two days.
#[tool(name = "struct_with_a_summary", doc = "summary")]
struct CancelStay {
    /// The number of the stay.
    stay: u64,
}

impl RunTool for CancelStay {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

/// What may be done with a calendar: each action has arguments of its own, and all of them are about the user's own calendar.
#[tool(name = "enum_with_a_description", description = "Reads and changes the calendar of the user.")]
enum Calendar {
    /// Adds an event.
    Add {
        /// Its title.
        title: String,
    },
    /// Removes an event.
    Remove {
        /// Its number.
        id: u64,
    },
}

impl RunTool for Calendar {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

/// Searches the notes of the user.
#[derive(ToolArgs)]
struct Search {
    /// The words.
    words: String,
}

/// Searches the notes of the user. The best come first.
#[tool(name = "parameter_struct")]
fn search(search: Search) {
    let _ = search.words;
}

/// A part of a table of contents, with its own parts.
#[tool(name = "recursive_struct", description = "Writes a table of contents.")]
struct Contents {
    /// The heading.
    heading: String,
    /// The parts.
    parts: Vec<Contents>,
}

impl RunTool for Contents {
    type Output = ();
    async fn run(self, _: &ToolContext) {}
}

/// The definition as it was when only an equal text was left out of the parameters.
fn before<T: JsonSchema>(definition: &ToolDefinition) -> usize {
    let plan = Plan::for_type::<T>(definition.name(), PlanOptions::default()).unwrap();
    let mut parameters = plan.schema().clone();
    let root = parameters.as_object_mut().unwrap();
    if root.get("description") == Some(&json!(definition.description())) {
        root.remove("description");
    }
    let whole =
        json!({"name": definition.name(), "description": definition.description(), "parameters": parameters});
    whole.to_string().len()
}

fn row<T: JsonSchema>(table: &mut String, set: ToolSet) {
    let registry = Registry::new(set).unwrap();
    let definition = &registry.definitions()[0];
    let parameters = definition.parameters();
    assert!(parameters.get("description").is_none(), "{parameters:#}");
    let now =
        json!({"name": definition.name(), "description": definition.description(), "parameters": parameters});
    // About four bytes are a token.
    let (before, now) = (before::<T>(definition).div_ceil(4), now.to_string().len().div_ceil(4));
    assert!(now <= before);
    writeln!(table, "| {} | {before} | {now} |", definition.name()).unwrap();
}

#[test]
fn the_description_of_a_tool_stands_in_its_definition_once() {
    let mut table = "| tool | tokens before | tokens |\n| --- | --- | --- |\n".to_owned();
    row::<FindHotels>(&mut table, tools![FindHotels]);
    row::<BookRoom>(&mut table, tools![BookRoom]);
    row::<CancelStay>(&mut table, tools![CancelStay]);
    row::<Calendar>(&mut table, tools![Calendar]);
    row::<Search>(&mut table, tools![search]);
    row::<Contents>(&mut table, tools![Contents]);
    expect_test::expect_file!["../golden/description-tokens.md"].assert_eq(&table);
}

#[test]
fn a_parameter_struct_with_its_own_words_keeps_them() {
    /// The words, and where to look.
    #[derive(ToolArgs)]
    struct Query {
        words: String,
    }

    /// Searches.
    #[tool]
    fn look_up(query: Query) -> String {
        query.words
    }

    let registry = Registry::new(tools![look_up]).unwrap();
    assert_eq!(registry.definitions()[0].parameters()["description"], "The words, and where to look.");
}

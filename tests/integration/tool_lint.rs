//! What makes tools hard to choose or to call, and what a set was.

#![expect(dead_code, unused_variables, reason = "these tools are looked at, not called")]

use agent::{
    Registry, ToolArgs, ToolSet,
    lint::{Lint, ToolManifest},
    tool, tools,
};
use expect_test::expect;

fn found(set: ToolSet) -> String {
    let findings = Registry::new(set).expect("a registry").lint();
    let lines: Vec<String> = findings.iter().map(|finding| format!("- {finding}\n")).collect();
    lines.concat()
}

/// Books a room in a hotel and gives back the number of the booking.
#[tool]
fn book_room(
    /// Where it is, as `find_hotels` gave it.
    hotel: String,
    /// Of the stay, in days.
    nights: u32,
    /// What is eaten.
    board: Board,
) -> String {
    format!("{hotel}{nights}{}", board as u8)
}

#[derive(ToolArgs, Clone, Copy)]
enum Board {
    None,
    /// In the morning.
    Breakfast,
}

#[test]
fn good_tools_have_no_findings() {
    assert_eq!(Registry::new(tools![book_room]).expect("a registry").lint(), []);
}

/// Get user.
#[tool]
fn get_user(
    /// The user id.
    user_id: u64,
    deep: Deep,
    /// Takes `user_id` or `userID`, but never `something_else`.
    note: String,
) {
}

#[derive(ToolArgs)]
struct Deep {
    list: Vec<Item>,
}

#[derive(ToolArgs)]
struct Item {
    /// What it is.
    a: String,
    /// What it is.
    b: String,
    kind: Kind,
}

#[derive(ToolArgs)]
enum Kind {
    A,
    B,
}

#[derive(ToolArgs)]
enum State {
    Open,
    Opened,
    #[serde(rename = "1")]
    One,
}

/// Fetches one account of a person by its number.
#[tool]
fn fetch_account(
    /** Which one. */
    state: State,
) {
}

/// Fetches one account of a person by its number.
#[tool]
fn fetch_accounts(
    /** Which ones. */
    states: u8,
) {
}

/// Fetches one account of one person by a number.
#[tool]
fn read(
    /** Which. */
    at: u8,
) {
}

#[tool(doc = false)]
fn nameless() {}

#[test]
fn each_kind_of_finding_is_found() {
    let text = found(tools![get_user, fetch_account, fetch_accounts, read, nameless]);
    expect![[r#"
        - `get_user` /user_id: "The user id." says no more than the name: say what the value means, its unit or its form (empty_words)
        - `get_user` /deep: has no description: say what it is, `/// …` above it (undocumented_parameter)
        - `get_user` /deep/list: has no description: say what it is, `/// …` above it (undocumented_parameter)
        - `get_user` /deep/list/*/kind: has no description: say what it is, `/// …` above it (undocumented_parameter)
        - `get_user` /deep/list/*/kind: `A`, `B` says nothing by itself: describe each, `/// …` above the variant (ambiguous_words)
        - `get_user` /deep/list/*/b: has the description of /deep/list/*/a: say how they differ (same_description)
        - `get_user`: "Get user." says no more than the name: say when to use it, and what it gives back (empty_words)
        - `get_user` /note: the description speaks of `userID`, and there is `user_id` (other_name)
        - `fetch_account` /state: `Open` and `Opened` are nearly the same word: say how they differ, or rename one (ambiguous_words)
        - `fetch_account` /state: `1` says nothing by itself: describe each, `/// …` above the variant (ambiguous_words)
        - `nameless`: has no description: models choose tools by it (undocumented_tool)
        - `fetch_accounts`: has the description of `fetch_account`: say how they differ (same_description)
        - `read`: is described nearly as `fetch_account` and `fetch_accounts`: say when to use which (look_alike)
        - `fetch_accounts`: is named nearly as `fetch_account`: models will mix them up (look_alike)
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_failed_test_shows_a_line_for_each_finding() {
    let mut findings = Registry::new(tools![get_user]).expect("a registry").lint();
    findings.retain(|finding| finding.lint == Lint::SameDescription);
    assert_eq!(findings.len(), 1);
    assert_eq!(format!("{findings:?}"), format!("[{}]", findings[0]));
}

#[test]
fn definitions_that_cost_many_tokens_are_found() {
    let tool = |parameters: usize| {
        let builder = agent::ToolBuilder::new("wide").description("Sets all values of a form.");
        let builder = (0..parameters).fold(builder, |builder, number| {
            builder.required_string(
                format!("value_{number}"),
                format!("The value of line {number} of the form."),
            )
        });
        let tool = builder.build(|_: agent::Value, _| async {}).expect("a tool");
        Registry::new(tools![{ tool }]).expect("a registry")
    };
    for (parameters, is_costly) in [(5, false), (80, true)] {
        let registry = tool(parameters);
        let tokens = registry.definitions()[0].estimated_tokens();
        assert_eq!(tokens > 1_000, is_costly, "{tokens}");
        let report = registry.lint();
        let found = report.iter().find(|finding| finding.lint == Lint::CostlyDefinition);
        let text = format!("costs about {tokens} tokens in each request");
        assert_eq!(found.is_some_and(|finding| finding.message.starts_with(&text)), is_costly, "{report:?}");
        // As in the report on a request, where 12 of each tool are framing.
        let request = agent::model::ModelRequest::default().with_tools(registry.definitions());
        let info = agent::model::ModelInfo::new("acme", "acme-chat", "m");
        let report = agent::model::ContextReport::of(&request, &info);
        assert_eq!(report.tokens_of(&agent::model::ContextSource::Tool("wide".into())), tokens - 12);
    }
}

#[test]
fn long_descriptions_are_found() {
    let text = "word ".repeat(300);
    let tool = agent::ToolBuilder::new("long").description(text.clone()).required_string("a", text);
    let tool = tool.build(|_: agent::Value, _| async {}).expect("a tool");
    let report = Registry::new(tools![{ tool }]).expect("a registry").lint();
    let lints: Vec<(Lint, &str)> =
        report.iter().map(|finding| (finding.lint, finding.path.as_str())).collect();
    assert_eq!(lints, [(Lint::LongDescription, "/a"), (Lint::LongDescription, "")]);
}

#[test]
fn different_tools_are_no_look_alikes() {
    /// Reads a value out of the table of settings.
    #[tool]
    fn get_setting(
        /** Key of the table. */
        key: String,
    ) {
    }
    /// Stores a value in the table of settings.
    #[tool]
    fn set_setting(
        /** Key of the table. */
        key: String,
    ) {
    }
    assert_eq!(found(tools![get_setting, set_setting]), "");
}

#[test]
fn a_manifest_tells_what_drifted() {
    let manifest = |set: ToolSet| Registry::new(set).expect("a registry").manifest();
    let before = manifest(tools![book_room, get_user, read]);
    // As a file, in any order of keys.
    let stored = serde_json::to_string_pretty(&before).expect("JSON");
    let stored: ToolManifest = serde_json::from_str(&stored).expect("the same");
    assert_eq!((stored.fingerprint(), stored.drift(&before).is_empty()), (before.fingerprint(), true));

    let after = manifest(tools![read, tools![book_room].prefix("x_"), fetch_account]);
    let drift = before.drift(&after);
    assert_eq!(
        drift,
        [
            "`book_room`: the tool is gone",
            "`get_user`: the tool is gone",
            "`x_book_room`: a new tool",
            "`fetch_account`: a new tool"
        ]
    );
    assert_ne!(before.fingerprint(), after.fingerprint());

    let drift = before.drift(&manifest(tools![read, book_room, get_user]));
    assert_eq!(drift, ["`read`: the tools are in another order"]);
}

#[derive(ToolArgs)]
struct Outer {
    #[arg(example = 300, range(..=500))]
    fine: u16,
    #[arg(example = 300, range(..=5))]
    inner: u16,
    list: Vec<Word>,
    shape: Option<Shape>,
}

#[derive(ToolArgs)]
struct Word {
    #[arg(example = "two words", example = "one", pattern = "^[a-z]+$")]
    word: String,
    must: bool,
}

#[derive(ToolArgs)]
#[serde(tag = "kind")]
enum Shape {
    Circle {
        #[arg(example = -1.0, range(0.0..))]
        radius: f64,
    },
    Point,
}

/// Takes much.
#[tool]
fn nested(#[arg(nested)] all: Outer, #[arg(example = "x", length(2..))] name: String) {}

#[test]
fn examples_of_parameters_are_held_against_the_plan_wherever_they_stand() {
    let error =
        Registry::new(tools![nested]).expect("a registry").check_examples().expect_err("wrong examples");
    expect![[r#"
        example 1 of `/all/inner` of tool `nested`: /all/inner: out of range; got number 300; expected integer 0..5
        example 1 of `/all/list/0/word` of tool `nested`: /all/list/0/word: does not match the pattern; got string "two words"; expected string matching ^[a-z]+$
        example 1 of `/all/shape/radius` of tool `nested`: /all/shape/radius: out of range; got number -1.0; expected number >= 0
        example 1 of `/name` of tool `nested`: /name: too short (1 character); got string "x"; expected string, >= 2 characters"#]]
    .assert_eq(&error.to_string());
}

/// Moves a file.
#[tool]
fn move_here(
    /** A path. */
    from: String,
    /** A path. */
    to: String,
    /** A path. */
    over: String,
) {
}

#[test]
fn tools_and_parameters_that_are_described_alike_are_one_finding() {
    let described = |name: &str| {
        let body = |_: agent::Value, _: agent::ToolContext| async { "done" };
        agent::Tool::new(name, "Looks up a word in a book.", agent::json!({"type": "object"}), body)
            .expect("a tool")
    };
    let names = ["apple", "bridge", "cloud", "desert", "engine", "forest", "garden", "harbor"];
    let mut set = tools![move_here];
    for name in names {
        set.add(described(name));
    }
    let report = Registry::new(set).expect("a registry").lint();
    let same: Vec<String> = report
        .iter()
        .filter(|finding| finding.lint == Lint::SameDescription)
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        same,
        [
            "`move_here` /over: has the description of /from and /to: say how they differ (same_description)",
            "`harbor`: has the description of `apple`, `bridge`, `cloud`, `desert`, `engine` and 2 more: say how they differ \
             with `ToolSet::describe`, or leave out what you do not need (same_description)",
        ]
    );
}

/// Looks up a word.
#[tool(examples({"word": "owl"}, {"wrod": "eagle"}))]
fn look_up(
    /** In English. */
    word: String,
    /** How often. */
    #[arg(range(1..=5), example = 9)]
    times: Option<u8>,
) {
}

#[test]
fn refused_examples_are_found() {
    assert_eq!(
        found(tools![look_up]),
        "- `look_up`: example 2 is refused, so it is not sent (/wrod: unknown parameter; did you mean \"word\"?): correct it \
         (refused_example)\n\
         - `look_up` /times: example 1 is refused (/times: out of range; got number 9; expected integer 1..5): correct it \
         (refused_example)\n"
    );
}

#[test]
fn the_values_of_lists_and_branches_are_compared() {
    let ambiguous = |schema: agent::Value| {
        let schema = agent::json!({"type": "object", "properties": {"which": schema}});
        let tool =
            agent::Tool::new("t", "Finds a street.", schema, |_: agent::Value, _| async {}).expect("a tool");
        let mut report = Registry::new(tools![{ tool }]).expect("a registry").lint();
        report.retain(|finding| finding.lint == Lint::AmbiguousWords);
        report.first().map(|finding| finding.message.split(':').next().unwrap().to_owned())
    };
    let list = agent::json!({"type": "array", "items": {"enum": ["open", "opened"]}});
    assert_eq!(ambiguous(list).as_deref(), Some("`open` and `opened` are nearly the same word"));
    let optional =
        agent::json!({"anyOf": [{"enum": ["A", "B"]}, {"type": "null"}], "description": "`B` is last."});
    assert_eq!(ambiguous(optional).as_deref(), Some("`A` says nothing by itself"));
    let told = agent::json!({"oneOf": [{"const": "A", "description": "First."}, {"const": "B"}]});
    assert_eq!(ambiguous(told).as_deref(), Some("`B` says nothing by itself"));
}

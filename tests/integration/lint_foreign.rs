//! The lint of tools that the application only uses: few findings, each with something that the application can do.

use agent::{
    Registry, Tool, ToolSet, json,
    lint::{Lint, LintFinding},
};
use serde_json::Value;

fn foreign(name: &str, description: &str, properties: Value) -> Tool {
    let schema = [("type".to_owned(), "object".into()), ("properties".to_owned(), properties)];
    let schema: Value = schema.into_iter().collect();
    Tool::new(name, description, schema, |_: Value, _| async { "done" }).expect("a tool")
}

fn lint(tools: ToolSet) -> Vec<LintFinding> {
    Registry::new(tools).expect("a registry").lint()
}

/// How many findings of each kind there are.
fn count(report: &[LintFinding], lint: Lint) -> usize {
    report.iter().filter(|finding| finding.lint == lint).count()
}

/// As a generated server describes itself: every action for every resource, in the same words.
fn generated() -> ToolSet {
    let mut tools = ToolSet::new();
    let resources = [
        "issue",
        "merge_request",
        "branch",
        "commit",
        "label",
        "milestone",
        "pipeline",
        "job",
        "release",
        "tag",
        "note",
        "wiki",
    ];
    for resource in resources {
        for action in
            ["get", "list", "create", "update", "delete", "search", "export", "archive", "restore", "count"]
        {
            let description = format!(
                "{action} a {resource} of a project on the server with the given options and filters"
            );
            let properties = json!({"project_id": {"type": "string"}, "page": {"type": "integer"}, "per_page": {"type": "integer"}});
            tools.add(foreign(&format!("{action}_{resource}"), &description, properties));
        }
    }
    tools
}

/// With wide arguments and no word about them.
fn wide() -> ToolSet {
    let mut tools = ToolSet::new();
    for (name, description) in [
        ("format_range", "Formats cells of a worksheet."),
        ("create_chart", "Draws a diagram from numbers."),
        ("merge_cells", "Joins neighbours into one."),
    ] {
        let properties: serde_json::Map<String, Value> =
            (0..20).map(|at| (format!("{name}_option_{at}"), json!({"type": "string"}))).collect();
        tools.add(foreign(name, description, properties.into()));
    }
    tools
}

/// Of two servers that are alike, with everything else that can be said of a tool.
fn mixed() -> ToolSet {
    let long = "Reads one page of the handbook. ".repeat(60);
    ToolSet::new()
        .with(foreign(
            "read_file",
            "Reads a file from the disk.",
            json!({"path": {"type": "string", "description": "The path."}}),
        ))
        .with(foreign(
            "read_files",
            "Opens several documents at once.",
            json!({"paths": {"type": "array", "items": {"type": "string"}}}),
        ))
        .with(foreign(
            "readFile",
            "Loads text out of the workspace.",
            json!({"bad name!": {"type": "string", "description": "Where it is kept."}}),
        ))
        .with(foreign("handbook", &long, json!({"kind": {"enum": ["a", "b"], "description": "Which part."}})))
        .with(foreign(
            "send",
            "Sends to `recipent`.",
            json!({
                "recipient": {"type": "string", "description": "Who gets it.", "examples": [5]},
                "state": {"enum": ["open", "opened"], "description": "What becomes of it."},
            }),
        ))
}

#[test]
fn no_hint_asks_to_edit_what_is_not_ours() {
    for tools in [generated(), wide(), mixed()] {
        let names = tools.len();
        let report = lint(tools);
        for finding in &report {
            let message = &finding.message;
            assert!(!message.contains("///") && !message.contains("#[arg"), "{finding}");
            let can_act = ["`ToolSet::", "leave the tool out", "ask the tool's author"];
            assert!(can_act.iter().any(|hint| message.contains(hint)), "{finding}");
        }
        assert!(report.len() <= 2 * names + 3, "{} findings of {names} tools: {report:?}", report.len());
    }
}

#[test]
fn what_looks_alike_is_named_once_for_each_group() {
    let report = lint(generated());
    // 120 tools, of which thousands of pairs are alike.
    assert!((1..=12).contains(&count(&report, Lint::LookAlike)), "{report:?}");
    let report = lint(mixed());
    let alike: Vec<String> =
        report.iter().filter(|finding| finding.lint == Lint::LookAlike).map(ToString::to_string).collect();
    assert_eq!(
        alike,
        [
            "`readFile`: is named nearly as `read_file` and `read_files`: rename with `ToolSet::rename` or `ToolSet::prefix`, or leave out \
          what you do not need (look_alike)"
        ]
    );
}

#[test]
fn parameters_with_the_same_fault_are_one_finding() {
    let report = lint(wide());
    assert_eq!((report.len(), count(&report, Lint::UndocumentedParameter)), (3, 3), "{report:?}");
    assert_eq!(
        report[0].to_string(),
        "`format_range`: 20 parameters have no description (/format_range_option_0, /format_range_option_1, /format_range_option_2, \
         /format_range_option_3, /format_range_option_4 and 15 more): explain with `ToolSet::describe`, by name in backticks, or \
         ask the tool's author (undocumented_parameter)"
    );
    // Several faults of one parameter are faults of one parameter.
    let words = json!({"kind": {"enum": ["get", "gets", "getting"], "description": "Of the request."}});
    let report = lint(ToolSet::new().with(foreign("ask", "Sends to the server.", words)));
    assert_eq!(report.iter().map(|finding| &*finding.path).collect::<Vec<_>>(), ["/kind"], "{report:?}");
}

#[test]
fn what_a_hint_says_removes_its_finding() {
    let before = lint(mixed());
    for lint in [
        Lint::LookAlike,
        Lint::LongDescription,
        Lint::UndocumentedParameter,
        Lint::EmptyWords,
        Lint::RefusedName,
        Lint::AmbiguousWords,
        Lint::OtherName,
        Lint::RefusedExample,
    ] {
        assert!(count(&before, lint) > 0, "{lint}: {before:?}");
    }
    let after = mixed()
        .describe("read_file", "Reads a file from the disk. `path` begins at the root.")
        .describe("read_files", "Opens several documents at once, by their `paths`.")
        .describe(
            "handbook",
            "Reads one page of the handbook: `kind` is `a` for the rules, `b` for the maps.",
        )
        .describe("send", "Sends to `recipient`; its `state` is `open` until it is read, then `opened`.")
        .change(["readFile"], |set| set.hide_argument("bad name!"))
        .rename("readFile", "load_workspace")
        .rename("read_files", "open_documents");
    let mut left = lint(after);
    left.retain(|finding| finding.lint != Lint::RefusedExample);
    assert_eq!(left, []);
}

#[test]
fn a_tool_cannot_be_described_by_nothing() {
    let error = Registry::new(wide().describe("merge_cells", " ")).expect_err("no description").to_string();
    assert!(error.contains("merge_cells") && error.contains("description"), "{error}");
    let error = Registry::new(wide().describe("merge_cell", "Joins.")).expect_err("no such tool").to_string();
    assert!(error.contains("merge_cell") && error.contains("merge_cells"), "{error}");
}

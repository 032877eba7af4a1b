//! The advice in findings. The author of a `#[tool]` gets other advice than the user of a foreign tool, such as a tool of an MCP server.

use crate::tool::definition::ToolDefinition;

pub(super) struct Hints {
    /// Whether the tool is not defined by `#[tool]`, so that its texts are known only at run time.
    pub(super) is_foreign: bool,
    pub(super) undocumented_tool: &'static str,
    pub(super) undocumented_parameter: &'static str,
    pub(super) empty_tool: &'static str,
    pub(super) empty_parameter: &'static str,
    pub(super) long_tool: &'static str,
    pub(super) long_parameter: &'static str,
    pub(super) refused_name: &'static str,
    pub(super) similar_values: &'static str,
    pub(super) codes: &'static str,
    pub(super) same_tool: &'static str,
    pub(super) same_parameter: &'static str,
    pub(super) alike_named: &'static str,
    pub(super) alike_described: &'static str,
    pub(super) refused_example: &'static str,
    pub(super) costly_tool: &'static str,
    /// Hints for a description with a wrong parameter name. A hint is empty or begins with `: `, because the message adds no separator.
    pub(super) other_name_of_tool: &'static str,
    pub(super) other_name_of_parameter: &'static str,
}

const OWN: Hints = Hints {
    is_foreign: false,
    undocumented_tool: "models choose tools by it",
    undocumented_parameter: "say what it is, `/// …` above it",
    empty_tool: "say when to use it, and what it gives back",
    empty_parameter: "say what the value means, its unit or its form",
    long_tool: "say the rest elsewhere",
    long_parameter: "say the rest elsewhere",
    refused_name: "write 1 to 64 ASCII letters, digits, `_`, `.` or `-`, for example with `#[arg(rename = \"…\")]`",
    similar_values: "say how they differ, or rename one",
    codes: "describe each, `/// …` above the variant",
    same_tool: "say how they differ",
    same_parameter: "say how they differ",
    alike_named: "models will mix them up",
    alike_described: "say when to use which",
    refused_example: "correct it",
    costly_tool: "shorten the descriptions, or make several tools of it",
    other_name_of_tool: "",
    other_name_of_parameter: "",
};

/// Hints for a foreign tool. Its user can replace the description, but not the schema. A parameter that the description names in backticks
/// counts as explained.
const FOREIGN: Hints = Hints {
    is_foreign: true,
    undocumented_tool: "models choose tools by it; give it one with `ToolSet::describe`, or leave the tool out",
    undocumented_parameter: "explain with `ToolSet::describe`, by name in backticks, or ask the tool's author",
    empty_tool: "replace it with `ToolSet::describe`, or ask the tool's author",
    empty_parameter: "explain with `ToolSet::describe`, by name in backticks, or ask the tool's author",
    long_tool: "shorten it with `ToolSet::describe`",
    long_parameter: "ask the tool's author, or leave the tool out",
    refused_name: "leave the tool out for Anthropic, or hide the parameter with `ToolSet::hide_argument` if it is optional",
    similar_values: "explain with `ToolSet::describe`, by name in backticks, or ask the tool's author",
    codes: "explain with `ToolSet::describe`, by name in backticks, or ask the tool's author",
    same_tool: "say how they differ with `ToolSet::describe`, or leave out what you do not need",
    same_parameter: "say how they differ with `ToolSet::describe`, or ask the tool's author",
    alike_named: "rename with `ToolSet::rename` or `ToolSet::prefix`, or leave out what you do not need",
    alike_described: "say when to use which with `ToolSet::describe`, or leave out what you do not need",
    refused_example: "ask the tool's author, or correct it in the schema",
    costly_tool: "shorten it with `ToolSet::describe`, hide parameters with `ToolSet::hide_argument`, or leave the tool out",
    other_name_of_tool: ": correct it with `ToolSet::describe`",
    other_name_of_parameter: ": name the right one in the tool's description with `ToolSet::describe`",
};

impl Hints {
    pub(super) fn of(definition: &ToolDefinition) -> &'static Self {
        if definition.is_in_code() { &OWN } else { &FOREIGN }
    }
}

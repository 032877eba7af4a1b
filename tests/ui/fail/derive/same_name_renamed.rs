use agent::ToolArgs;

#[derive(ToolArgs)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(rename = "perPage")]
    limit: u8,
    per_page: u8,
}

#[derive(ToolArgs)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Variants {
    GoOn { x: u8 },
    #[serde(alias = "go_on")]
    Continue { y: u8 },
}

fn main() {}

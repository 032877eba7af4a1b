use agent::ToolArgs;

#[derive(ToolArgs)]
struct Args {
    #[arg(validate = "is_even")]
    text: u32,
    #[arg(validate)]
    bare: u32,
    #[arg(flatten, validate = is_full)]
    page: Page,
}

#[derive(ToolArgs)]
struct Page {
    size: u32,
}

#[derive(ToolArgs)]
enum Shape {
    #[arg(validate = is_full)]
    Circle { r: u32 },
}

#[derive(ToolArgs, serde::Deserialize, schemars::JsonSchema)]
#[arg(own_serde, validate = is_full)]
struct Own {
    size: u32,
}

fn main() {}

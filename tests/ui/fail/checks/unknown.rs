use agent::ToolArgs;

#[derive(ToolArgs)]
struct Args {
    #[arg(validate = is_evn)]
    n: u32,
}

fn main() {}

use agent::ToolArgs;

#[derive(ToolArgs)]
struct Args {
    #[arg(format = "e-mail")]
    mail: String,
    #[arg(multiple_of = 0)]
    step: u32,
    #[arg(multiple_of = "5")]
    text: u32,
    #[arg(multiple_of = 0.0)]
    ratio: f64,
}

fn main() {}

use agent::ToolArgs;

struct Silent;

#[derive(ToolArgs)]
struct Args {
    #[arg(validate = is_even)]
    even: u32,
    #[arg(validate = is_odd)]
    odd: u32,
}

fn is_even(n: &u32) -> bool {
    n % 2 == 0
}

fn is_odd(n: &u32) -> Result<(), Silent> {
    if n % 2 == 1 { Ok(()) } else { Err(Silent) }
}

fn main() {}

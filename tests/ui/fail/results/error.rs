#![allow(unused)]
use agent::tool;

struct MyError;
type Aliased<T> = Result<T, MyError>;

/// Does it.
#[tool]
fn f() -> Aliased<u8> {
    Ok(1)
}

fn main() {}

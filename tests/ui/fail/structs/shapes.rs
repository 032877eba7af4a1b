#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
struct A(u8);

/// Does it.
#[tool]
struct B;

/// Does it.
#[tool]
enum C {
    D,
}

/// Does it.
#[tool]
struct E<T> {
    t: T,
}

fn main() {}

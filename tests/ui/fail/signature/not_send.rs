#![allow(unused)]
use agent::tool;

/// Does it.
#[tool]
async fn f(a: u8) {
    let shared = std::rc::Rc::new(a);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {}

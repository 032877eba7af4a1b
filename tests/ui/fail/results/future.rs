#![allow(unused)]
use agent::tool;
use std::future::Future;
use std::pin::Pin;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Does it.
#[tool]
fn a() -> impl Future<Output = u8> {
    async { 1 }
}

/// Does it.
#[tool]
fn b() -> Pin<Box<dyn Future<Output = u8> + Send>> {
    Box::pin(async { 1 })
}

/// Does it.
#[tool]
fn c() -> BoxFuture<'static, u8> {
    Box::pin(async { 1 })
}

fn main() {}

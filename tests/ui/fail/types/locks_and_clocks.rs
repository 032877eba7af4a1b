#![allow(unused)]
use agent::tool;

use std::sync::{Mutex, RwLock};
use std::time::SystemTime;

/// Does it.
#[tool]
fn f(at: SystemTime, count: Mutex<u8>, list: RwLock<Vec<u8>>) {}

/// State may be a lock.
#[tool]
fn g(count: &Mutex<u8>, list: &RwLock<Vec<u8>>) {}

fn main() {}

#![allow(unused)]
use agent::tools;

struct Z;

fn list() {
    let _ = tools![Z];
    let _ = tools![{ Z }];
}

fn main() {}

//! Examples; the README lists their commands.

pub mod loopback;

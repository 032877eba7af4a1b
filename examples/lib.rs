//! Examples; see the README for their commands.

pub mod loopback;

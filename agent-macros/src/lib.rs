//! The macros of `agent`.

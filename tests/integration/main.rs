//! One module per capability.
mod args;

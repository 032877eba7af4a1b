//! One module per capability.

mod messages;
mod models;

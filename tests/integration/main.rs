//! One module per capability.

mod assistant;
mod messages;
mod models;

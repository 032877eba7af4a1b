//! One module per capability.

mod assistant;
mod assistant_vectors;
mod messages;
mod models;

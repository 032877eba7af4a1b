//! One module per capability.

mod assistant;
mod macro_arguments;
mod macro_blocks;
mod macro_functions;
mod macro_results;
mod macro_set;
mod macro_state;
mod macro_structs;
mod macro_support;
mod messages;
mod models;
mod registry;

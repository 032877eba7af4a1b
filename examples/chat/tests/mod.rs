//! The chat as a whole: in a pseudo-terminal, and in pipes. No network, no model but the demo's.

mod commands;
mod edges;
mod hands;
mod pipes;
mod runs;
mod terminal;
mod wire;

//! The whole chat, in a pseudo-terminal and in pipes, without a network and with the demo model only.

mod commands;
mod edges;
mod hands;
mod pipes;
mod runs;
mod terminal;
mod wire;

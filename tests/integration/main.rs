//! One module per capability.

mod messages;

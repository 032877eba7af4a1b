//! The argument engine.

//! One module per capability.

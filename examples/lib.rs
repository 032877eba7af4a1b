//! Examples; see the README for their commands.

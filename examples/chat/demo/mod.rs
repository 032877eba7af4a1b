//! What there is without a provider: tools to try things with, and a model that is none.

pub(crate) mod guess;
pub(crate) mod model;
pub(crate) mod tools;

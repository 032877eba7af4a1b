//! What works without a provider: demo tools and a fake model.

pub(crate) mod guess;
pub(crate) mod model;
pub(crate) mod tools;

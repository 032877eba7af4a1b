//! Subscribers of one test among many that run beside it.

use std::sync::Once;

use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// Lets `subscriber` hear what this thread does until the guard goes.
///
/// A place in the code that is first reached on a thread without a subscriber would be silent from then on for every thread
/// (`tracing` remembers that nobody was interested), so there is always somebody in the background who may be.
pub(crate) fn hear(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    static BACKGROUND: Once = Once::new();
    BACKGROUND.call_once(|| dispatcher::set_global_default(Dispatch::new(Background)).expect("the only one"));
    dispatcher::set_default(&Dispatch::new(subscriber))
}

/// Hears nothing, and says of nothing that it never will.
struct Background;

impl Subscriber for Background {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

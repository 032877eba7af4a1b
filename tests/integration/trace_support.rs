//! Subscribers of one test among many that run beside it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, Once};

use tracing::dispatcher::{self, DefaultGuard, Dispatch};
use tracing::field::{Field, Visit};
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

#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) name: &'static str,
    pub(crate) parent: Option<u64>,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// How each field was recorded: `boolean`, `int`, `unsigned`, `double`, `string`, or `debug`.
    pub(crate) kinds: Kinds,
}

pub(crate) type Kinds = BTreeMap<&'static str, &'static str>;

/// An event: the span it stands in, and its fields.
pub(crate) type Told = (Option<u64>, BTreeMap<&'static str, String>);

/// Everything that was traced.
#[derive(Clone, Default)]
pub(crate) struct Traces {
    pub(crate) spans: Arc<Mutex<Vec<Span>>>,
    pub(crate) events: Arc<Mutex<Vec<Told>>>,
    entered: Arc<Mutex<Vec<u64>>>,
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

/// The kinds of fields, as an exporter gets them.
struct KindsOf<'a>(&'a mut Kinds);

impl Visit for KindsOf<'_> {
    fn record_bool(&mut self, field: &Field, _: bool) {
        self.0.insert(field.name(), "boolean");
    }

    fn record_i64(&mut self, field: &Field, _: i64) {
        self.0.insert(field.name(), "int");
    }

    fn record_u64(&mut self, field: &Field, _: u64) {
        self.0.insert(field.name(), "unsigned");
    }

    fn record_f64(&mut self, field: &Field, _: f64) {
        self.0.insert(field.name(), "double");
    }

    fn record_str(&mut self, field: &Field, _: &str) {
        self.0.insert(field.name(), "string");
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // What is displayed is exported as text; numbers of other types are, too.
        let is_number = format!("{value:?}").parse::<f64>().is_ok();
        self.0.insert(field.name(), if is_number { "debug" } else { "string" });
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Traces {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("agent")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut span = Span { name: attributes.metadata().name(), ..Span::default() };
        attributes.record(&mut Fields(&mut span.fields));
        attributes.record(&mut KindsOf(&mut span.kinds));
        span.parent = self.entered.lock().unwrap().last().copied();
        let mut spans = self.spans.lock().unwrap();
        spans.push(span);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let at = usize::try_from(id.into_u64()).unwrap() - 1;
        let span = &mut self.spans.lock().unwrap()[at];
        values.record(&mut Fields(&mut span.fields));
        values.record(&mut KindsOf(&mut span.kinds));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.events.lock().unwrap().push((self.entered.lock().unwrap().last().copied(), fields));
    }

    fn enter(&self, id: &Id) {
        self.entered.lock().unwrap().push(id.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }
}

/// Everything that is logged at any level by any crate, as one text: names, targets and fields of spans and events.
#[derive(Clone, Default)]
pub(crate) struct EveryLine(Arc<Mutex<String>>);

impl EveryLine {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn write(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Fields<'_>)) {
        let mut fields = BTreeMap::new();
        record(&mut Fields(&mut fields));
        let line = format!("{} {} {}: {fields:?}\n", metadata.level(), metadata.target(), metadata.name());
        // What `Debug` of a text escapes is looked for as it is.
        let plain = fields.values().map(|value| format!("{value}\n")).collect::<Vec<_>>().concat();
        let mut text = self.0.lock().unwrap();
        text.push_str(&line);
        text.push_str(&plain);
    }
}

impl Subscriber for EveryLine {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.write(attributes.metadata(), |fields| attributes.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut fields = BTreeMap::new();
        values.record(&mut Fields(&mut fields));
        let plain =
            fields.iter().map(|(name, value)| format!("{name}={value}\n")).collect::<Vec<_>>().concat();
        self.0.lock().unwrap().push_str(&plain);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.write(event.metadata(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

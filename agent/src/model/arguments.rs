//! The arguments of calls while a model writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::ModelEvent;
use crate::ToolDefinition;
use crate::args::{ArgumentEvent, ArgumentStream};

/// Reads the arguments of a reply's calls while they arrive: each call has an [`ArgumentStream`] with its tool's plan.
///
/// All work together is linear in the text. The events are for showing, and for stopping a model that is on a wrong
/// way; calls are made from whole arguments alone.
///
/// ```
/// use agent::model::{CallArguments, ModelEvent};
/// use agent::args::ArgumentEvent;
/// use agent::{Registry, tool, tools};
///
/// /// Writes a file.
/// #[tool]
/// fn write(path: String, text: String) {
///     # let _ = (path, text);
/// }
///
/// let registry = Registry::new(tools![write])?;
/// let mut arguments = CallArguments::new(registry.definitions());
/// let mut shown = String::new();
/// let mut events = vec![ModelEvent::ToolCallStart { content_index: 0, id: "c1".into(), name: "write".into() }];
/// for delta in [r#"{"path": "a.txt", "te"#, r#"xt": "Dear "#, r#"all"#] {
///     events.push(ModelEvent::ToolCallDelta { content_index: 0, delta: delta.into() });
/// }
/// for event in &events {
///     arguments.push(event, &mut |_index, event| {
///         if let ArgumentEvent::Appended { path, fragment } = event
///             && path.parameter() == Some("text")
///         {
///             shown.push_str(fragment);
///         }
///     });
/// }
/// assert_eq!(shown, "Dear all");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CallArguments {
    tools: Arc<[ToolDefinition]>,
    streams: BTreeMap<usize, ArgumentStream>,
}

impl CallArguments {
    /// For a reply to a request with these tools. Calls of others are read too, unchecked.
    pub fn new(tools: Arc<[ToolDefinition]>) -> Self {
        Self { tools, streams: BTreeMap::new() }
    }

    /// Takes an event of the reply in, and tells what it says of the arguments of a call: `on` gets the call's content
    /// index and the event. Text that is no JSON any more tells nothing: the engine answers the whole of it.
    pub fn push(&mut self, event: &ModelEvent, on: &mut dyn FnMut(usize, ArgumentEvent<'_>)) {
        match event {
            ModelEvent::ToolCallStart { content_index, name, .. } => {
                let tool = self.tools.iter().find(|tool| tool.name() == name);
                let stream =
                    tool.map_or_else(ArgumentStream::untyped, |tool| ArgumentStream::new(tool.plan()));
                self.streams.insert(*content_index, stream);
            }
            ModelEvent::ToolCallDelta { content_index, delta } => {
                if let Some(stream) = self.streams.get_mut(content_index) {
                    // An error stays in the stream, and in its text for the report.
                    let _ = stream.push(delta, &mut |event| on(*content_index, event));
                }
            }
            _ => {}
        }
    }

    /// The arguments of the call at this content index, as far as they came.
    pub fn get(&self, content_index: usize) -> Option<&ArgumentStream> {
        self.streams.get(&content_index)
    }
}

impl fmt::Debug for CallArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.streams).finish()
    }
}

//! One chunk of a stream.

use serde_json::Value;

/// One chunk of a stream: the JSON text that a client reads, and its position.
///
/// ```
/// use agent::ui::UiChunk;
///
/// let mut chunk = UiChunk::default();
/// (chunk.id, chunk.json) = ("run_1:4.0".into(), r#"{"type":"finish"}"#.into());
/// assert_eq!(chunk.to_sse(), "id: run_1:4.0\ndata: {\"type\":\"finish\"}\n\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UiChunk {
    /// `{run_id}:{seq}.{k}`. `k` counts the chunks of the event `seq` from 0. Chunks of sub-agents have the `seq` of the latest event of
    /// the main run, and their `k` begins at 1,000,000.
    pub id: String,
    /// The JSON text of the chunk. It has no line break.
    pub json: String,
}

impl UiChunk {
    /// Returns the chunk as one server-sent event.
    pub fn to_sse(&self) -> String {
        let mut text = String::with_capacity(self.id.len() + self.json.len() + 14);
        text.push_str("id: ");
        // The application chooses the id of a run. A line break in the id would begin another field, so control characters are left out.
        text.extend(self.id.chars().filter(|c| !c.is_control()));
        text.push_str("\ndata: ");
        text.push_str(&self.json);
        text.push_str("\n\n");
        text
    }
}

pub(super) struct ChunkWriter<'a> {
    pub(super) chunks: &'a mut Vec<UiChunk>,
    pub(super) run_id: &'a str,
    pub(super) seq: u64,
    pub(super) next: &'a mut u32,
}

impl ChunkWriter<'_> {
    pub(super) fn push(&mut self, value: &Value) {
        let id = format!("{}:{}.{}", self.run_id, self.seq, self.next);
        *self.next += 1;
        self.chunks.push(UiChunk { id, json: value.to_string() });
    }
}

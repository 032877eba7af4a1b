//! The events of a run as JSON, for browsers that follow the run from any position.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::Value;

use super::cut::{MAX_TEXT, beginning, cut_texts};
use crate::loop_core::Event;

/// The size of a log, in bytes, above which texts are cut to [`SHORT_TEXT`].
const MAX_BYTES: usize = 16 << 20;
/// Maximum length of a text in a log above [`MAX_BYTES`], in bytes.
const SHORT_TEXT: usize = 2 << 10;
/// Maximum number of entries. The last entry reports that the log is full.
const MAX_ENTRIES: usize = 100_000;
/// The size of a log, in bytes, above which the log is full. A log above [`MAX_BYTES`] still grows, with short texts.
const MAX_TOTAL: usize = 4 * MAX_BYTES;
/// The length of a piece of an event stream, in bytes, above which no further entry is added to the piece.
const BATCH: usize = 128 << 10;

/// The position of a reader: the index of an entry, and the number of bytes of this entry that the reader has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogPosition {
    pub(super) entry: usize,
    pub(super) offset: usize,
}

enum LogEntry {
    Event(String),
    Delta { head: Value, text: String },
}

pub(super) struct RunLog {
    began: Instant,
    entries: Vec<LogEntry>,
    bytes: usize,
    /// The index of the first entry of the current reply of each run. Runs of sub-agents may reply at the same time.
    reply_from: HashMap<String, usize>,
    is_full: bool,
}

impl RunLog {
    pub(super) fn new(began: Instant) -> Self {
        Self { began, entries: Vec::new(), bytes: 0, reply_from: HashMap::new(), is_full: false }
    }

    pub(super) fn push(&mut self, event: &Event) {
        let mut json = match serde_json::to_value(event) {
            Ok(json) => json,
            Err(error) => return tracing::error!(%error, "an event is not shown in the studio"),
        };
        json["at"] = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).into();
        self.push_json(json);
    }

    /// Adds an event of the run or of the studio. If the log is full, adds the event `log_full` instead, and ignores all later events.
    pub(super) fn push_json(&mut self, mut json: Value) {
        if self.is_full {
            return;
        }
        if self.entries.len() + 1 == MAX_ENTRIES || self.bytes > MAX_TOTAL {
            self.is_full = true;
            json = serde_json::json!({"type": "log_full"});
        }
        let kind = json["type"].as_str().unwrap_or_default().to_owned();
        let run = || json["run_id"].as_str().unwrap_or_default().to_owned();
        match &*kind {
            // The event `tool_execution_end` has the same content, so this event is left out.
            "message_start" if json["message"]["role"] == "tool_result" => return,
            "message_start" if json["message"]["role"] == "assistant" => {
                self.reply_from.insert(run(), self.entries.len());
            }
            "message_update" if json["delta"].is_string() => return self.push_delta(json),
            "message_end" => {
                let run = run();
                if let Some(from) = self.reply_from.remove(&run) {
                    self.leave_out_deltas(from, &run);
                }
                if json["message"]["role"] == "tool_result" {
                    return;
                }
            }
            // The messages are left out, because earlier events contain all of them.
            "agent_end" => json["messages"] = Value::Null,
            _ => {}
        }
        let max = if self.bytes > MAX_BYTES { SHORT_TEXT } else { MAX_TEXT };
        cut_texts(&mut json, max);
        let text = json.to_string();
        self.bytes += text.len();
        self.entries.push(LogEntry::Event(text));
    }

    fn push_delta(&mut self, mut head: Value) {
        let Value::String(delta) = head["delta"].take() else { return };
        let is_same =
            |other: &Value| ["run_id", "update", "content_index"].iter().all(|key| other[*key] == head[*key]);
        self.bytes += delta.len();
        match self.entries.last_mut() {
            Some(LogEntry::Delta { head: last, text }) if is_same(last) => text.push_str(&delta),
            _ => self.entries.push(LogEntry::Delta { head, text: delta }),
        }
    }

    /// Removes the text from the deltas of a complete reply, because the event `message_end` contains the text. The entries themselves
    /// stay, so that positions stay valid.
    fn leave_out_deltas(&mut self, from: usize, run: &str) {
        for entry in self.entries.iter_mut().skip(from) {
            if let LogEntry::Delta { head, text } = entry
                && head["run_id"].as_str().unwrap_or_default() == run
            {
                self.bytes -= text.len();
                *text = String::new();
            }
        }
    }

    /// Returns the entries after a position as server-sent events, up to about [`BATCH`] bytes, and the position after these entries.
    pub(super) fn after(&self, from: LogPosition) -> (String, LogPosition) {
        let (mut out, mut at) = (String::new(), from);
        while let Some(entry) = self.entries.get(at.entry) {
            let is_last = at.entry + 1 == self.entries.len();
            match entry {
                LogEntry::Event(text) => {
                    push_frame(&mut out, LogPosition { entry: at.entry + 1, offset: 0 }, text);
                }
                LogEntry::Delta { head, text } => {
                    let start = at.offset.min(text.len());
                    let rest = text.get(start..).unwrap_or_default();
                    let taken = beginning(rest, BATCH);
                    let end = start + taken.len();
                    if !taken.is_empty() {
                        let mut frame = head.clone();
                        frame["delta"] = taken.into();
                        push_frame(
                            &mut out,
                            LogPosition { entry: at.entry, offset: end },
                            &frame.to_string(),
                        );
                    }
                    at.offset = end;
                    if end < text.len() {
                        return (out, at);
                    }
                    // The last delta may still grow, so the position stays within the delta.
                    if is_last {
                        return (out, at);
                    }
                }
            }
            at = LogPosition { entry: at.entry + 1, offset: 0 };
            if out.len() > BATCH {
                break;
            }
        }
        (out, at)
    }
}

fn push_frame(out: &mut String, after: LogPosition, data: &str) {
    let LogPosition { entry, offset } = after;
    for part in ["id: ", &entry.to_string(), ".", &offset.to_string(), "\ndata: ", data, "\n\n"] {
        out.push_str(part);
    }
}

impl std::str::FromStr for LogPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (entry, offset) = text.split_once('.').ok_or(())?;
        Ok(Self { entry: entry.parse().map_err(drop)?, offset: offset.parse().map_err(drop)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn delta(text: &str) -> Value {
        json!({"type": "message_update", "update": "text_delta", "content_index": 0, "delta": text})
    }

    #[test]
    fn deltas_are_joined_and_left_out_once_their_message_is_complete() {
        let mut log = RunLog::new(Instant::now());
        log.push_json(json!({"type": "message_start", "message": {"role": "assistant"}}));
        for _ in 0..100_000 {
            log.push_json(delta("ab"));
        }
        assert_eq!(log.entries.len(), 2);
        let (first, at) = log.after(LogPosition::default());
        assert!(first.len() < 2 * BATCH + 1000 && at.offset == BATCH, "{at:?}");
        let (_, end) = log.after(at);
        log.push_json(delta("é!"));
        let (more, later) = log.after(end);
        assert!(more.contains("\"é!\"") && later.offset == 200_003, "{more}");
        log.push_json(json!({"type": "message_end", "message": {"role": "assistant"}}));
        assert!(log.bytes < 1000, "{}", log.bytes);
        let (rest, end) = log.after(later);
        assert!(rest.contains("message_end") && end == LogPosition { entry: 3, offset: 0 }, "{rest}");
    }

    #[test]
    fn a_log_is_bounded() {
        let mut log = RunLog::new(Instant::now());
        for _ in 0..MAX_ENTRIES + 5 {
            log.push_json(json!({"type": "turn_start"}));
        }
        assert_eq!(log.entries.len(), MAX_ENTRIES);
        assert!(matches!(log.entries.last(), Some(LogEntry::Event(text)) if text.contains("log_full")));
        let mut log = RunLog::new(Instant::now());
        for _ in 0..200 {
            log.push_json(json!({"type": "tool_execution_end", "content": "x".repeat(10 << 20)}));
        }
        assert!(log.bytes < MAX_BYTES + (1 << 20), "{}", log.bytes);
        // Short texts are not cut.
        let mut log = RunLog::new(Instant::now());
        let many = json!({"type": "tool_execution_end", "content": vec!["x"; 1 << 18]});
        for _ in 0..200 {
            log.push_json(many.clone());
        }
        assert!(log.bytes < MAX_TOTAL + (2 << 20), "{}", log.bytes);
        assert!(matches!(log.entries.last(), Some(LogEntry::Event(text)) if text.contains("log_full")));
        let positions: Result<LogPosition, ()> = "3.4".parse();
        assert_eq!(positions, Ok(LogPosition { entry: 3, offset: 4 }));
        assert!("x".parse::<LogPosition>().is_err() && "1".parse::<LogPosition>().is_err());
    }
}

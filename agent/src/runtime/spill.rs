//! Files for results that are too long for a conversation, and the tool that reads them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::new_id;
use crate::loop_core::{hint, text_bytes};
use crate::message::{Conversation, Message, Part};
use crate::private_files;
use crate::step_key::StepKey;
use crate::tool::context::ToolContext;
use crate::tool::definition_error::DefinitionError;
use crate::tool::error::ToolError;
use crate::tool::outcome::ToolOutcome;
use crate::tool::output::ToolOutput;
use crate::tool::policy::Effect;
use crate::tool::value::Tool;

/// The name of the tool that reads results that were too long, or that the model no longer sees.
pub(super) const READ_RESULT: &str = "read_result";

/// The prefix of handles. A handle is the id by which a model reads a result in a file. To read a result that is only in the conversation,
/// a model uses the id of the call.
const HANDLE: &str = "result";

/// Maximum number of bytes that one call of `read_result` reads.
const MAX_READ: u64 = 32 * 1024;

#[derive(Clone, Debug)]
pub(super) struct SpillFolder {
    folder: Arc<Path>,
}

impl SpillFolder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder: folder.into() }
    }

    /// Writes the text of a completed result to a file, and returns the handle (the id for [`READ_RESULT`]) and the file. Returns `None`
    /// if the text has at most `max` bytes, if the call did not complete, or if the file cannot be written.
    pub(super) async fn save(
        &self,
        key: &StepKey,
        outcome: &ToolOutcome,
        max: usize,
    ) -> Option<(String, SpilledFile)> {
        let text = match outcome {
            ToolOutcome::Completed(output) if text_bytes(&output.content) > max => {
                output.content.iter().filter_map(Part::as_text).collect::<String>()
            }
            _ => return None,
        };
        // Handles cannot be guessed, so assistants that must not read each other's results can share a folder.
        let handle = new_id(HANDLE);
        let (folder, path) = (self.folder.clone(), self.folder.join(&handle));
        let write = move || {
            private_files::create_folder(&folder)?;
            let mut created = private_files::create(&path)?;
            let file = SpilledFile(path);
            created.write_all(text.as_bytes()).map(|()| file)
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(file)) => Some((handle, file)),
            Ok(Err(error)) => {
                tracing::warn!(%key, error = &error as &dyn std::error::Error, "a long result could not be written to a file");
                None
            }
            // The runtime shuts down, so the file may not have been written.
            Err(_) => None,
        }
    }
}

/// Returns the tool `read_result`. The tool reads results in the conversation, and files in the folder, if there is a folder.
pub(super) fn read_result(spill: Option<SpillFolder>) -> Result<Tool, DefinitionError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle, as the result names it."},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes."},
            "length": {"type": "integer", "minimum": 1, "maximum": MAX_READ, "default": 8192, "description": "How much, in bytes."},
        },
        "required": ["handle"],
    });
    let folder = spill.map(|spill| spill.folder);
    let read = move |args: Value, cx: ToolContext| {
        let folder = folder.clone();
        async move {
            let handle = args["handle"].as_str().unwrap_or_default();
            let results = cx.get::<SpilledResults>();
            if let Some(text) = results.and_then(|results| result_text(&results.conversation, handle)) {
                return Ok(part_of_text(&text, &args));
            }
            let Some(folder) = folder.filter(|_| results.is_some_and(|results| results.has(handle))) else {
                return Err(unknown_handle(handle));
            };
            let read = tokio::task::spawn_blocking(move || read(&folder, &args)).await;
            read.unwrap_or_else(|_| Err(ToolError::new("the application is shutting down")))
        }
    };
    let tool = Tool::new(
        READ_RESULT,
        "Reads a part of a result that was too long to show, or that was removed.",
        schema,
        read,
    )?;
    tool.configure(|options| options.effect(Effect::Pure).cache(false))
}

pub(super) fn result_text(conversation: &Conversation, call_id: &str) -> Option<String> {
    let mut results = conversation.iter().rev().filter_map(Message::as_tool_result);
    let result = results.find(|result| result.call_id == call_id)?;
    Some(result.content.iter().filter_map(Part::as_text).collect())
}

pub(super) fn part_of_text(text: &str, args: &Value) -> ToolOutput {
    let (offset, length) = range(args);
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    let (from, to) = (place(offset), place(offset.saturating_add(length)));
    let bytes = text.as_bytes().get(from..to).unwrap_or_default();
    ToolOutput::text(format!("[bytes {from} to {to} of {}]\n{}", text.len(), String::from_utf8_lossy(bytes)))
}

/// Returns the offset and the length, in bytes, of the part that a call reads.
fn range(args: &Value) -> (u64, u64) {
    (args["offset"].as_u64().unwrap_or(0), args["length"].as_u64().unwrap_or(8192).min(MAX_READ))
}

pub(super) struct SpilledResults {
    /// The files that this assistant wrote, or that were written by the assistants from which it was forked.
    files: Vec<Arc<SpilledFile>>,
    /// The conversation. Files that its results name may be read, too, even if an earlier process wrote them.
    conversation: Conversation,
}

impl SpilledResults {
    pub(super) fn new(files: Vec<Arc<SpilledFile>>, conversation: Conversation) -> Self {
        Self { files, conversation }
    }

    fn has(&self, handle: &str) -> bool {
        if !is_handle(handle) {
            return false;
        }
        let hint = hint(handle);
        let names =
            |message: &Message| message.as_tool_result().is_some_and(|_| message.text().contains(&hint));
        self.files.iter().any(|file| file.has_handle(handle)) || self.conversation.iter().any(names)
    }
}

/// Returns whether a text has the form of a handle, and therefore cannot lead out of the folder as a file name.
fn is_handle(text: &str) -> bool {
    let digits = text.strip_prefix(HANDLE).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn unknown_handle(handle: &str) -> ToolError {
    ToolError::retry(format!("there is no result `{handle}`; use a handle that a result names"))
}

/// The file of one result. The file is deleted when the last assistant that shares this value drops it.
pub(super) struct SpilledFile(PathBuf);

impl SpilledFile {
    fn has_handle(&self, handle: &str) -> bool {
        self.0.file_name().is_some_and(|name| name == handle)
    }
}

impl Drop for SpilledFile {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(file = %self.0.display(), error, "the file of a long result could not be deleted");
            }
            _ => {}
        }
    }
}

fn read(folder: &Path, args: &Value) -> Result<ToolOutput, ToolError> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let handle = args["handle"].as_str().unwrap_or_default();
    let (offset, length) = range(args);
    let failed = |error: std::io::Error| ToolError::new("the result cannot be read").with_source(error);
    let mut file = private_files::open(&folder.join(handle)).map_err(|_| unknown_handle(handle))?;
    let size = file.metadata().map_err(failed)?.len();
    let offset = offset.min(size);
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(failed)?;
    let end = offset.saturating_add(bytes.len() as u64).min(size);
    let text = String::from_utf8_lossy(&bytes);
    Ok(ToolOutput::text(format!("[bytes {offset} to {end} of {size}]\n{text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_offset_beyond_the_end_reads_nothing_from_a_file_as_from_a_text() {
        let folder = std::env::temp_dir().join(new_id("agent-spill"));
        let key = StepKey::new("r", 1, crate::step_key::StepKind::Tool, 0);
        let text = "x".repeat(50);
        let outcome = ToolOutput::text(&*text).into();
        let (handle, file) = SpillFolder::new(folder.clone()).save(&key, &outcome, 10).await.unwrap();
        for (offset, expected) in [(48, "[bytes 48 to 50 of 50]\nxx"), (100, "[bytes 50 to 50 of 50]\n")] {
            let args = json!({"handle": handle, "offset": offset});
            assert_eq!(read(&folder, &args).unwrap(), ToolOutput::text(expected));
            assert_eq!(part_of_text(&text, &args), ToolOutput::text(expected));
        }
        drop(file);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

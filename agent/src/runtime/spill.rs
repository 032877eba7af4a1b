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

/// The prefix of the handles of results in files. A handle is the id by which a model reads a result. The handle of a result that is only
/// in the conversation is the id of its call. If several results have the same call id, the second one has the handle `ID#2`, and so on.
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

/// Returns the text of the result with this handle: a call id, or `ID#N` for the result number `N` with the same call id.
pub(super) fn result_text(conversation: &Conversation, handle: &str) -> Option<String> {
    let find = |call_id: &str, earlier: usize| {
        let results = conversation.iter().filter_map(Message::as_tool_result);
        results.filter(|result| result.call_id == call_id).nth(earlier)
    };
    let numbered = || {
        let (call_id, number) = handle.rsplit_once('#')?;
        find(call_id, number.parse::<usize>().ok()?.checked_sub(1)?)
    };
    let result = find(handle, 0).or_else(numbered)?;
    Some(result.content.iter().filter_map(Part::as_text).collect())
}

pub(super) fn part_of_text(text: &str, args: &Value) -> ToolOutput {
    part(text.as_bytes(), 0, text.len() as u64, range(args))
}

/// The maximum number of bytes of a character that follow its first byte.
const FOLLOWING: u8 = 3;

/// Returns a part of a text that has `size` bytes. `bytes` are the bytes of the text from `start` on: the part, and at least [`FOLLOWING`]
/// bytes before and after the part, unless the text begins or ends there. Both ends of the part are moved back to the beginning of a
/// character, so that the next part begins with the bytes that this part leaves out. If the moved ends are equal, the part has one
/// character.
fn part(bytes: &[u8], start: u64, size: u64, (offset, length): (u64, u64)) -> ToolOutput {
    let place = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
    let begins = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let first = |at: usize| at.saturating_sub(FOLLOWING.into());
    let back = |at: usize| (first(at)..=at).rev().find(begins).unwrap_or(at);
    let (from, mut to) = (back(place(offset)), back(place(offset.saturating_add(length))));
    if to == from {
        to = (from + 1..bytes.len()).find(begins).unwrap_or(bytes.len());
    }
    let text = String::from_utf8_lossy(bytes.get(from..to).unwrap_or_default());
    let at = |place: usize| start.saturating_add(place as u64);
    ToolOutput::text(format!("[bytes {} to {} of {size}]\n{text}", at(from), at(to)))
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
    use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
    let handle = args["handle"].as_str().unwrap_or_default();
    let (offset, length) = range(args);
    let failed = |error: std::io::Error| ToolError::new("the result cannot be read").with_source(error);
    let mut file = private_files::open(&folder.join(handle)).map_err(|error| match error.kind() {
        // Something that is not a file is not a result, either.
        ErrorKind::NotFound | ErrorKind::InvalidInput => unknown_handle(handle),
        _ => failed(error),
    })?;
    let size = file.metadata().map_err(failed)?.len();
    let start = offset.min(size).saturating_sub(FOLLOWING.into());
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(length + 2 * u64::from(FOLLOWING)).read_to_end(&mut bytes).map_err(failed)?;
    Ok(part(&bytes, start, size, (offset, length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{OutcomeKind, ToolResultMessage};

    #[test]
    fn a_handle_names_one_of_the_results_with_the_same_call_id() {
        let result = |call_id: &str, text: &str| {
            let result = ToolResultMessage::new(call_id, "t", OutcomeKind::Completed);
            Message::from(result.with_content(text))
        };
        let conversation =
            Conversation::from_iter([result("call_1", "a"), result("call_1", "b"), result("x#7", "c")]);
        for (handle, text) in [("call_1", "a"), ("call_1#2", "b"), ("x#7", "c")] {
            assert_eq!(result_text(&conversation, handle).as_deref(), Some(text));
        }
        for handle in ["call_1#3", "call_1#0", "call_1#", "call_2"] {
            assert_eq!(result_text(&conversation, handle), None, "{handle}");
        }
    }

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

    #[tokio::test]
    async fn the_parts_of_a_result_have_all_its_characters() {
        let folder = std::env::temp_dir().join(new_id("agent-spill"));
        let key = StepKey::new("r", 1, crate::step_key::StepKind::Tool, 0);
        let text = "日本x語é🦀.".repeat(5);
        let outcome = ToolOutput::text(&*text).into();
        let (handle, file) = SpillFolder::new(folder.clone()).save(&key, &outcome, 10).await.unwrap();
        for length in 1..9 {
            let (mut joined, mut next) = (String::new(), 0);
            while next < text.len() {
                let args = json!({"handle": handle, "offset": next, "length": length});
                let part = read(&folder, &args).unwrap();
                assert_eq!(part, part_of_text(&text, &args));
                let part = part.text_content();
                let (place, content) = part.split_once('\n').unwrap();
                assert!(place.starts_with(&format!("[bytes {next} to ")), "{place}");
                next = place.split(' ').nth(3).unwrap().parse().unwrap();
                joined += content;
            }
            assert_eq!(joined, text);
        }
        // An offset within a character reads the whole character.
        let args = json!({"handle": handle, "offset": 4, "length": 3});
        assert_eq!(read(&folder, &args).unwrap().text_content(), "[bytes 3 to 7 of 85]\n本x");
        // If the file does not exist, the handle is unknown. Other errors mean that the result cannot be read.
        std::fs::remove_file(folder.join(&handle)).unwrap();
        assert_eq!(read(&folder, &args).unwrap_err().message(), unknown_handle(&handle).message());
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "not a folder").unwrap();
        let error = read(&folder, &args).unwrap_err();
        // Windows does not tell both errors apart.
        if cfg!(unix) {
            assert_eq!(error.message(), "the result cannot be read");
            assert!(std::error::Error::source(&error).is_some());
        }
        drop(file);
        std::fs::remove_file(&folder).unwrap();
    }
}

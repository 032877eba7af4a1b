//! Results that are too long for a conversation, in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::loop_core::text_bytes;
use crate::message::Part;
use crate::{
    DefinitionError, DynamicTool, Effect, StepKey, ToolContext, ToolError, ToolOutcome, ToolOutput,
    ToolPolicy,
};

/// The tool that reads what was spilled.
pub(super) const READ_RESULT: &str = "read_result";

/// How much of a result one call reads at most.
const MAX_READ: u64 = 32 * 1024;

/// A folder for results.
#[derive(Clone, Debug)]
pub(super) struct Spill {
    folder: Arc<Path>,
}

impl Spill {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder: folder.into() }
    }

    /// Writes a result that is longer than `max` bytes; gives what it is read by, and the file. One that cannot be written
    /// is told to the log: then the result is only cut.
    pub(super) async fn keep(
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
        let handle = key.to_string().replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        let file = SpilledFile(self.folder.join(&handle));
        let write = move || {
            let path = &file.0;
            std::fs::create_dir_all(path.parent().unwrap_or(path))?;
            std::fs::write(path, text).map(|()| file)
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(file)) => Some((handle, file)),
            Ok(Err(error)) => {
                tracing::warn!(%key, error = &error as &dyn std::error::Error, "a long result could not be kept");
                None
            }
            // The runtime shuts down.
            Err(_) => None,
        }
    }

    /// The tool that reads them.
    pub(super) fn tool(&self) -> Result<DynamicTool, DefinitionError> {
        let schema = json!({
            "type": "object",
            "properties": {
                "handle": {"type": "string", "description": "The handle, as the result names it."},
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes."},
                "length": {"type": "integer", "minimum": 1, "maximum": MAX_READ, "default": 8192, "description": "How much, in bytes."},
            },
            "required": ["handle"],
        });
        let folder = self.folder.clone();
        let read = move |args: Value, _: ToolContext| {
            let folder = folder.clone();
            async move {
                let read = tokio::task::spawn_blocking(move || read(&folder, &args)).await;
                read.unwrap_or_else(|_| Err(ToolError::new("the application shuts down")))
            }
        };
        let tool = DynamicTool::new(
            READ_RESULT,
            "Reads a part of a result that was too long to show.",
            schema,
            read,
        )?;
        Ok(tool.with_policy(ToolPolicy::default().with_effect(Effect::Pure)))
    }
}

/// The file of one result. It is gone when the last assistant whose conversation names it is.
pub(super) struct SpilledFile(PathBuf);

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
    let unknown =
        || ToolError::retry(format!("there is no result `{handle}`; use a handle that a result names"));
    // A name in the folder and nothing else.
    if handle.is_empty() || !handle.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
        return Err(unknown());
    }
    let offset = args["offset"].as_u64().unwrap_or(0);
    let length = args["length"].as_u64().unwrap_or(8192).min(MAX_READ);
    let failed = |error: std::io::Error| ToolError::new("the result cannot be read").with_source(error);
    let mut file = std::fs::File::open(folder.join(handle)).map_err(|_| unknown())?;
    let size = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(failed)?;
    let end = offset.saturating_add(bytes.len() as u64).min(size);
    let text = String::from_utf8_lossy(&bytes);
    Ok(ToolOutput::text(format!("[bytes {offset} to {end} of {size}]\n{text}")))
}

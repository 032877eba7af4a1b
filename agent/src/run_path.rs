//! The path of a run in its tree of runs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The path of a run in its tree of runs: the calls that lead from the root run to this run, the outermost first. The path of a root run
/// is empty.
///
/// ```
/// use agent::run::RunPath;
///
/// let path: RunPath = serde_json::from_str(r#"[{"call_id": "1", "tool": "ask_expert", "run_id": "run/1/tool/0"}]"#)?;
/// assert_eq!((path.calls()[0].tool.as_str(), path.to_string().as_str()), ("ask_expert", "ask_expert"));
/// assert!(RunPath::default().is_root());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<PathCall>", into = "Vec<PathCall>")]
pub struct RunPath(Option<Arc<[PathCall]>>);

/// A call in a [`RunPath`], with the run that it started.
///
/// ```
/// use agent::run::PathCall;
///
/// let call: PathCall = serde_json::from_str(r#"{"call_id": "1", "tool": "ask_expert", "run_id": "run/1/tool/0"}"#)?;
/// assert_eq!((call.call_id.as_str(), &*call.run_id), ("1", "run/1/tool/0"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathCall {
    /// The id of the call, in the run that made it.
    pub call_id: String,
    /// The name of the tool.
    pub tool: String,
    /// The id of the run that the call started.
    pub run_id: Arc<str>,
}

impl RunPath {
    /// Returns whether this is the path of a root, which is a run that no call started.
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the calls, the outermost first.
    pub fn calls(&self) -> &[PathCall] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the path of the run that a call started. `self` is the path of the run that made the call.
    pub(crate) fn with(&self, call_id: &str, tool: &str, run_id: &Arc<str>) -> Self {
        let call = PathCall { call_id: call_id.into(), tool: tool.into(), run_id: run_id.clone() };
        Self(Some(self.calls().iter().cloned().chain([call]).collect()))
    }
}

impl From<Vec<PathCall>> for RunPath {
    fn from(calls: Vec<PathCall>) -> Self {
        Self((!calls.is_empty()).then(|| calls.into()))
    }
}

impl From<RunPath> for Vec<PathCall> {
    fn from(path: RunPath) -> Self {
        path.calls().to_vec()
    }
}

/// Writes the names of the tools, for example `ask_expert > book_trip`.
impl fmt::Display for RunPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, call) in self.calls().iter().enumerate() {
            write!(f, "{}{}", if at > 0 { " > " } else { "" }, call.tool)?;
        }
        Ok(())
    }
}

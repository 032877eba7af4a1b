//! Where developers keep what was recorded of other systems; none of it is in this repository. Tests that read it are ignored unless
//! they are asked for: `.ci/run full recorded`.

use std::path::PathBuf;

/// A file or folder of the recorded vectors: below `AGENT_VECTORS`, or `shared/vectors` beside the repository.
pub(crate) fn vectors(path: &str) -> PathBuf {
    find("AGENT_VECTORS", "vectors", path)
}

/// A folder of recorded traffic: below `AGENT_RECORDINGS`, or `shared/cassettes` beside the repository.
pub(crate) fn cassettes(path: &str) -> PathBuf {
    find("AGENT_RECORDINGS", "cassettes", path)
}

fn find(variable: &str, folder: &str, path: &str) -> PathBuf {
    let beside = || [env!("CARGO_MANIFEST_DIR"), "../../shared", folder].iter().collect();
    let path = std::env::var_os(variable).map_or_else(beside, PathBuf::from).join(path);
    assert!(path.exists(), "{} does not exist; set {variable}", path.display());
    path
}

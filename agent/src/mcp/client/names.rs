//! The names under which models see the tools of a server.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Returns `server__tool`, in the characters and the length that every provider accepts. The original cannot be parsed back from
/// it: both halves may contain `__`.
pub(super) fn exposed(server: &str, tool: &str, longest: usize) -> String {
    shown(&format!("{server}__{tool}"), longest)
}

/// Returns a name in those characters and that length. A hash of the whole distinguishes names that were cut.
pub(super) fn shown(name: &str, longest: usize) -> String {
    let clean: String = name.chars().map(|char| if is_letter(char) { char } else { '_' }).collect();
    if clean.len() <= longest && !clean.is_empty() {
        return clean;
    }
    hashed(&clean, name, longest)
}

/// Returns `server__tool` with a hash of the whole, for a tool whose name would be that of another one.
pub(super) fn distinct(server: &str, tool: &str, longest: usize) -> String {
    let name = format!("{server}__{tool}");
    let clean: String = name.chars().map(|char| if is_letter(char) { char } else { '_' }).collect();
    hashed(&clean, &name, longest)
}

/// Whether a tool is shown under its name as it is.
pub(super) fn is_clean(tool: &str) -> bool {
    tool.chars().all(is_letter)
}

fn hashed(clean: &str, name: &str, longest: usize) -> String {
    let mut hash = String::new();
    for byte in &Sha256::digest(name.as_bytes())[..4] {
        let _ = write!(hash, "{byte:02x}");
    }
    let kept = longest.saturating_sub(hash.len() + 1).min(clean.len());
    format!("{}_{hash}", &clean[..kept])
}

fn is_letter(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_provider_and_stay_apart() {
        assert_eq!(exposed("docs", "read_page", 64), "docs__read_page");
        assert_eq!(exposed("my docs", "a.b/ü", 64), "my_docs__a_b__");
        let long = |end: &str| exposed("server", &format!("{}{end}", "x".repeat(100)), 64);
        assert_eq!(long("a").len(), 64);
        assert_ne!(long("a"), long("b"));
        assert_eq!(shown("", 64).len(), 9);
    }
}

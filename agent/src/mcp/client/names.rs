//! The names under which models see the tools of a server.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Returns the name `server__tool`, with at most `longest` characters that every provider accepts. The name cannot be split again, because
/// both parts may contain `__`.
pub(super) fn exposed(server: &str, tool: &str, longest: usize) -> String {
    shown(&format!("{server}__{tool}"), longest)
}

/// Returns a name in at most `longest` characters, all of which every provider accepts. A name that is cut or empty gets a hash of the
/// whole name.
pub(super) fn shown(name: &str, longest: usize) -> String {
    let clean: String = name.chars().map(|char| if is_letter(char) { char } else { '_' }).collect();
    if clean.len() <= longest && !clean.is_empty() {
        return clean;
    }
    hashed(&clean, name, longest)
}

/// Maximum length of the name of a server, in characters.
const LONGEST_SERVER: usize = 24;

/// Returns the prefix of a server's tools: the distinctive words of the name that the server reports, in lower case. For example,
/// `example-servers/sequential-thinking-server` becomes `sequential_thinking`.
///
/// The prefix depends only on the reported name, so that it is the same in every program and run.
pub(super) fn server_name(reported: &str) -> String {
    // The last part is preferred, because the scope or the registry of a package precedes it.
    let parts = reported.split(['/', '\\', ':']).rev();
    let words = |part: &str| -> Vec<String> {
        let words = part.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_ascii_lowercase).collect()
    };
    let Some(all) = parts.map(words).find(|words| !words.is_empty()) else {
        return hashed("server", reported, LONGEST_SERVER);
    };
    let mut own: Vec<&String> =
        all.iter().filter(|word| !matches!(&***word, "mcp" | "server" | "servers")).collect();
    if own.is_empty() {
        own = all.iter().collect();
    }
    let mut name: String = own[0].chars().take(LONGEST_SERVER).collect();
    for word in &own[1..] {
        if name.len() + 1 + word.len() > LONGEST_SERVER {
            break;
        }
        name.push('_');
        name.push_str(word);
    }
    name
}

/// Returns `server__tool` with a hash of the original names, for tools that would have the same name without the hash.
pub(super) fn distinct(server: &str, tool: &str, longest: usize) -> String {
    let name = format!("{server}__{tool}");
    let clean: String = name.chars().map(|char| if is_letter(char) { char } else { '_' }).collect();
    hashed(&clean, &name, longest)
}

/// Returns whether a name has only characters that every provider accepts.
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
    fn names_of_servers_are_short_and_readable() {
        for (reported, name) in [
            ("docs", "docs"),
            ("MCP Server", "mcp_server"),
            ("sequential-thinking-server", "sequential_thinking"),
            ("mcp-servers/everything", "everything"),
            ("example-servers/everything", "everything"),
            ("@modelcontextprotocol/server-github", "github"),
            ("better-gitlab-mcp-server", "better_gitlab"),
            ("zereight-gitlab-mcp", "zereight_gitlab"),
            ("io.github.someone/time-server", "time"),
            ("secure-filesystem-server", "secure_filesystem"),
            ("FastMCP 2", "fastmcp_2"),
            ("a name of very many short words", "a_name_of_very_many"),
            ("Donaudampfschifffahrtsgesellschaft server", "donaudampfschifffahrtsge"),
            ("server/", "server"),
            ("mcp", "mcp"),
        ] {
            assert_eq!(server_name(reported), name);
            assert!(name.len() <= LONGEST_SERVER);
        }
        for nameless in ["", "/", "\u{6587}\u{66f8}"] {
            let name = server_name(nameless);
            assert!(name.starts_with("server_") && name.len() == 15, "{name}");
        }
        assert_ne!(server_name("/"), server_name(""));
    }

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

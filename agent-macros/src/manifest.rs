//! Finds the name that the manifest of a crate gives to the library: `ai = { package = "agent", … }`.
//!
//! Only a few keys of a few tables are read, so this is not a parser of TOML. Lines that are not understood are ignored.

use proc_macro2::Span;
use std::path::Path;
use std::{env, fs};
use syn::Ident;

const PACKAGE: &str = "agent";
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Returns the name that the user's crate gives to the library, if the `Cargo.toml` of the crate renames the library.
pub(crate) fn renamed() -> Option<Ident> {
    let folder = env::var_os("CARGO_MANIFEST_DIR")?;
    let folder = Path::new(&folder);
    let manifest = Manifest::parse(&fs::read_to_string(folder.join("Cargo.toml")).ok()?);
    let name = manifest.name_of_library(|| {
        let outer =
            folder.ancestors().filter_map(|folder| fs::read_to_string(folder.join("Cargo.toml")).ok());
        outer.map(|text| Manifest::parse(&text)).find(|manifest| manifest.is_workspace)
    })?;
    syn::parse_str::<Ident>(&name.replace('-', "_")).ok().map(|mut name| {
        name.set_span(Span::call_site());
        name
    })
}

#[derive(Default)]
struct Manifest {
    edition: Option<String>,
    is_workspace: bool,
    dependencies: Vec<Dependency>,
    /// The dependencies in `[workspace.dependencies]`.
    shared: Vec<Dependency>,
}

#[derive(Default, PartialEq, Debug)]
struct Dependency {
    key: String,
    package: Option<String>,
    /// Whether the dependency has `workspace = true`.
    is_inherited: bool,
}

impl Manifest {
    fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut table: Vec<String> = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = uncommented(line);
            if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                table = keys(header.trim_matches(['[', ']']));
                manifest.is_workspace |= table.first().is_some_and(|first| first == "workspace");
                continue;
            }
            let Some(at) = unquoted(line, '=').next() else { continue };
            let (key, value) = line.split_at(at);
            let mut value = value.trim_start_matches('=').trim().to_owned();
            if let Some(quotes) = ["\"\"\"", "'''"].into_iter().find(|quotes| value.starts_with(quotes)) {
                if !value[3..].contains(quotes) {
                    while lines.next().is_some_and(|line| !line.contains(quotes)) {}
                }
                continue;
            }
            while unquoted(&value, '[').count() > unquoted(&value, ']').count()
                || unquoted(&value, '{').count() > unquoted(&value, '}').count()
            {
                let Some(line) = lines.next() else { break };
                value.push(' ');
                value.push_str(uncommented(line));
            }
            let path: Vec<String> = table.iter().cloned().chain(keys(key)).collect();
            manifest.note(&path, &value);
        }
        manifest
    }

    fn note(&mut self, path: &[String], value: &str) {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let (list, rest) = match &words[..] {
            // An edition that is inherited from the workspace is assumed not to be 2015.
            ["package", "edition", ..] => {
                self.edition = Some(text(value).unwrap_or_default());
                return;
            }
            ["workspace", "dependencies", rest @ ..] => (&mut self.shared, rest),
            ["target", _, table, rest @ ..] | [table, rest @ ..] if TABLES.contains(table) => {
                (&mut self.dependencies, rest)
            }
            _ => return,
        };
        let Some((key, field)) = rest.split_first() else { return };
        if !list.iter().any(|known| known.key == *key) {
            list.push(Dependency { key: (*key).to_owned(), ..Dependency::default() });
        }
        let Some(dependency) = list.iter_mut().find(|known| known.key == *key) else { return };
        match field {
            [] => {
                let Some(fields) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) else {
                    return;
                };
                for field in split(fields, ',') {
                    if let Some((name, value)) = field.split_once('=') {
                        dependency.set(name.trim(), value.trim());
                    }
                }
            }
            [name, ..] => dependency.set(name, value),
        }
    }

    /// Returns the key of the only dependency with `package = "agent"`. Returns `None` if a dependency has the key `agent`.
    fn name_of_library(self, workspace: impl FnOnce() -> Option<Self>) -> Option<String> {
        // In edition 2015, `::agent` is a path in the user's crate, where `extern crate` may rename the library again.
        if self.edition.is_none_or(|edition| edition == "2015")
            || self.dependencies.iter().any(|dependency| dependency.key == PACKAGE)
        {
            return None;
        }
        let shared = if self.dependencies.iter().any(|dependency| dependency.is_inherited) {
            workspace().map(|manifest| manifest.shared).unwrap_or_default()
        } else {
            Vec::new()
        };
        let is_library = |dependency: &&Dependency| {
            let shared = || shared.iter().find(|shared| shared.key == dependency.key);
            let said = if dependency.is_inherited { shared() } else { Some(*dependency) };
            said.is_some_and(|said| said.package.as_deref() == Some(PACKAGE))
        };
        let mut found = self.dependencies.iter().filter(is_library);
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only.key.clone()),
            _ => None,
        }
    }
}

impl Dependency {
    fn set(&mut self, field: &str, value: &str) {
        match field {
            "package" => self.package = text(value),
            "workspace" => self.is_inherited = value == "true",
            _ => {}
        }
    }
}

fn text(value: &str) -> Option<String> {
    let inside = |quote| value.strip_prefix(quote)?.strip_suffix(quote).map(str::to_owned);
    inside('"').or_else(|| inside('\''))
}

fn keys(path: &str) -> Vec<String> {
    split(path, '.').map(|key| text(key.trim()).unwrap_or_else(|| key.trim().to_owned())).collect()
}

fn uncommented(line: &str) -> &str {
    unquoted(line, '#').next().map_or(line, |at| line.get(..at).unwrap_or_default()).trim()
}

/// Splits a text at each `separator` that is not in quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut from = 0;
    let ends: Vec<usize> = unquoted(text, separator).chain([text.len()]).collect();
    ends.into_iter().filter_map(move |end| {
        let part = text.get(from..end);
        from = end + separator.len_utf8();
        part
    })
}

fn unquoted(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let (mut quote, mut is_escaped) = (None, false);
    text.char_indices().filter_map(move |(at, char)| {
        match quote {
            _ if std::mem::take(&mut is_escaped) => {}
            // In single quotes, TOML has no escapes.
            Some('"') if char == '\\' => is_escaped = true,
            Some(open) if open == char => quote = None,
            None if matches!(char, '"' | '\'') => quote = Some(char),
            None if char == wanted => return Some(at),
            _ => {}
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(manifest: &str, workspace: &str) -> Option<String> {
        let manifest = format!("[package]\nname = \"x\"\nedition = \"2024\"\n{manifest}");
        Manifest::parse(&manifest).name_of_library(|| Some(Manifest::parse(workspace)))
    }

    #[test]
    fn another_name_is_found_wherever_it_is_said() {
        for manifest in [
            "[dependencies]\nai = { version = \"1\", package = \"agent\" }",
            "[dependencies]\nai = {package='agent'} # the library",
            "[dependencies]\nai.package = \"agent\"\nai.version = \"1\"",
            "[dependencies.ai]\nversion = \"1\"\npackage = \"agent\"",
            "[dev-dependencies]\n\"ai\" = { features = [\n  \"http\", # }\n], package = \"agent\" }",
            "[target.'cfg(not(windows))'.dependencies]\nserde = \"1\"\nai = { package = \"agent\" }",
            "description = \"uses \\\"[\\\" here\"\nhomepage = 'C:\\'\n[dependencies]\nai = { package = \"agent\" }",
            "[package.metadata]\nabout = \"\"\"\n[dependencies]\nagent = 1\n\"\"\"\n[dependencies]\nai = { package = \"agent\" }",
        ] {
            assert_eq!(named(manifest, "").as_deref(), Some("ai"), "{manifest}");
        }
    }

    #[test]
    fn what_a_workspace_says_is_followed() {
        let workspace = "[workspace]\nmembers = []\n[workspace.dependencies]\nai = { path = \"..\", package = \"agent\" }";
        assert_eq!(named("[dependencies]\nai.workspace = true", workspace).as_deref(), Some("ai"));
        assert_eq!(named("[dependencies]\nai = { workspace = true }", workspace).as_deref(), Some("ai"));
        assert_eq!(named("[dependencies]\nserde = { workspace = true }", workspace), None);
        for edition in ["edition.workspace = true", "edition = { workspace = true }"] {
            let manifest = format!("[package]\n{edition}\n[dependencies]\nai = {{ package = \"agent\" }}");
            assert_eq!(
                Manifest::parse(&manifest).name_of_library(|| None).as_deref(),
                Some("ai"),
                "{edition}"
            );
        }
        assert_eq!(named("[dependencies]\nai = { workspace = true }", "[workspace]"), None);
    }

    #[test]
    fn otherwise_nothing_changes() {
        for manifest in [
            "[dependencies]\nagent = \"1\"",
            "[dependencies]\nagent = \"1\"\nai = { package = \"agent\", version = \"2\" }",
            "[dependencies]\nai = { package = \"agent\" }\nother = { package = \"agent\", version = \"2\" }",
            "[dependencies]\nai = { package = \"agents\" }",
            "[features]\nai = [\"dep:agent\"]",
            "",
        ] {
            assert_eq!(named(manifest, ""), None, "{manifest}");
        }
        let old = "[package]\nname = \"x\"\n[dependencies]\nai = { package = \"agent\" }";
        assert_eq!(Manifest::parse(old).name_of_library(|| None), None, "edition 2015");
    }
}

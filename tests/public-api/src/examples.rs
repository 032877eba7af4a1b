//! Which public items have no example.
//!
//! The rule: the documentation of each public module, struct, enum, union, trait, function, macro, type alias, constant and
//! static has a code block that is Rust. It is the item's own: one on a method, or on the page of the module, does not count.
//! Fields, variants, methods and impls need none; the example of their type shows them. What is re-exported from another crate
//! is documented there, but for the macros of `agent-macros`, whose documentation stands at the re-export.

use rustdoc_types::{Crate, Id, Item, ItemEnum};
use std::collections::HashSet;

/// The public items without an example, each as kind and path, sorted.
pub fn without(krate: &Crate) -> Vec<String> {
    let mut walk = Walk { krate, seen: HashSet::new(), without: Vec::new() };
    if let Some(root) = krate.index.get(&krate.root) {
        walk.item(root, root.name.as_deref().unwrap_or_default());
    }
    walk.without.sort();
    walk.without
}

struct Walk<'a> {
    krate: &'a Crate,
    /// An item may be there under several paths; a module may be in itself.
    seen: HashSet<Id>,
    without: Vec<String>,
}

impl<'a> Walk<'a> {
    fn item(&mut self, item: &'a Item, path: &str) {
        if !self.seen.insert(item.id) {
            return;
        }
        match &item.inner {
            ItemEnum::Module(module) => {
                self.check("mod", item, path);
                self.items(&module.items, path);
            }
            ItemEnum::Use(import) => self.import(item, import, path),
            ItemEnum::Struct(_) => self.check("struct", item, path),
            ItemEnum::Enum(_) => self.check("enum", item, path),
            ItemEnum::Union(_) => self.check("union", item, path),
            ItemEnum::Trait(_) => self.check("trait", item, path),
            ItemEnum::Function(_) => self.check("fn", item, path),
            ItemEnum::Macro(_) | ItemEnum::ProcMacro(_) => self.check("macro", item, path),
            ItemEnum::TypeAlias(_) => self.check("type", item, path),
            ItemEnum::Constant { .. } => self.check("const", item, path),
            ItemEnum::Static(_) => self.check("static", item, path),
            _ => {}
        }
    }

    fn items(&mut self, ids: &'a [Id], path: &str) {
        for item in ids.iter().filter_map(|id| self.krate.index.get(id)) {
            let name = match &item.inner {
                ItemEnum::Use(import) => Some(import.name.as_str()),
                _ => item.name.as_deref(),
            };
            self.item(item, &format!("{path}::{}", name.unwrap_or_default()));
        }
    }

    fn import(&mut self, item: &'a Item, import: &'a rustdoc_types::Use, path: &str) {
        match import.id.and_then(|id| self.krate.index.get(&id)) {
            Some(Item { inner: ItemEnum::Module(module), .. }) if import.is_glob => {
                let parent = path.rsplit_once("::").map_or(path, |(parent, _)| parent);
                self.items(&module.items, parent);
            }
            Some(target) => self.item(target, path),
            None if import.source.starts_with("agent_macros::") => self.check("macro", item, path),
            None => {}
        }
    }

    fn check(&mut self, kind: &str, item: &Item, path: &str) {
        if !item.docs.as_deref().is_some_and(has_example) {
            self.without.push(format!("{kind} {path}"));
        }
    }
}

/// Whether there is a code block that rustdoc takes for Rust.
fn has_example(docs: &str) -> bool {
    let mut is_open = false;
    docs.lines().filter_map(|line| line.trim_start().strip_prefix("```")).any(|words| {
        is_open = !is_open;
        is_open && words.split(',').all(is_of_rust)
    })
}

/// Whether a word behind a fence leaves the block a Rust one; see "Documentation tests" in the rustdoc book.
fn is_of_rust(word: &str) -> bool {
    let word = word.trim();
    matches!(word, "" | "rust" | "no_run" | "should_panic" | "compile_fail") || word.starts_with("edition")
}

#[cfg(test)]
mod tests {
    use super::has_example;

    #[test]
    fn only_rust_is_an_example() {
        assert!(has_example("Text.\n\n```\nlet a = 1;\n```\n"));
        assert!(has_example("```text\nout\n```\n\n```rust,no_run\nlet a = 1;\n```\n"));
        assert!(!has_example("Text.\n```text\n{}\n```\nand `code`"));
        assert!(!has_example("```json\n{}\n```\n```sh\nls\n```"));
    }
}

//! Which public items have no example.
//!
//! The rule for items: the documentation of each public module, struct, enum, union, trait, function, macro, type alias, constant
//! and static has a code block that is Rust. It is the item's own: one on a method, or on the page of the module, does not count.
//! Fields, variants and impls need none; the example of their type shows them.
//!
//! The rule for methods: each function of an inherent impl, and each method of a trait, is called (`.name(…)`, or by its path,
//! `::name`) in a code block that is Rust on the page of its type or trait: in the documentation of the type, of one of its
//! inherent impls, or of any of its methods. Lines that readers do not see (`# …`) and comments do not count. The methods of
//! trait impls need none, and what is `#[doc(hidden)]` is not in rustdoc's JSON.
//!
//! What is re-exported from another crate is documented there, but for the macros of `agent-macros`, whose documentation stands
//! at the re-export.

use rustdoc_types::{Crate, Id, Impl, Item, ItemEnum};
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
            ItemEnum::Struct(it) => {
                self.check("struct", item, path);
                self.inherent_methods(item, &it.impls, path);
            }
            ItemEnum::Enum(it) => {
                self.check("enum", item, path);
                self.inherent_methods(item, &it.impls, path);
            }
            ItemEnum::Union(it) => {
                self.check("union", item, path);
                self.inherent_methods(item, &it.impls, path);
            }
            ItemEnum::Trait(it) => {
                self.check("trait", item, path);
                self.methods(vec![item], &it.items, path);
            }
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

    fn inherent_methods(&mut self, item: &'a Item, impls: &[Id], path: &str) {
        let (mut page, mut methods) = (vec![item], Vec::new());
        for block in self.at(impls) {
            if let ItemEnum::Impl(Impl { trait_: None, items, .. }) = &block.inner {
                page.push(block);
                methods.extend(items.iter().copied());
            }
        }
        self.methods(page, &methods, path);
    }

    /// Checks the functions among `ids`; `page` is what else stands on the page of their type.
    fn methods(&mut self, mut page: Vec<&'a Item>, ids: &[Id], path: &str) {
        let methods: Vec<&Item> =
            self.at(ids).filter(|item| matches!(item.inner, ItemEnum::Function(_))).collect();
        page.extend(&methods);
        let examples: Vec<&str> =
            page.iter().filter_map(|item| item.docs.as_deref()).flat_map(example_lines).collect();
        for name in methods.iter().filter_map(|item| item.name.as_deref()) {
            if !examples.iter().any(|line| is_called(name, line)) {
                self.without.push(format!("method {path}::{name}"));
            }
        }
    }

    fn at(&self, ids: &[Id]) -> impl Iterator<Item = &'a Item> {
        let krate = self.krate;
        ids.iter().filter_map(|id| krate.index.get(id))
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
    docs.lines().filter_map(fence).any(|words| {
        is_open = !is_open;
        is_open && words.split(',').all(is_of_rust)
    })
}

/// What a reader sees of the code blocks that rustdoc takes for Rust, without comments.
fn example_lines(docs: &str) -> Vec<&str> {
    let (mut is_open, mut is_rust, mut lines) = (false, false, Vec::new());
    for line in docs.lines() {
        if let Some(words) = fence(line) {
            is_open = !is_open;
            is_rust = is_open && words.split(',').all(is_of_rust);
        } else if is_rust {
            let line = line.trim();
            let is_hidden = line == "#" || line.starts_with("# ");
            if !is_hidden && !line.starts_with("//") {
                lines.push(line);
            }
        }
    }
    lines
}

/// What stands behind the three signs with which a code block begins or ends.
fn fence(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("```")
}

/// Whether a line of code calls `name`, or names the function by its path. A field is read without parentheses.
fn is_called(name: &str, line: &str) -> bool {
    line.match_indices(name).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_with_arguments = after.starts_with('(') || after.starts_with("::<");
        is_whole && (before.ends_with("::") || (before.ends_with('.') && is_with_arguments))
    })
}

/// Whether a word behind a fence leaves the block a Rust one; see "Documentation tests" in the rustdoc book.
fn is_of_rust(word: &str) -> bool {
    let word = word.trim();
    matches!(word, "" | "rust" | "no_run" | "should_panic" | "compile_fail") || word.starts_with("edition")
}

#[cfg(test)]
mod tests {
    use super::{example_lines, has_example, is_called};

    #[test]
    fn only_rust_is_an_example() {
        assert!(has_example("Text.\n\n```\nlet a = 1;\n```\n"));
        assert!(has_example("```text\nout\n```\n\n```rust,no_run\nlet a = 1;\n```\n"));
        assert!(!has_example("Text.\n```text\n{}\n```\nand `code`"));
        assert!(!has_example("```json\n{}\n```\n```sh\nls\n```"));
    }

    #[test]
    fn only_code_that_is_seen_shows_a_method() {
        let docs = "Call `a.b()`.\n```\n# let a = a();\n#[tool]\n// a.c();\na.d();\n#\n```\n```text\na.e()\n```\nand a.f()";
        assert_eq!(example_lines(docs), ["#[tool]", "a.d();"]);
    }

    #[test]
    fn a_call_is_one_of_that_name() {
        assert!(is_called("with", "set.with(tools)"));
        assert!(is_called("with", ".with(tools)"));
        assert!(is_called("get", "source.get::<User>()"));
        assert!(is_called("text", "parts.map(Part::text)"));
        assert!(is_called("new", "a.without(Tool::new(1))"));
        assert!(!is_called("with", "set.with_options(options)"));
        assert!(!is_called("out", "set.without(name)"));
        assert!(!is_called("text", "let text = update.text;"));
        assert!(!is_called("text", "text(1)"));
    }
}

//! What the guide quotes is what there is: messages word by word, files by their names. (Its examples are doctests.)

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are a folder of the repository")
        .to_owned()
}

/// All files below a folder whose names end like this, with their texts.
fn texts(folder: &Path, ending: &str) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(texts(&entry, ending));
        } else if entry.to_string_lossy().ends_with(ending) {
            let text = fs::read_to_string(&entry).expect("UTF-8");
            found.insert(entry, text);
        }
    }
    found
}

/// What a heading quotes, without what differs from case to case.
fn fragments(heading: &str) -> Vec<&str> {
    let words = heading.split('…').map(|part| part.trim_matches([' ', '`', ':', ';', ',', '?', '=', '#']));
    words.filter(|part| part.len() > 3).collect()
}

#[test]
fn each_message_of_the_troubleshooting_page_exists() {
    let root = root();
    let page = fs::read_to_string(root.join("agent/src/guide/troubleshooting.md")).expect("the page");
    let compiler = texts(&root.join("tests/ui/fail"), ".stderr");
    let mut library = texts(&root.join("agent/src"), ".rs");
    // A text over two lines of source is one text.
    for text in library.values_mut() {
        *text = text.split("\\\n").map(str::trim_start).collect();
    }
    let (mut corpus, mut seen, mut missing) = (&compiler, 0, Vec::new());
    for line in page.lines() {
        if let Some(section) = line.strip_prefix("# ").filter(|section| section.starts_with("While ")) {
            corpus = if section == "While compiling" { &compiler } else { &library };
        }
        let Some(heading) = line.strip_prefix("### ") else { continue };
        seen += 1;
        let fragments = fragments(heading);
        assert!(!fragments.is_empty(), "{heading:?} quotes nothing");
        let is_there = |text: &String| fragments.iter().all(|fragment| text.contains(fragment));
        if !corpus.values().any(is_there) {
            missing.push(heading);
        }
    }
    assert!(seen > 40, "only {seen} messages");
    assert!(missing.is_empty(), "no source says: {missing:#?}");
}

#[test]
fn files_that_the_pages_name_exist() {
    let root = root();
    let mut pages = texts(&root.join("agent/src/guide"), ".md");
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let path = root.join(page);
        let text = fs::read_to_string(&path).expect("a page");
        pages.insert(path, text);
    }
    let mut named = 0;
    for (page, text) in &pages {
        for word in text.split(|c: char| c.is_whitespace() || "`()[],;".contains(c)) {
            let word = word.trim_end_matches(['.', ':']);
            if word.starts_with("examples/") && word.contains('.') {
                named += 1;
                assert!(root.join(word).exists(), "{} names {word}", page.display());
            }
        }
    }
    assert!(named > 5, "only {named} files are named");
}

#[test]
fn each_example_is_built_and_named_in_the_readme() {
    let root = root();
    let manifest = fs::read_to_string(root.join("examples/Cargo.toml")).expect("a manifest");
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let names: Vec<&str> =
        manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    for name in names.iter().filter(|name| **name != "agent-examples") {
        let words = [format!("--example {name}"), format!("(examples/{name}"), format!("`{name}`")];
        assert!(
            words.iter().any(|word| readme.contains(word)),
            "the README does not name the example `{name}`"
        );
    }
    for file in texts(&root.join("examples"), ".rs").keys() {
        let relative =
            file.strip_prefix(root.join("examples")).expect("below it").to_string_lossy().into_owned();
        let is_top = !relative.contains('/') && !["lib.rs", "loopback.rs"].contains(&&*relative);
        assert!(!is_top || manifest.contains(&format!("path = \"{relative}\"")), "{relative} is not built");
    }
}

#[test]
fn each_error_of_the_page_for_coding_agents_is_one_of_the_compiler() {
    let root = root();
    let page = fs::read_to_string(root.join("agent/AGENTS.md")).expect("the page");
    let compiler = texts(&root.join("tests/ui/fail"), ".stderr");
    let quoted: Vec<&str> = page.lines().filter_map(|line| line.trim_start().strip_prefix("> ")).collect();
    assert_eq!(quoted.len(), page.matches("```compile_fail").count(), "each mistake quotes one error");
    assert_eq!(quoted.len(), 10);
    let missing: Vec<&&str> =
        quoted.iter().filter(|error| !compiler.values().any(|text| text.contains(**error))).collect();
    assert!(missing.is_empty(), "no such error: {missing:#?}");
}

#[test]
fn the_page_for_coding_agents_lists_25_names() {
    let page = fs::read_to_string(root().join("agent/AGENTS.md")).expect("the page");
    let table =
        page.split("## The 25 names").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the table");
    assert_eq!(table.lines().filter(|line| line.starts_with("| `")).count(), 25);
}

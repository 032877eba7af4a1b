//! Splits docs into sections: leaves out the sections for people, and reads the names and texts in `# Arguments`.

/// The titles of sections that are useless to a model.
const FOR_PEOPLE: [&str; 6] = ["errors", "panics", "safety", "examples", "example", "aborts"];
const OF_ARGUMENTS: [&str; 4] = ["arguments", "args", "parameters", "params"];

use super::{CodeBlock, Line};

/// Splits docs into the lines for a model, and the lines of the sections about arguments. Drops the sections in [`FOR_PEOPLE`].
pub(super) fn split(lines: &[Line]) -> (Vec<Line>, Vec<Line>) {
    enum To {
        Model,
        Arguments(usize),
        Nobody(usize),
    }
    let (mut told, mut arguments) = (Vec::new(), Vec::new());
    let (mut to, mut block) = (To::Model, CodeBlock::default());
    for line in lines {
        let known = match line {
            Line::Known(line) => line.as_str(),
            Line::Constant(_) => "",
        };
        if let (false, Some((level, title))) = (block.holds(known), heading(known)) {
            let ends = match to {
                To::Model => true,
                To::Arguments(outer) | To::Nobody(outer) => level <= outer,
            };
            if ends {
                to = if OF_ARGUMENTS.contains(&title.as_str()) {
                    To::Arguments(level)
                } else if FOR_PEOPLE.contains(&title.as_str()) {
                    To::Nobody(level)
                } else {
                    To::Model
                };
                if !matches!(to, To::Model) {
                    continue;
                }
            }
        }
        match to {
            To::Model => told.push(line.clone()),
            To::Arguments(_) => arguments.push(line.clone()),
            To::Nobody(_) => {}
        }
    }
    (told, arguments)
}

fn heading(line: &str) -> Option<(usize, String)> {
    let text = line.trim_start();
    super::is_heading(text).then(|| {
        let title = text.trim_start_matches('#');
        (text.len() - title.len(), title.trim().trim_end_matches([':', '#']).trim().to_lowercase())
    })
}

/// Reads lists of the form `` * `name` - text ``. Returns each name with the lines of its text.
pub(super) fn listed(lines: &[String]) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut indent = None;
    for line in lines {
        let own = line.len() - line.trim_start().len();
        let item = super::is_list_item(line.trim_start()) && own <= *indent.get_or_insert(own);
        match item.then(|| entry(line)).flatten() {
            Some((name, text)) => found.push((name, vec![text])),
            // An item without a name ends the text of the previous name.
            None if item => found.push((String::new(), Vec::new())),
            None => {
                if let Some((_, text)) = found.last_mut() {
                    text.push(line.trim().to_owned());
                }
            }
        }
    }
    found.retain(|(name, _)| !name.is_empty());
    found
}

fn entry(line: &str) -> Option<(String, String)> {
    let text = line.trim_start().split_once(' ')?.1.trim_start();
    let text = text.trim_start_matches(['`', '*']);
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start_matches(['`', '*']).trim_start();
    // The forms are `name (u32): text`, `name: text` and `name - text`.
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest,
    };
    let said = rest.trim_start_matches(['-', ':', '–', '—', '=']);
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (is_name && said.len() < rest.len()).then(|| (name.to_owned(), said.trim_start().to_owned()))
}

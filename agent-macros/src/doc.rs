//! Doc comments as text for a model.
//!
//! Lines of a paragraph are joined by one space; a blank line between paragraphs stays one line break. What is
//! Markdown by its line breaks keeps them: list items, table rows, headings, quotes, code. Sections for people and
//! links that only rustdoc can follow are left out.

mod links;
mod sections;

use crate::diag::Errors;
use crate::grammar::string_of;
use crate::tool::attr::Doc;
use syn::{Attribute, Meta};

/// The text of the doc comments among `attrs` for a model; `None` when there is none, or nothing in it.
///
/// `#[doc = include_str!(…)]` and the like cannot be read by a macro and are noted as errors.
pub(crate) fn description(attrs: &[Attribute], errors: &mut Errors) -> Option<String> {
    text(&sections::split(&lines(attrs, errors)).0)
}

/// What the doc comments of a tool say.
#[derive(Debug, Default)]
pub(crate) struct Docs {
    pub(crate) description: Option<String>,
    /// The entries of `# Arguments`.
    pub(crate) arguments: Vec<(String, String)>,
}

/// The docs of a tool: as much of them as `doc` asks for.
pub(crate) fn of_tool(attrs: &[Attribute], doc: Doc, errors: &mut Errors) -> Docs {
    let lines = lines(attrs, errors);
    let (told, listed) = sections::split(&lines);
    let description = match doc {
        Doc::ForModels => text(&told),
        Doc::Summary => {
            let first = told.iter().skip_while(|line| line.is_empty());
            text(&first.take_while(|line| !line.is_empty()).cloned().collect::<Vec<_>>())
        }
        Doc::All => text(&lines),
        Doc::Nothing => None,
    };
    let arguments = sections::listed(&listed).into_iter();
    let arguments = arguments.filter_map(|(name, lines)| Some((name, text(&lines)?)));
    Docs { description, arguments: arguments.collect() }
}

fn lines(attrs: &[Attribute], errors: &mut Errors) -> Vec<String> {
    let mut lines = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("doc")) {
        // `#[doc(hidden)]` and its kind are no text.
        let Meta::NameValue(pair) = &attr.meta else { continue };
        match string_of(&pair.value) {
            Some(text) => lines.extend(fragment(&text.value())),
            None => errors.at(
                &pair.value,
                "a macro cannot read this text: write it as a doc comment, or as `description = \"…\"`",
            ),
        }
    }
    lines
}

fn text(lines: &[String]) -> Option<String> {
    let text = normalise(&links::flattened(lines));
    (!text.is_empty()).then_some(text)
}

/// Whether the line opens or closes a code block.
fn is_fence(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("```") || text.starts_with("~~~")
}

/// The lines of one doc attribute, without a block comment's column of stars and without its indentation.
fn fragment(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let Some((first, rest)) = lines.split_first() else { return vec![String::new()] };
    let starred = rest.iter().any(|line| !line.trim().is_empty())
        && rest.iter().filter(|line| !line.trim().is_empty()).all(|line| line.trim_start().starts_with('*'));
    let rest: Vec<&str> = if starred {
        rest.iter().map(|line| line.trim_start().strip_prefix('*').unwrap_or_default()).collect()
    } else {
        rest.to_vec()
    };
    let indent = |line: &&&str| line.len() - line.trim_start().len();
    let common =
        rest.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(&line)).min().unwrap_or(0);
    // `/// text`: one space belongs to the comment, what is more is the text's own.
    let mut out = vec![first.strip_prefix(' ').unwrap_or(first).trim_end().to_owned()];
    out.extend(rest.iter().map(|line| line.get(common..).unwrap_or_default().trim_end().to_owned()));
    out
}

/// How a line stands in its surroundings.
enum Line<'a> {
    Blank,
    /// Opens or closes a code block.
    Fence,
    /// Keeps the break before it; text may follow on the next line.
    Item(&'a str),
    /// Keeps the breaks on both sides.
    Alone(&'a str),
    Text(&'a str),
}

fn classify(line: &str) -> Line<'_> {
    let text = line.trim_start();
    if text.is_empty() {
        Line::Blank
    } else if is_fence(text) {
        Line::Fence
    } else if is_list_item(text) {
        Line::Item(line)
    } else if text.starts_with('|') || text.starts_with('>') || is_heading(text) {
        Line::Alone(line)
    } else {
        Line::Text(text)
    }
}

fn is_list_item(text: &str) -> bool {
    if ["- ", "* ", "+ "].iter().any(|bullet| text.starts_with(bullet)) {
        return true;
    }
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - after.len();
    (1..=9).contains(&digits) && (after.starts_with(". ") || after.starts_with(") "))
}

fn is_heading(text: &str) -> bool {
    let after = text.trim_start_matches('#');
    (1..=6).contains(&(text.len() - after.len())) && (after.is_empty() || after.starts_with(' '))
}

fn normalise(lines: &[String]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut fence: Option<String> = None;
    let mut open = false; // the last line of `out` may be continued
    let mut after_blank = true;
    for line in lines {
        if let Some(mark) = &fence {
            let closes = line.trim().starts_with(mark.as_str());
            out.push(line.clone());
            if closes {
                fence = None;
            }
            after_blank = false;
            continue;
        }
        let blank_before = std::mem::replace(&mut after_blank, false);
        match classify(line) {
            Line::Blank => (open, after_blank) = (false, true),
            Line::Fence => {
                let mark: String = line.trim().chars().take_while(|c| matches!(c, '`' | '~')).collect();
                (fence, open) = (Some(mark), false);
                out.push(line.clone());
            }
            Line::Item(item) => {
                out.push(item.to_owned());
                open = true;
            }
            Line::Alone(text) => {
                out.push(text.to_owned());
                open = false;
            }
            // Indented code: four spaces after a blank line.
            Line::Text(_) if blank_before && !out.is_empty() && line.starts_with("    ") => {
                out.push(line.clone());
                (open, after_blank) = (false, true);
            }
            Line::Text(text) => match out.last_mut() {
                Some(last) if open => {
                    last.push(' ');
                    last.push_str(text.trim_end());
                }
                _ => {
                    out.push(text.trim_end().to_owned());
                    open = true;
                }
            },
        }
    }
    out.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests;

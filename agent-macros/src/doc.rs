//! Converts doc comments to text for a model.
//!
//! Lines of a paragraph are joined by one space; a blank line between paragraphs becomes one line break. Line breaks that have a meaning
//! in Markdown are kept: those of list items, table rows, headings, quotes and code. Sections for people are left out, and links that only
//! rustdoc can follow become their texts.

mod links;
mod sections;
mod text;

pub(crate) use self::text::{Piece, Text, of_expr};

use self::links::References;
use crate::diag::Errors;
use crate::tool::attr::Doc;
use syn::{Attribute, Expr, Meta};

#[derive(Clone)]
enum Line {
    Known(String),
    /// A text that only the compiler can evaluate, such as `#[doc = include_str!(…)]`. The text is used unchanged, with all its sections.
    Constant(Box<Expr>),
}

/// Returns the text of the doc comments in `attrs` for a model, or `None` if there is no such text.
pub(crate) fn description(attrs: &[Attribute], errors: &mut Errors) -> Option<Text> {
    let lines = lines(attrs, errors);
    composed(&sections::split(&lines).0, &links::references(&lines))
}

#[derive(Default)]
pub(crate) struct Docs {
    pub(crate) description: Option<Text>,
    pub(crate) arguments: Vec<(String, String)>,
}

/// Returns the docs of a tool. `doc` selects the part that is the description.
pub(crate) fn of_tool(attrs: &[Attribute], doc: Doc, errors: &mut Errors) -> Docs {
    let lines = lines(attrs, errors);
    let (told, listed) = sections::split(&lines);
    let references = links::references(&lines);
    let is_empty = |line: &Line| matches!(line, Line::Known(text) if text.is_empty());
    let description = match doc {
        Doc::ForModels => composed(&told, &references),
        Doc::Summary => {
            let first = told.iter().skip_while(|line| is_empty(line));
            let first: Vec<Line> = first.take_while(|line| !is_empty(line)).cloned().collect();
            if let Some(Line::Constant(text)) = first.iter().find(|line| matches!(line, Line::Constant(_))) {
                errors.at(
                    text,
                    "where the first paragraph of this text ends is not known while the macro expands: write the summary \
                     as a doc comment in front of it, and an empty line `///`, or leave `doc = \"summary\"` out",
                );
            }
            composed(&first, &references)
        }
        Doc::All => composed(&lines, &references),
        Doc::Nothing => None,
    };
    // A constant is not known while the macro expands, so lists in it describe no parameters.
    let listed: Vec<String> = listed
        .into_iter()
        .filter_map(|line| match line {
            Line::Known(text) => Some(text),
            Line::Constant(_) => None,
        })
        .collect();
    let arguments = sections::listed(&listed).into_iter();
    let arguments = arguments.filter_map(|(name, lines)| Some((name, text(&lines, &references)?)));
    Docs { description, arguments: arguments.collect() }
}

fn lines(attrs: &[Attribute], errors: &mut Errors) -> Vec<Line> {
    let mut lines = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("doc")) {
        // `#[doc(hidden)]` and other lists in `doc` are not text.
        let Meta::NameValue(pair) = &attr.meta else { continue };
        match of_expr(&pair.value, "doc", errors) {
            Some(Piece::Known(text)) => lines.extend(fragment(&text).into_iter().map(Line::Known)),
            Some(Piece::Constant(text)) => lines.push(Line::Constant(text)),
            None => {}
        }
    }
    lines
}

fn composed(lines: &[Line], references: &References) -> Option<Text> {
    let mut pieces = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for line in lines {
        match line {
            Line::Known(line) => known.push(line.clone()),
            Line::Constant(constant) => {
                pieces.extend(text(&std::mem::take(&mut known), references).map(Piece::Known));
                pieces.push(Piece::Constant(constant.clone()));
            }
        }
    }
    let last = text(&known, references);
    if pieces.is_empty() {
        return last.map(Text::Known);
    }
    pieces.extend(last.map(Piece::Known));
    Some(Text::Composed(pieces))
}

fn text(lines: &[String], references: &References) -> Option<String> {
    let text = normalise(&links::flattened(lines, references));
    (!text.is_empty()).then_some(text)
}

/// Follows the lines of a text, and finds those of code blocks.
#[derive(Default)]
struct CodeBlock {
    /// The fence that opened the code block that contains the current line. Other fences do not close it.
    fence: Option<String>,
    /// Whether the last line is blank or indented code.
    after_blank: bool,
    /// The column at which the text of the current list item begins. Indented code in the item is indented from there.
    item: usize,
}

impl CodeBlock {
    fn holds(&mut self, line: &str) -> bool {
        let text = line.trim();
        if let Some(mark) = &self.fence {
            if text.len() >= mark.len() && text.chars().all(|c| mark.starts_with(c)) {
                self.fence = None;
            }
            return true;
        }
        if text.is_empty() {
            self.after_blank = true;
            return false;
        }
        let after_blank = std::mem::take(&mut self.after_blank);
        let indent = line.len() - line.trim_start_matches(' ').len();
        if after_blank && indent >= self.item + 4 {
            self.after_blank = true;
            return true;
        }
        if is_list_item(text) {
            let own = text.split_once(' ').map_or(text, |(_, own)| own.trim_start());
            self.item = line.trim_end().len() - own.len();
        } else if after_blank || is_heading(text) {
            self.item = self.item.min(indent);
        }
        // Three backticks begin a code span instead of a code block if a further backtick follows in the same line.
        let opens = text.starts_with("~~~")
            || (text.starts_with("```") && !text.trim_start_matches('`').contains('`'));
        if opens {
            self.fence = Some(text.chars().take_while(|c| text.starts_with(*c)).collect());
        }
        opens
    }
}

/// Returns the lines of one doc attribute, without the column of stars and the indentation of a block comment. A macro gets a doc comment
/// as an attribute, too. Stars are removed only from a text that begins with white space, as the text of a comment usually does.
fn fragment(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let Some((first, rest)) = lines.split_first() else { return vec![String::new()] };
    let starred = text.starts_with(char::is_whitespace)
        && rest.iter().any(|line| !line.trim().is_empty())
        && rest.iter().filter(|line| !line.trim().is_empty()).all(|line| line.trim_start().starts_with('*'));
    let rest: Vec<&str> = if starred {
        rest.iter().map(|line| line.trim_start().strip_prefix('*').unwrap_or_default()).collect()
    } else {
        rest.to_vec()
    };
    // Only spaces and tabs, of one byte each, are indentation, so `common` ends between characters in each line.
    let indent = |line: &&&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let common =
        rest.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(&line)).min().unwrap_or(0);
    // In `/// text`, the first space belongs to the comment, and further spaces to the text.
    let mut out = vec![first.strip_prefix(' ').unwrap_or(first).trim_end().to_owned()];
    out.extend(rest.iter().map(|line| line.get(common..).unwrap_or_default().trim_end().to_owned()));
    out
}

enum Markdown<'a> {
    Blank,
    /// A list item. The next line may continue its text.
    Item(&'a str),
    /// A line of its own, such as a heading or a row of a table.
    Alone(&'a str),
    Text(&'a str),
}

fn classify(line: &str) -> Markdown<'_> {
    let text = line.trim_start();
    if text.is_empty() {
        Markdown::Blank
    } else if is_list_item(text) {
        Markdown::Item(line)
    } else if text.starts_with('|') || text.starts_with('>') || is_heading(text) {
        Markdown::Alone(line)
    } else {
        Markdown::Text(text)
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
    let mut block = CodeBlock::default();
    let mut open = false; // the last line of `out` may be continued
    let mut after_blank = true;
    for line in lines {
        if block.holds(line) {
            out.push(line.clone());
            (open, after_blank) = (false, false);
            continue;
        }
        let blank_before = std::mem::replace(&mut after_blank, false);
        match classify(line) {
            Markdown::Blank => (open, after_blank) = (false, true),
            Markdown::Item(item) => {
                out.push(item.to_owned());
                open = true;
            }
            Markdown::Alone(text) => {
                out.push(text.to_owned());
                open = false;
            }
            // A further paragraph of a list item stays in it.
            Markdown::Text(_) if blank_before && !out.is_empty() && line.starts_with("    ") => {
                out.push(line.clone());
                (open, after_blank) = (false, true);
            }
            Markdown::Text(text) => match out.last_mut() {
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

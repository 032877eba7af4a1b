//! Makes texts that match a regular expression.

use crate::args::plan::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};

const MAX_LENGTH: usize = 200;
const MAX_DEPTH: usize = 64;

/// Returns a short text that matches the pattern. May fail, because only one text is tried. With `more`, an optional part occurs once
/// instead of not at all.
pub(super) fn matching(pattern: &Pattern, more: bool) -> Option<String> {
    let hir = regex_syntax::Parser::new().parse(pattern.translated()).ok()?;
    let mut out = String::new();
    push(&hir, more, &mut out, 0)?;
    // Assertions such as `\b` were ignored, so it is not certain that the text matches.
    pattern.is_match(&out).then_some(out)
}

fn push(hir: &Hir, more: bool, out: &mut String, depth: usize) -> Option<()> {
    if out.len() > MAX_LENGTH || depth > MAX_DEPTH {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(member(class)?),
        HirKind::Repetition(repetition) => {
            let wanted = if more { repetition.min.max(1) } else { repetition.min };
            for _ in 0..wanted.min(repetition.max.unwrap_or(wanted)) {
                push(&repetition.sub, more, out, depth + 1)?;
            }
        }
        HirKind::Capture(capture) => push(&capture.sub, more, out, depth + 1)?,
        HirKind::Concat(parts) => {
            for part in parts {
                push(part, more, out, depth + 1)?;
            }
        }
        HirKind::Alternation(ways) => push(ways.first()?, more, out, depth + 1)?,
    }
    Some(())
}

/// Returns a character of a class, a readable one if possible.
fn member(class: &Class) -> Option<char> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class.iter().map(|r| (u32::from(r.start()), u32::from(r.end()))).collect(),
        Class::Bytes(class) => class.iter().map(|r| (u32::from(r.start()), u32::from(r.end()))).collect(),
    };
    let has = |c: &char| ranges.iter().any(|(start, end)| (*start..=*end).contains(&u32::from(*c)));
    let first = || ranges.first().and_then(|(start, _)| char::from_u32(*start));
    ['a', 'A', '1'].into_iter().find(has).or_else(first)
}

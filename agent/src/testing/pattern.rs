//! Generates text that matches a regular expression.

use super::choices::Choices;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Maximum number of repetitions in addition to the minimum.
const MORE: u32 = 3;
const MAX_LENGTH: usize = 2_000;

/// Returns a text that usually matches `pattern`, or `None` if the pattern is invalid, a part of it matches no text, or the text would be
/// too long. Assertions in the pattern are ignored, so the result must be checked.
pub(super) fn matching(pattern: &str, choices: &mut Choices) -> Option<String> {
    let hir = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut out = String::new();
    push(&hir, choices, &mut out)?;
    Some(out)
}

fn push(hir: &Hir, choices: &mut Choices, out: &mut String) -> Option<()> {
    if out.len() > MAX_LENGTH {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(member(class, choices)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX).min(repetition.min.saturating_add(MORE));
            let spread = usize::try_from(most.saturating_sub(repetition.min)).ok()?;
            // Choice 0 is one repetition more than the minimum, because a text with one repetition is more useful than an empty text.
            let more = match choices.pick(spread + 1) {
                0 => spread.min(1),
                1 => 0,
                n => n,
            };
            for _ in 0..usize::try_from(repetition.min).ok()?.saturating_add(more) {
                push(&repetition.sub, choices, out)?;
            }
        }
        HirKind::Capture(capture) => push(&capture.sub, choices, out)?,
        HirKind::Concat(parts) => {
            for part in parts {
                push(part, choices, out)?;
            }
        }
        HirKind::Alternation(ways) => push(ways.get(choices.pick(ways.len()))?, choices, out)?,
    }
    Some(())
}

fn member(class: &Class, choices: &mut Choices) -> Option<char> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|r| (u32::from(r.start()), u32::from(r.end()))).collect()
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|r| (u32::from(r.start()), u32::from(r.end()))).collect()
        }
    };
    // Only the first six ranges of a large class are used. For `\w`, the first four of them are ASCII.
    let (start, end) = *ranges.get(choices.pick(ranges.len().min(6)))?;
    // The letter `a` is preferred, because it is easier to read in a report.
    let start = if (start..=end).contains(&u32::from('a')) { u32::from('a') } else { start };
    let spread = usize::try_from(end - start).ok()?.min(9);
    char::from_u32(start + u32::try_from(choices.pick(spread + 1)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_texts_match() {
        for pattern in
            [r"^[a-z]{2,5}-\d+$", "^(GET|POST) /[^ ]*$", "abc|x?", r"^\p{Lu}\w*$", r"^-?\d+(\.\d{1,2})?$"]
        {
            let regex = regex::Regex::new(pattern).ok();
            let mut made = std::collections::HashSet::new();
            for seed in 0..50 {
                let text = matching(pattern, &mut Choices::random(seed));
                let fits =
                    regex.as_ref().zip(text.as_ref()).is_some_and(|(regex, text)| regex.is_match(text));
                assert!(fits, "{pattern} {text:?}");
                made.insert(text);
            }
            assert!(made.len() > 2, "{pattern} {made:?}");
        }
    }
}

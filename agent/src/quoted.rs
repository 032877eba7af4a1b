//! The forms that a text takes in a JSON string, also if the JSON is itself quoted in a JSON string.

use std::fmt::Write as _;

/// Maximum number of levels of JSON in JSON. An example with four levels: arguments in a message, in a request, in the body of an error, in
/// the body of a proxy's error.
const MAX_QUOTED: usize = 4;

/// The characters that a serializer escapes, although JSON does not require these escapes.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the fields are independent")]
struct EscapeStyle {
    /// Whether every character beyond ASCII is escaped, as in Python and PHP.
    ascii: bool,
    slash: bool,
    /// Whether `<`, `>` and `&` are escaped, as in Go.
    html: bool,
    /// Whether code points are written with capital hexadecimal digits (`\u00E4`), as in .NET. In this style, `"`, `'`, `+` and the
    /// backquote are written as code points, too.
    capitals: bool,
}

const PYTHON: EscapeStyle = EscapeStyle { ascii: true, slash: false, html: false, capitals: false };
const PHP: EscapeStyle = EscapeStyle { ascii: true, slash: true, html: false, capitals: false };
const GO: EscapeStyle = EscapeStyle { ascii: false, slash: false, html: true, capitals: false };
const DOTNET: EscapeStyle = EscapeStyle { ascii: true, slash: false, html: true, capitals: true };
const PLAIN: EscapeStyle = EscapeStyle { ascii: false, slash: false, html: false, capitals: false };

/// Returns all forms in which a secret has to be masked, the longest first: the text itself, and the text as each [`EscapeStyle`] writes
/// it in a JSON string. The string may be quoted in further JSON strings, up to [`MAX_QUOTED`] levels.
pub(crate) fn quoted_forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    let outside = [PYTHON, PHP, GO, DOTNET].map(|outer| (PLAIN, outer));
    let styles = [(PLAIN, PLAIN), (PYTHON, PLAIN), (PHP, PLAIN), (PHP, PHP), (GO, PLAIN), (DOTNET, PLAIN)];
    for (inner, outer) in styles.into_iter().chain(outside) {
        let mut form = escaped(text, inner);
        for _ in 0..MAX_QUOTED {
            let again = escaped(&form, outer);
            let is_same = again == form;
            forms.push(std::mem::replace(&mut form, again));
            if is_same {
                break;
            }
        }
    }
    forms.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms
}

fn escaped(text: &str, style: EscapeStyle) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '"' if style.capitals => out.push_str("\\u0022"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if style.slash => out.push_str("\\/"),
            _ if char < ' '
                || style.ascii && !char.is_ascii()
                // PHP does not escape U+007F.
                || style.ascii && !style.slash && char == '\u{7f}'
                || style.html && matches!(char, '<' | '>' | '&')
                || style.capitals && matches!(char, '\'' | '+' | '`') =>
            {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = if style.capitals {
                        write!(out, "\\u{unit:04X}")
                    } else {
                        write!(out, "\\u{unit:04x}")
                    };
                }
            }
            _ => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_as_the_text() {
        for text in ["plain", "a\"b\\c", "tab\tnull\0", "p\u{e4}ss/<&>'+`", "\u{1F980}", ""] {
            let forms = quoted_forms(text);
            assert!(forms.contains(&text.to_owned()), "{text:?}");
            let read = |form: &str| serde_json::from_str::<String>(&format!("\"{form}\"")).ok();
            for form in forms.iter().filter(|form| **form != text) {
                let read_once = read(form);
                let mut all = std::iter::successors(read_once, |form| read(form)).take(MAX_QUOTED);
                assert!(all.any(|read| read == text), "{text:?}: {form}");
            }
        }
        let json = serde_json::to_string("a\"b\\c\n").unwrap();
        assert!(quoted_forms("a\"b\\c\n").iter().any(|form| json == format!("\"{form}\"")));
        assert!(quoted_forms("p\u{e4}ss").contains(&"p\\u00e4ss".to_owned()));
        assert!(quoted_forms("a/b").contains(&r"a\\\/b".to_owned()), "PHP in PHP");
        let plain_in_python = r#"p\u00e4\\\"ss"#.to_owned();
        assert!(quoted_forms("p\u{e4}\"ss").contains(&plain_in_python));
        assert!(quoted_forms("a\u{7f}").contains(&r"a\u007f".to_owned()));
        assert_eq!(quoted_forms("sk-1"), ["sk-1"], "what needs no escapes has one form");
    }
}

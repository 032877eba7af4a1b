//! Names of tools.

use crate::diag::Errors;
use proc_macro2::Ident;
use syn::LitStr;
use syn::ext::IdentExt;

/// Maximum length of a name that every provider accepts.
const LONGEST: usize = 64;

/// Converts a name to snake case: `HTTPServer` → `http_server`, `GetWeatherTool` → `get_weather_tool`.
pub(crate) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (at, c) in chars.iter().enumerate() {
        if c.is_uppercase() {
            let before = at.checked_sub(1).and_then(|before| chars.get(before));
            let starts_word = match before {
                None | Some('_') => false,
                Some(before) if !before.is_uppercase() => true,
                Some(_) => chars.get(at + 1).is_some_and(|next| next.is_lowercase()),
            };
            if starts_word {
                out.push('_');
            }
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Returns the name in `name = "…"`, or else the name of the item, in snake case if `snake` is set. Reports a name that tools cannot have.
pub(crate) fn tool_name(given: Option<&LitStr>, item: &Ident, snake: bool, errors: &mut Errors) -> LitStr {
    let own = || {
        let name = item.unraw().to_string();
        LitStr::new(&if snake { snake_case(&name) } else { name }, item.span())
    };
    let name = given.cloned().unwrap_or_else(own);
    if let Some(problem) = problem(&name.value()) {
        let advice = if given.is_some() { "" } else { "; write `name = \"…\"`" };
        let value = name.value();
        let problem = if value.is_empty() {
            problem.to_owned()
        } else {
            format!("a tool cannot be named `{value}`: {problem}")
        };
        errors.at(&name, format!("{problem}{advice}"));
    }
    name
}

fn problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("the name of a tool cannot be empty: write it, or remove the option")
    } else if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
        Some("providers accept only letters `a-z` and `A-Z`, digits, `_` and `-`")
    } else if name.len() > LONGEST {
        Some("providers accept at most 64 characters")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_snake_case() {
        for (name, expected) in [
            ("GetWeatherTool", "get_weather_tool"),
            ("HTTPServer", "http_server"),
            ("AddNumbers", "add_numbers"),
            ("A", "a"),
            ("AB", "ab"),
            ("Base64Encode", "base64_encode"),
            ("V2API", "v2_api"),
            ("Already_Snake", "already_snake"),
            ("XMLToJSON", "xml_to_json"),
            ("Größe", "größe"),
        ] {
            assert_eq!(snake_case(name), expected);
        }
    }

    #[test]
    fn names_are_what_providers_take() {
        assert_eq!(problem("get-weather_2"), None);
        assert_eq!(problem(&"a".repeat(64)), None);
        assert!(problem(&"a".repeat(65)).is_some());
        assert!(problem(&"ö".repeat(40)).is_some_and(|problem| problem.contains("only letters")));
        for bad in ["", "a b", "a.b", "größe", "a/b"] {
            assert!(problem(bad).is_some(), "{bad}");
        }
    }
}

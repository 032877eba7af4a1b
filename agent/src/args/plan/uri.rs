//! Resolves URI references against a base URI (RFC 3986, section 5.2). Nothing is fetched.

pub(super) fn split(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (reference, None),
    }
}

/// Resolves `reference`, which has no fragment, against `base`.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    if reference.is_empty() {
        return base.to_owned();
    }
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let prefix = scheme(base).map_or("", |scheme| &base[..=scheme.len()]);
    let rest = &base[prefix.len()..];
    if reference.starts_with("//") {
        return format!("{prefix}{reference}");
    }
    let authority = match rest.strip_prefix("//") {
        Some(after) => &rest[..2 + after.find(['/', '?']).unwrap_or(after.len())],
        None => "",
    };
    let base_path = rest[authority.len()..].split('?').next().unwrap_or_default();
    if reference.starts_with('?') {
        return format!("{prefix}{authority}{base_path}{reference}");
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (reference, String::new()),
    };
    let merged = if path.starts_with('/') {
        path.to_owned()
    } else if base_path.is_empty() && !authority.is_empty() {
        format!("/{path}")
    } else {
        let folder = base_path.rfind('/').map_or("", |end| &base_path[..=end]);
        format!("{folder}{path}")
    };
    format!("{prefix}{authority}{}{query}", without_dots(&merged))
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let mut chars = scheme.chars();
    (chars.next()?.is_ascii_alphabetic() && chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
        .then_some(scheme)
}

fn without_dots(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let last = path.rsplit('/').next().unwrap_or_default();
    for segment in path.split('/') {
        match segment {
            ".." if out.len() > 1 || out.first().is_some_and(|first| !first.is_empty()) => {
                out.pop();
            }
            "." | ".." => {}
            segment => out.push(segment),
        }
    }
    if matches!(last, "." | "..") {
        out.push("");
    }
    out.join("/")
}

#[cfg(test)]
mod tests {
    use super::{resolve, split};

    #[test]
    fn references_are_resolved() {
        // RFC 3986, 5.4.
        let base = "http://a/b/c/d;p?q";
        for (reference, want) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
        ] {
            assert_eq!(resolve(base, reference), want, "{reference}");
        }
        assert_eq!(resolve("", "item.json"), "item.json");
        assert_eq!(resolve("http://a", "b"), "http://a/b");
        assert_eq!(resolve("urn:uuid:1", ""), "urn:uuid:1");
        assert_eq!(split("a#b"), ("a", Some("b")));
    }
}

//! URLs as errors, logs and `Debug` texts show them: scheme, host, port, and the path segments that are ordinary words. User names,
//! passwords and queries may be secret. Some servers also take a token in the path.

const UNREADABLE: &str = "[no readable URL]";

const HIDDEN: &str = "…";

/// The path segments that are shown, besides empty ones and versions such as `v1`. Every other segment is replaced by [`HIDDEN`].
const WORDS: [&str; 20] = [
    "anthropic",
    "api",
    "beta",
    "chat",
    "compatible-mode",
    "completions",
    "count_tokens",
    "deployments",
    "embeddings",
    "inference",
    "mcp",
    "messages",
    "model",
    "models",
    "openai",
    "rerank",
    "responses",
    "restate",
    "sse",
    "x",
];

/// Returns the address without parts that may be secret.
pub(crate) fn shown_address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // A missing scheme is the most common mistake. A text without a scheme is shown only if it begins with `localhost:PORT` or
        // `IPV4:PORT`, because any other text may be a secret.
        let shown = shown_address(&format!("http://{url}"));
        let shown = shown.strip_prefix("http://").filter(|_| is_numeric(url));
        return shown.unwrap_or(UNREADABLE).to_owned();
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    // A password that is not encoded may contain `/`, `?`, `#` or `\`. The text between such a character and a later `@` may therefore be a
    // password, so no part of the address is shown.
    if !is_scheme(scheme) || rest.contains('@') {
        return UNREADABLE.to_owned();
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    if !is_host(host) {
        return UNREADABLE.to_owned();
    }
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').map(|part| if is_word(part) { part } else { HIDDEN }).collect();
    format!("{scheme}://{host}{}", parts.join("/"))
}

/// Returns whether the text begins with `localhost` or an IPv4 address, followed by a port.
fn is_numeric(url: &str) -> bool {
    let host = url.split(['/', '?', '#']).next().unwrap_or_default();
    host.split_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (host == "localhost" || host.parse::<std::net::Ipv4Addr>().is_ok())
    })
}

fn is_scheme(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'+';
    (1..=10).contains(&text.len()) && text.bytes().all(is_letter)
}

/// Returns whether the text has the form `name`, `name:port`, `[address]` or `[address]:port`.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, port))
            if host.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.') =>
        {
            (host, port)
        }
        Some(_) => return false,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let is_port =
        |port: &str| (2..=6).contains(&port.len()) && port.bytes().skip(1).all(|byte| byte.is_ascii_digit());
    !host.is_empty()
        && host.bytes().all(is_name)
        && (port.is_empty() || (port.starts_with(':') && is_port(port)))
}

/// Returns whether a path segment is shown: an empty one, one of [`WORDS`], or a version such as `v1` or `v1beta2`.
pub(crate) fn is_word(part: &str) -> bool {
    let is_version = |rest: &str| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = rest.strip_prefix("alpha").or_else(|| rest.strip_prefix("beta")).unwrap_or(rest);
        rest.bytes().all(|byte| byte.is_ascii_digit())
    };
    let begins_as_version = |part: &str| {
        part.len() <= 9
            && part
                .strip_prefix('v')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && is_version(rest))
    };
    part.is_empty() || WORDS.contains(&part) || begins_as_version(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_addresses_have_no_secrets() {
        for (url, expected) in [
            ("https://u:pw@a.example/v1/x?key=k#f", "https://a.example/v1/x"),
            ("http://a.example?key=k", "http://a.example"),
            ("http://127.0.0.1:80/mcp/", "http://127.0.0.1:80/mcp/"),
            ("http://[::1]:80/v1beta/models", "http://[::1]:80/v1beta/models"),
            ("https://a.example/api/t0ken/v1", "https://a.example/api/…/v1"),
            ("https://a.example/tulip", "https://a.example/…"),
            ("https://a.example/v1secret", "https://a.example/…"),
            ("https://a.example/v1/models/gemini-2:stream", "https://a.example/v1/models/…"),
            ("https://u:p@ss@a.example/v1", "https://a.example/v1"),
            ("127.0.0.1:8080/mcp?key=k", "127.0.0.1:8080/mcp"),
            ("localhost:8080/tulip", "localhost:8080/…"),
        ] {
            assert_eq!(shown_address(url), expected);
        }
        for url in [
            "nonsense?key=k",
            "user:pw@a.example/v1",
            "pw",
            "a.example:80/v1",
            "127.0.0.1:80@a.example/v1",
            "localhost",
            "https://u:p/w@a.example/v1",
            "https://u:1/2@a.example/v1",
            "https://u:p?w@a.example/v1",
            "https://u:p#w@a.example/v1",
            "https://u:p\\w@a.example/v1",
            "https://u:pw",
            "https://p w/v1",
            "https://[pw]/v1",
            "P://a.example",
            "https:///v1",
            "",
        ] {
            assert_eq!(shown_address(url), UNREADABLE, "{url}");
        }
    }
}

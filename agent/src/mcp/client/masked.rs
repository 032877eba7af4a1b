//! Masks the secrets of a client configuration.

use super::config::{ClientConfig, Endpoint, INHERITED};
use crate::address::{is_word, shown_address};
use crate::masking::SecretMask;
use std::ffi::OsStr;

const SECRET: [&str; 9] = ["auth", "cookie", "credential", "dsn", "key", "pass", "pwd", "secret", "token"];

/// Minimum length, in characters, of a value that is masked although its name does not indicate a secret. Shorter values occur in ordinary
/// words.
const MIN_UNNAMED: usize = 6;

#[derive(Default)]
pub(super) struct ConfigSecrets(SecretMask);

impl ConfigSecrets {
    /// Collects the headers and variables that the application sets or passes on, arguments whose names indicate secrets, and the parts of
    /// the URL that may be secret.
    pub(super) fn of(config: &ClientConfig) -> Self {
        let mut secrets = Self::default();
        let text = |value: &OsStr| value.to_string_lossy().into_owned();
        match &config.endpoint {
            Endpoint::Http(endpoint) => {
                secrets.add_url(&endpoint.url);
                endpoint.headers.iter().for_each(|(name, value)| secrets.add_named(name, value));
            }
            Endpoint::Command(endpoint) => {
                endpoint.env.iter().for_each(|(name, value)| secrets.add_named(&text(name), &text(value)));
                let inherited =
                    endpoint.inherited.iter().filter(|name| !INHERITED.iter().any(|own| *name == own));
                for name in inherited {
                    let value = std::env::var_os(name).unwrap_or_default();
                    secrets.add_named(&text(name), &text(&value));
                }
                let mut name = String::new();
                for arg in &endpoint.args {
                    let arg = text(arg);
                    if is_secret(&name) {
                        secrets.add_named(&name, &arg);
                    }
                    secrets.add_argument(&arg);
                    // A command-line option may be the name of the next argument, as in `--token t0k`.
                    name = if arg.starts_with('-') { arg } else { String::new() };
                }
            }
        }
        secrets
    }

    pub(super) fn add(&mut self, secret: &str) {
        self.0.add(secret);
    }

    fn add_named(&mut self, name: &str, value: &str) {
        if is_secret(name) || value.chars().count() >= MIN_UNNAMED {
            self.add(value);
        }
        // A value may have a scheme before the secret, as in `Bearer t0k`, so the last word is also a secret.
        if let Some((_, key)) =
            value.rsplit_once(' ').filter(|(_, key)| is_secret(name) || key.len() >= MIN_UNNAMED)
        {
            self.add(key);
        }
    }

    /// Adds the secret in an argument such as `--token=t0k`, `--env=TOKEN=t0k` or `Authorization: Bearer t0k`, and the passwords of URLs.
    fn add_argument(&mut self, arg: &str) {
        for rest in arg.split("://").skip(1) {
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
            if let Some((_, password)) = password {
                self.add(password);
            }
        }
        let mut rest = arg;
        while let Some(at) = rest.find(['=', ':']) {
            let (name, value) = (&rest[..at], rest[at + 1..].trim_start());
            // The text before a colon may also be the host of a URL, or a path. Neither is the name of a header.
            let is_name = rest[at..].starts_with('=')
                || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            // The padding of Base64 is not a value.
            if is_name && is_secret(name) && !matches!(value, "" | "=") {
                return self.add_named(name, value);
            }
            rest = &rest[at + 1..];
        }
    }

    /// Adds the URL, as it was configured and as `reqwest` writes it, and those parts of the URL that may be secret.
    fn add_url(&mut self, url: &str) {
        let shown = shown_address(url);
        let Ok(parsed) = reqwest::Url::parse(url) else {
            return self.0.replace(url, &shown);
        };
        self.0.replace(parsed.as_str(), &shown);
        self.0.replace(url, &shown);
        if let Some(password) = parsed.password() {
            self.add(password);
        }
        let path = parsed.path_segments().into_iter().flatten().filter(|part| !is_word(part));
        let query = parsed.query_pairs().map(|(_, value)| value.into_owned());
        let parts: Vec<String> =
            path.map(str::to_owned).chain(query).chain(parsed.query().map(str::to_owned)).collect();
        for part in parts.into_iter().filter(|part| part.chars().count() >= MIN_UNNAMED) {
            self.add(&part);
        }
    }

    pub(super) fn mask(&self, text: &str) -> String {
        self.0.mask(text)
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(config: &ClientConfig, text: &str) -> String {
        ConfigSecrets::of(config).mask(text)
    }

    #[test]
    fn values_of_the_application_are_masked_under_any_name() {
        let config = ClientConfig::command("x")
            .env("DATABASE_URL", "pg://ann:tulip@db/x")
            .env("PIN", "1234")
            .args(["--api-key=rose", "--token", "lily", "--verbose", "daisy flower"]);
        for (text, expected) in [
            ("cannot open pg://ann:tulip@db/x now", "cannot open [redacted] now"),
            ("rose and lily, daisy flower", "[redacted] and [redacted], daisy flower"),
            ("in 1234 ms", "in 1234 ms"),
            ("cut at pg://ann:tul", "cut at [redacted]"),
            ("cut at pg:", "cut at pg:"),
        ] {
            assert_eq!(masked(&config, text), expected);
        }
        // A short value is masked if its name indicates a secret.
        assert_eq!(masked(&ClientConfig::command("x").env("DB_PASSWORD", "p"), "p q"), "[redacted] q");
        let config =
            ClientConfig::http("https://x.example/mcp").header("X-Tenant", "acme-tulip").header("X-V", "2");
        assert_eq!(masked(&config, "acme-tulip, version 2"), "[redacted], version 2");
    }

    #[test]
    fn secrets_in_arguments_for_headers_are_masked() {
        for args in [
            &["--header", "Authorization: Bearer t0ken-1=="][..],
            &["--header", "X-Api-Key:t0ken-1=="],
            &["--header=Authorization: Bearer t0ken-1=="],
            &["--env=API_KEY=t0ken-1=="],
            &["--auth", "Bearer t0ken-1=="],
            &["postgresql://ann:t0ken-1==@db/x?a=b"],
        ] {
            let config = ClientConfig::command("x").args(args.iter().copied());
            assert_eq!(masked(&config, "with t0ken-1==, a = b"), "with [redacted], a = b", "{args:?}");
        }
        let config = ClientConfig::command("x").args(["https://auth.example:8080/mcp", "-v", "/keys:/data"]);
        assert_eq!(masked(&config, "8080/mcp and /data"), "8080/mcp and /data");
    }

    #[test]
    fn only_scheme_host_and_port_of_a_url_are_shown() {
        let config = ClientConfig::http("https://x.example/s/t0ken-1/mcp?key=s3cret");
        for (text, expected) in [
            (
                "cannot reach https://x.example/s/t0ken-1/mcp?key=s3cret",
                "cannot reach https://x.example/…/…/mcp",
            ),
            ("no /s/t0ken-1/ here", "no /s/[redacted]/ here"),
            ("key s3cret", "key [redacted]"),
            ("reach https://x.example", "reach https://x.example"),
        ] {
            assert_eq!(masked(&config, text), expected);
        }
        let config = ClientConfig::http("https://ann:tu lip@x.example");
        assert_eq!(
            masked(&config, "cannot reach https://ann:tu%20lip@x.example/"),
            "cannot reach https://x.example"
        );
    }
}

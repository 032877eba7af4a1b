//! Checks the hosts and origins of requests, so that a web page cannot use a server that runs on the machine of the page's visitor.

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use std::net::Ipv6Addr;

const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The error for an entry that is not a host or an origin.
#[derive(Debug)]
pub(crate) struct InvalidEntry {
    pub(crate) entry: String,
    pub(crate) expected: &'static str,
}

pub(crate) struct HostPolicy {
    hosts: Vec<HostPort>,
    origins: Vec<WebOrigin>,
}

/// A host and its port. An accepted host without a port matches any port.
#[derive(Clone, Debug)]
struct HostPort<S = String> {
    name: S,
    port: Option<u16>,
}

#[derive(Debug)]
struct WebOrigin<S = String> {
    scheme: S,
    host: HostPort<S>,
}

impl HostPolicy {
    pub(crate) fn new(hosts: Option<&[String]>, origins: &[String]) -> Result<Self, InvalidEntry> {
        let hosts = match hosts {
            None => LOCAL.iter().map(|name| HostPort { name: (*name).to_owned(), port: None }).collect(),
            Some(hosts) => hosts.iter().map(|entry| allowed_host(entry)).collect::<Result<_, _>>()?,
        };
        let origins = origins.iter().map(|entry| allowed_origin(entry)).collect::<Result<_, _>>()?;
        Ok(Self { hosts, origins })
    }

    #[cfg(feature = "mcp-server")]
    pub(crate) fn is_local(&self) -> bool {
        self.hosts.iter().all(|host| LOCAL.contains(&&*host.name))
    }

    /// Checks the host and the origin of a request. The error is the text of the response.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), &'static str> {
        let own = requested_host(head).ok_or("The Host header is missing or cannot be read.")?;
        if !self.hosts.iter().any(|allowed| allowed.accepts(&own)) {
            return Err("This Host is not allowed.");
        }
        let mut origins = head.headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let origin = origin.to_str().ok().map(str::trim).and_then(origin_of);
        match origin {
            Some(origin) if origins.next().is_none() && self.accepts(&origin, &own) => Ok(()),
            _ => Err("This Origin is not allowed."),
        }
    }

    fn accepts(&self, origin: &WebOrigin<&str>, own: &HostPort<&str>) -> bool {
        let port = |host: &HostPort<&str>| host.port.or(default_port(origin.scheme));
        let is_own = origin.host.name.eq_ignore_ascii_case(own.name) && port(&origin.host) == port(own);
        is_own
            || self.origins.iter().any(|allowed| {
                allowed.scheme.eq_ignore_ascii_case(origin.scheme)
                    && allowed.host.name.eq_ignore_ascii_case(origin.host.name)
                    && allowed.host.port.is_none_or(|only| port(&origin.host) == Some(only))
            })
    }
}

impl HostPort {
    fn accepts(&self, other: &HostPort<&str>) -> bool {
        // Clients leave out the default port. The scheme is not known here, so the default port of either scheme counts.
        let is_default = other.port.is_none() && matches!(self.port, Some(80 | 443));
        let is_port = is_default || self.port.is_none() || self.port == other.port;
        is_port && self.name.eq_ignore_ascii_case(other.name)
    }
}

impl HostPort<&str> {
    fn to_owned(&self) -> HostPort {
        HostPort { name: self.name.to_owned(), port: self.port }
    }
}

fn requested_host(head: &Parts) -> Option<HostPort<&str>> {
    let mut values = head.headers.get_all(HOST).iter();
    match (values.next(), values.next()) {
        (Some(only), None) => host_of(only.to_str().ok()?),
        (Some(_), Some(_)) => None,
        // In HTTP/2 the host is in the URI.
        (None, _) => host_of(head.uri.authority()?.as_str()),
    }
}

/// Parses a name or an address, with or without a port. Returns `None` for any other text, for example one with user
/// information.
fn host_of(authority: &str) -> Option<HostPort<&str>> {
    let (name, rest) = match authority.strip_prefix('[') {
        Some(inner) => inner.split_once(']').filter(|(name, _)| name.parse::<Ipv6Addr>().is_ok())?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':');
    let port = match rest.strip_prefix(':') {
        None => None,
        // Only digits are accepted, because `parse` would also accept `+1`.
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
        Some(_) => return None,
    };
    let is_whole = rest.is_empty() || port.is_some();
    (is_whole && !name.is_empty() && name.bytes().all(is_name)).then_some(HostPort { name, port })
}

fn origin_of(text: &str) -> Option<WebOrigin<&str>> {
    let (scheme, authority) = text.split_once("://")?;
    let host = host_of(authority)?;
    let is_scheme =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_scheme.then_some(WebOrigin { scheme, host })
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

fn allowed_host(entry: &str) -> Result<HostPort, InvalidEntry> {
    // In the list of accepted hosts, an IPv6 address may be written without brackets.
    if entry.parse::<Ipv6Addr>().is_ok() {
        return Ok(HostPort { name: entry.to_owned(), port: None });
    }
    host_of(entry).map(|host| host.to_owned()).ok_or_else(|| InvalidEntry {
        entry: entry.to_owned(),
        expected: "a host, or a host with a port: `tools.example`, `localhost:8080`",
    })
}

fn allowed_origin(entry: &str) -> Result<WebOrigin, InvalidEntry> {
    let read = || match entry.strip_suffix(":*") {
        Some(base) => origin_of(base).filter(|origin| origin.host.port.is_none()),
        None => origin_of(entry).filter(|origin| origin.host.port.is_some()),
    };
    let own = |origin: WebOrigin<&str>| WebOrigin {
        scheme: origin.scheme.to_owned(),
        host: origin.host.to_owned(),
    };
    read().map(own).ok_or_else(|| InvalidEntry {
        entry: entry.to_owned(),
        expected: "a scheme, a host and a port or `*`: `https://app.example:443`, `http://localhost:*`",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(host: &str, origin: Option<&str>) -> Parts {
        let mut request = http::Request::builder().uri("/mcp").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn policy(hosts: Option<&[&str]>, origins: &[&str]) -> Result<HostPolicy, InvalidEntry> {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        HostPolicy::new(hosts.map(owned).as_deref(), &owned(origins))
    }

    #[test]
    fn only_this_machine_is_accepted_by_default() {
        let local = policy(None, &[]).unwrap();
        assert!(local.is_local());
        for host in ["localhost", "localhost:1", "127.0.0.1:8080", "[::1]:80", "LOCALHOST"] {
            assert_eq!(local.check(&head(host, None)), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "a@localhost",
            "localhost:x",
            "localhost:",
            "localhost:+1",
            "localhost:99999",
            "localhost:1:2",
            "[::1",
            "[localhost]",
            "[::1]x",
            "local%68ost",
            "",
        ] {
            assert!(local.check(&head(host, None)).is_err(), "{host}");
        }
        let own = policy(Some(&["tools.example:443", "other.example:8080", "::1"]), &[]).unwrap();
        assert!(!own.is_local());
        assert_eq!(own.check(&head("tools.example:443", None)), Ok(()));
        assert_eq!(own.check(&head("tools.example", None)), Ok(()));
        assert!(own.check(&head("other.example", None)).is_err());
        assert_eq!(own.check(&head("[::1]:3", None)), Ok(()));
        assert!(own.check(&head("tools.example:80", None)).is_err());
        assert!(own.check(&head("localhost", None)).is_err());
    }

    #[test]
    fn pages_of_the_host_and_listed_pages_are_accepted() {
        let some = policy(None, &["https://app.example:443", "http://localhost:*"]).unwrap();
        for origin in [
            "http://127.0.0.1:8080",
            "https://app.example",
            "https://app.example:443",
            "http://localhost:5173",
        ] {
            assert_eq!(some.check(&head("127.0.0.1:8080", Some(origin))), Ok(()), "{origin}");
        }
        for origin in [
            "http://evil.example",
            "http://127.0.0.1:8081",
            "http://app.example:443",
            "https://app.example:444",
            "https://app.example.evil.example",
            "https://localhost:1",
            "null",
            "",
            "http://",
        ] {
            assert!(some.check(&head("127.0.0.1:8080", Some(origin))).is_err(), "{origin}");
        }
        let mut twice = head("127.0.0.1:8080", Some("http://127.0.0.1:8080"));
        twice.headers.append("origin", "http://evil.example".parse().unwrap());
        assert!(some.check(&twice).is_err());
    }

    #[test]
    fn entries_that_allow_too_much_or_nothing_are_errors() {
        for origin in ["https://app.example", "app.example:443", "*", "https://app.example:1:*", "null"] {
            assert!(policy(None, &[origin]).is_err(), "{origin}");
        }
        for host in ["", "https://tools.example", "a b", "tools.example:x"] {
            assert!(policy(Some(&[host]), &[]).is_err(), "{host}");
        }
    }
}

//! The formats in the schemas of Rust types. Several types share a format, so a text has the format if any of these types reads it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether a text certainly does not have a format. Returns `false` for a format that is not listed here.
pub(crate) fn is_surely_not(format: &str, text: &str) -> bool {
    match format {
        "date" => !is_date(text),
        "date-time" => !is_date_time(text),
        // Some types read a date without a time as midnight.
        "partial-date-time" => !is_date_time(text) && !is_date(text),
        // Some types accept a date with a time, and use only the time.
        "partial-time" | "time" => !is_time(text) && !is_date_time(text),
        "duration" => !is_duration(text),
        "uuid" => !is_uuid(text),
        "uri" => !is_uri(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_err(),
        "ipv6" => text.parse::<Ipv6Addr>().is_err(),
        "ip" => text.parse::<IpAddr>().is_err(),
        _ => false,
    }
}

/// Returns whether a text is a date: `[+-]Y…-M-D` or `YYYYMMDD`. Text after `T` or a space is ignored, because some types accept a time
/// there.
fn is_date(text: &str) -> bool {
    let text = text.trim();
    let day = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let unsigned = day.strip_prefix(['+', '-']).unwrap_or(day);
    let parts: Vec<&str> = unsigned.split('-').collect();
    let number = |s: &str| if s.bytes().all(|b| b.is_ascii_digit()) { s.parse::<u32>().ok() } else { None };
    let (year, month, day) = match parts[..] {
        [year, month, day] => (number(year), number(month), number(day)),
        [basic] if basic.len() == 8 && basic.is_ascii() => {
            (number(&basic[..4]), number(&basic[4..6]), number(&basic[6..]))
        }
        _ => return false,
    };
    match (year, month, day) {
        (Some(year), Some(month), Some(day)) => (1..=days(year, month)).contains(&day),
        _ => false,
    }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 0,
    }
}

fn is_date_time(text: &str) -> bool {
    let text = text.trim();
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    is_date(date) && is_time(time)
}

/// Returns whether a text starts with a time, `HH:MM[:SS[.f]]` or the basic form. Zones have many
/// notations, so anything may follow.
fn is_time(text: &str) -> bool {
    let text = text.trim_start().trim_start_matches(['T', 't']);
    let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b':');
    let digits: Vec<u8> = digits.collect();
    let number = |s: &[u8]| s.iter().fold(0u32, |n, b| n * 10 + u32::from(b - b'0'));
    let parts: Vec<&[u8]> = if digits.contains(&b':') {
        digits.split(|b| *b == b':').take(3).collect()
    } else {
        digits.chunks(2).take(3).collect()
    };
    let limits = [24, 59, 60];
    !parts.is_empty()
        && parts.iter().zip(limits).all(|(part, max)| (1..=2).contains(&part.len()) && number(part) <= max)
}

/// Returns whether a text may be a duration, such as `PT2H` or `2 hours`: it has a digit, and a letter, a colon or a character beyond
/// ASCII.
fn is_duration(text: &str) -> bool {
    let unsigned = text.trim().trim_start_matches(['+', '-']);
    let has_digit = unsigned.bytes().any(|b| b.is_ascii_digit());
    let has_unit = unsigned.bytes().any(|b| b.is_ascii_alphabetic() || b == b':' || b >= 0x80);
    has_digit && has_unit
}

/// Returns whether a text has 32 hexadecimal digits, optionally with hyphens, braces or the prefix of a
/// URN.
fn is_uuid(text: &str) -> bool {
    let bare = text.trim_start_matches("urn:uuid:").trim_start_matches('{').trim_end_matches('}');
    bare.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
        && bare.bytes().filter(u8::is_ascii_hexdigit).count() == 32
}

/// Returns whether a text starts with a scheme of RFC 3986 and a colon.
fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.trim().split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::is_surely_not;

    #[test]
    fn what_types_take_is_not_refused() {
        for (format, text) in [
            ("date", "2026-11-21"),
            ("date", "2024-02-29"),
            ("date", "20260101"),
            ("date", "+12026-11-21"),
            ("date-time", "2026-11-21T10:30:00Z"),
            ("date-time", "2026-11-21 10:30:00.25+01:00[Europe/Paris]"),
            ("date-time", "2026-11-21T23:59:60Z"),
            ("partial-date-time", "2026-11-21T10:30:00"),
            ("partial-date-time", "2026-11-21"),
            ("partial-time", "10:30"),
            ("partial-time", "1999-11-21T10:30"),
            ("duration", "P1DT2H"),
            ("duration", "-PT5M"),
            ("duration", "2 hours"),
            ("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8"),
            ("uuid", "urn:uuid:67e5504410b1426f9247bb680e5fe0c8"),
            ("uri", "https://example.com"),
            ("ip", "::1"),
            ("regex", "("),
        ] {
            assert!(!is_surely_not(format, text), "{format} {text}");
        }
    }

    #[test]
    fn what_is_plainly_wrong_is_refused() {
        for (format, text) in [
            ("date", "2026-13-01"),
            ("date", "2026-02-29"),
            ("date", "tomorrow"),
            ("date", ""),
            ("date-time", "2026-11-21"),
            ("date-time", "yesterday"),
            ("date-time", "2026-11-21T25:00:00Z"),
            ("partial-time", "ten"),
            ("duration", "long"),
            ("uuid", "zz"),
            ("uri", "no url"),
            ("ipv4", "1.2.3"),
        ] {
            assert!(is_surely_not(format, text), "{format} {text}");
        }
    }
}

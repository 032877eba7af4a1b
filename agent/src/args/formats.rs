//! Formats of text arguments, as required by `#[arg(format = …)]` or the attribute of a validation crate. JSON Schema 2020-12 (validation,
//! section 7.3) defines these formats, except `ip`.
//!
//! The formats in the schemas of Rust types are in [`of_types`], because a Rust type may accept more spellings than a format allows.

mod of_types;

pub(crate) use of_types::is_surely_not;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether a text has a format. A format that this function does not list is not checked, so the result is `true`.
pub(crate) fn is(format: &str, text: &str) -> bool {
    match format {
        "date" => is_date(text),
        "time" => is_time(text),
        "date-time" => text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "uri" => is_uri(text),
        "uuid" => is_uuid(text),
        _ => true,
    }
}

/// Returns a description of a mistake that models often make in this format, such as a date without its time. Returns `None` if the text
/// has no such mistake.
pub(crate) fn fault(format: &str, text: &str) -> Option<&'static str> {
    let text = text.trim();
    let (day, clock) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)),
        None => (text, None),
    };
    let is_clock = |clock: &str| {
        let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
        clock.split(':').count() >= 2 && clock.bytes().all(|b| b.is_ascii_digit() || b == b':')
    };
    let (has_day, civil, zoned) = (
        is_date(day),
        clock.is_some_and(is_clock),
        clock.is_some_and(|clock| {
            clock.find(['Z', 'z', '+', '-']).is_some_and(|at| clock.get(..at).is_some_and(is_clock))
        }),
    );
    match format {
        "date-time" | "zoned-date-time" if has_day && civil => {
            Some("a date-time without its time zone: add `Z` or an offset like `+01:00`")
        }
        "date-time" | "zoned-date-time" | "partial-date-time" if has_day && clock.is_none() => {
            Some("a date without its time")
        }
        "partial-date-time" if has_day && zoned => Some("a date-time with a time zone: leave the zone out"),
        "date" if has_day && (civil || zoned) => Some("a date-time instead of a date: leave the time out"),
        "time" | "partial-time" if has_day && (civil || zoned) => {
            Some("a date-time instead of a time: leave the date out")
        }
        "time" if is_clock(text) => Some("a time without its time zone: add `Z` or an offset like `+01:00`"),
        "partial-time"
            if text.find(['Z', 'z', '+', '-']).is_some_and(|at| text.get(..at).is_some_and(is_clock)) =>
        {
            Some("a time with a time zone: leave the zone out")
        }
        _ => None,
    }
}

fn number(text: &str, width: usize, most: u32) -> Option<u32> {
    let digits = text.len() == width && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok().filter(|number| *number <= most) } else { None }
}

/// Returns whether a text is a date of RFC 3339, for example `2026-11-21`.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut next = |width, most| number(parts.next()?, width, most);
    let (Some(year), Some(month), Some(day)) = (next(4, 9_999), next(2, 12), next(2, 31)) else {
        return false;
    };
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Returns whether a text is a time of RFC 3339, for example `10:30:00.25Z` or `10:30:00+01:00`. Second 60 is valid only at the end of a
/// UTC day.
fn is_time(text: &str) -> bool {
    let Some((clock, offset)) = text.find(['Z', 'z', '+', '-']).and_then(|at| text.split_at_checked(at))
    else {
        return false;
    };
    let offset = match offset.strip_prefix(['+', '-']) {
        None if offset.len() == 1 => 0,
        None => return false,
        Some(rest) => {
            let Some((hours, minutes)) = rest.split_once(':') else { return false };
            let (Some(hours), Some(minutes)) = (number(hours, 2, 23), number(minutes, 2, 59)) else {
                return false;
            };
            let minutes = i64::from(hours * 60 + minutes);
            if offset.starts_with('-') { -minutes } else { minutes }
        }
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.splitn(3, ':');
    let mut next = |most| number(parts.next()?, 2, most);
    let (Some(hours), Some(minutes), Some(seconds)) = (next(23), next(59), next(60)) else { return false };
    let last_of_day = (i64::from(hours * 60 + minutes) - offset).rem_euclid(1_440) == 1_439;
    !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit()) && (seconds < 60 || last_of_day)
}

/// Returns whether a text is a duration of RFC 3339, appendix A, for example `P1DT2H` or `P3W`.
fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P') else { return false };
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return false,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    // Larger units come first, and no unit in between may be left out.
    let units = |text: &str, units: &str| {
        let mut last: Option<usize> = None;
        text.split_inclusive(|c: char| c.is_ascii_alphabetic()).all(|part| {
            let Some(unit) = part.chars().last().and_then(|unit| units.find(unit)) else { return false };
            let number = &part[..part.len() - 1];
            let in_order = last.replace(unit).is_none_or(|last| unit == last + 1);
            in_order && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let weeks = time.is_empty() && !date.is_empty() && units(date, "W");
    !text.is_empty() && (weeks || units(date, "YMD") && units(time, "HMS"))
}

/// Returns whether a text is an email address of RFC 5321. Quoted names and address literals are refused.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let sign = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b);
    name.len() <= 64
        && name.split('.').all(|part| !part.is_empty() && part.bytes().all(sign))
        && is_hostname(host)
}

/// Returns whether a text is a host name of RFC 1123.
fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// Returns whether a text is a URI of RFC 3986: a scheme and a colon, a numeric port if there is one, and no characters that must
/// be escaped.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let Some(rest) = after_address(rest) else { return false };
    let mut rest = rest.bytes();
    let mut in_fragment = false;
    let mut plain = || {
        while let Some(b) = rest.next() {
            let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
            let fits = match b {
                b'%' => hex(rest.next()) && hex(rest.next()),
                b'"' | b'<' | b'>' | b'[' | b'\\' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
                b'#' => !std::mem::replace(&mut in_fragment, true),
                b => b.is_ascii_graphic(),
            };
            if !fits {
                return false;
            }
        }
        true
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && plain()
}

/// Removes the port and an IPv6 host from `rest`, a URI without its scheme. Returns `None` if the port or the IPv6 host is invalid, or if
/// there are two `@` before the path.
fn after_address(rest: &str) -> Option<String> {
    let Some(behind) = rest.strip_prefix("//") else { return Some(rest.to_owned()) };
    let (authority, path) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains('@') {
        return None;
    }
    let (name, port) = match host.strip_prefix('[').map(|host| host.split_once(']')) {
        Some(Some((address, port))) if address.parse::<Ipv6Addr>().is_ok() => ("", port),
        Some(_) => return None,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = if port.is_empty() { port } else { port.strip_prefix(':')? };
    // The `@` separates the user from the host, so that digits of the host cannot complete a `%` at the end of the user.
    port.bytes().all(|b| b.is_ascii_digit()).then(|| format!("{user}@{name}{path}"))
}

/// Returns whether a text is a UUID of RFC 4122, for example `67e55044-10b1-426f-9247-bb680e5fe0c8`.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

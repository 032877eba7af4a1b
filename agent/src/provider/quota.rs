//! Reads the rate limits that a provider reports in the headers of a response.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::protocol::HttpResponse;
use crate::model::{ProviderQuota, QuotaLeft};

/// The assumed time until a limit is full again, if no header reports it.
const DEFAULT_REFILL: Duration = Duration::from_secs(60);
/// Maximum time until a limit is full again. Longer times in headers are ignored.
const MAX_REFILL: Duration = Duration::from_secs(86_400);

/// Names of the headers about one limit. `{}` stands for `limit`, `remaining` or `reset`.
const REQUESTS: [&str; 2] = ["anthropic-ratelimit-requests-{}", "x-ratelimit-{}-requests"];
const TOKENS: [&str; 2] = ["anthropic-ratelimit-tokens-{}", "x-ratelimit-{}-tokens"];
const INPUT: [&str; 1] = ["anthropic-ratelimit-input-tokens-{}"];
const OUTPUT: [&str; 1] = ["anthropic-ratelimit-output-tokens-{}"];

/// Reads the rate limits from the headers of Anthropic and of OpenAI. Most other providers send the headers of OpenAI. Malformed headers
/// are ignored.
pub(super) fn provider_quota(headers: &[(String, String)], now: SystemTime) -> ProviderQuota {
    let response = HttpResponse::new(200, headers, b"");
    let find = |names: &[&str]| names.iter().find_map(|names| quota_left(&response, names, now));
    ProviderQuota { left: [find(&REQUESTS), find(&TOKENS), find(&INPUT), find(&OUTPUT)], pause: None }
}

fn quota_left(response: &HttpResponse<'_>, names: &str, now: SystemTime) -> Option<QuotaLeft> {
    let header = |word| Some(response.header(&names.replace("{}", word))?.trim());
    let left: u64 = header("remaining")?.parse().ok()?;
    let limit = header("limit").map(|limit| limit.parse::<u64>().ok().filter(|limit| *limit > 0));
    let reset = header("reset").and_then(|reset| refill_time(reset, now));
    match limit {
        // Azure reports a limit of -1 or 0 if there is no limit, so the number of remaining requests or tokens has no meaning.
        Some(None) => return None,
        // Without a limit and a time, "0 remaining" does not mean that a limit is exhausted.
        None if left == 0 && reset.is_none() => return None,
        _ => {}
    }
    Some(QuotaLeft { limit: limit.flatten(), left, refill: reset.unwrap_or(DEFAULT_REFILL) })
}

/// Parses the time until a limit is full again: a duration such as `6m0s`, a number of seconds, or a time of RFC 3339. Returns `None` for
/// other texts, and for times above [`MAX_REFILL`].
fn refill_time(text: &str, now: SystemTime) -> Option<Duration> {
    let seconds = text.parse().ok().or_else(|| duration_seconds(text));
    let duration = |seconds| Duration::try_from_secs_f64(seconds).ok();
    let refill = if let Some(seconds) = seconds {
        duration(seconds)?
    } else {
        let time = UNIX_EPOCH.checked_add(duration(unix_seconds(text)?)?)?;
        time.duration_since(now).unwrap_or_default()
    };
    (refill <= MAX_REFILL).then_some(refill)
}

/// Parses a duration such as `12ms` or `2m59.56s`, and returns it in seconds.
fn duration_seconds(mut text: &str) -> Option<f64> {
    if text.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !text.is_empty() {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at_checked(unit_at)?;
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at_checked(unit_end)?;
        let unit = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        text = rest;
    }
    Some(seconds)
}

/// Parses a time of RFC 3339, such as `2026-11-21T10:30:00.5Z`, and returns it in seconds since 1970.
///
/// Source: the algorithm `days_from_civil` of <https://howardhinnant.github.io/date_algorithms.html>.
fn unix_seconds(text: &str) -> Option<f64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let time_end = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at_checked(time_end)?;
    let [year, month, day] = numbers::<3>(date, '-')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers::<3>(time, ':')?;
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign, zone) => {
            let [hours, minutes] = numbers::<2>(zone, ':')?;
            (hours * 60 + minutes) * if sign == "-" { -60 } else { 60 }
        }
    };
    let in_range = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 24 || minute > 59 || second > 60 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (year, shifted) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * shifted + 2) / 5 + day - 1;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    Some(f64::from(u32::try_from(seconds).ok()?) + format!("0.{fraction}").parse::<f64>().ok()?)
}

fn numbers<const N: usize>(text: &str, between: char) -> Option<[i64; N]> {
    let read = |text: &str| {
        text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u16>().ok().map(i64::from))
    };
    let numbers: Option<Vec<i64>> = text.split(between).map(|text| read(text).flatten()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T10:30:00Z.
    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_795_257_000)
    }

    fn read(headers: &[(&str, &str)]) -> [Option<(Option<u64>, u64, Duration)>; 4] {
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        provider_quota(&headers, now()).left.map(|left| left.map(|left| (left.limit, left.left, left.refill)))
    }

    #[test]
    fn the_headers_of_providers_are_read() {
        let (ms, secs) = (Duration::from_millis, Duration::from_secs);
        let anthropic = read(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-21T10:30:01Z"),
            ("anthropic-ratelimit-tokens-limit", "40000"),
            ("anthropic-ratelimit-tokens-remaining", "39000"),
            ("anthropic-ratelimit-tokens-reset", "2026-11-21T11:30:12.5+01:00"),
            ("Anthropic-Ratelimit-Input-Tokens-Limit", "30000"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-21T10:29:00Z"),
            ("anthropic-ratelimit-output-tokens-remaining", "8000"),
        ]);
        assert_eq!(
            anthropic,
            [
                Some((Some(50), 49, secs(1))),
                Some((Some(40_000), 39_000, ms(12_500))),
                Some((Some(30_000), 0, secs(0))),
                Some((None, 8_000, secs(60))),
            ]
        );
        let openai = read(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "12ms"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ]);
        assert_eq!(
            openai,
            [Some((Some(60), 59, ms(12))), Some((Some(150_000), 149_984, secs(360))), None, None]
        );
        let groq =
            read(&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "2m59.56s")]);
        assert_eq!(groq, [Some((None, 0, ms(179_560))), None, None, None]);
    }

    #[test]
    fn malformed_headers_are_ignored() {
        for remaining in ["", "-1", "many", "1.5", "99999999999999999999", "0x10", "NaN"] {
            assert_eq!(read(&[("x-ratelimit-remaining-tokens", remaining)]), [None; 4], "{remaining}");
        }
        // Azure reports a limit of -1 or 0 if there is no limit.
        for limit in ["-1", "0", "?"] {
            let headers = [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-limit-requests", limit)];
            assert_eq!(read(&headers), [None; 4], "{limit}");
        }
        assert_eq!(read(&[("x-ratelimit-remaining-requests", "0")]), [None; 4]);
        for reset in [
            "",
            "-5",
            "soon",
            "1e400",
            "NaN",
            "1w",
            "s",
            "5",
            "1795257000",
            "25h",
            "1..2s",
            "2026-11-21",
            "2026-13-21T10:30:00Z",
            "2026-11-21T10:30:00",
            "2026-11-21T10:30Z",
            "2026-11-21T10:30:00.xZ",
            "2026-11-21T10:30:00+",
            "2026-11-21T10:30:00é",
            "99999-11-21T10:30:00Z",
            "2027-11-21T10:30:00Z",
            "0000-00-00T00:00:00Z",
            "+026-11-21T10:30:00Z",
            "\u{b5}",
            "é",
            "1µ",
        ] {
            let headers = [("x-ratelimit-remaining-requests", "3"), ("x-ratelimit-reset-requests", reset)];
            let expected = if reset == "5" { Duration::from_secs(5) } else { DEFAULT_REFILL };
            assert_eq!(read(&headers)[0], Some((None, 3, expected)), "{reset}");
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-02-29T00:00:00Z", 951_782_400.0),
            ("2026-02-28T23:59:59.25Z", 1_772_323_199.25),
            ("2026-03-01T01:00:00+01:00", 1_772_323_200.0),
            ("2026-02-28T22:30:00-01:30", 1_772_323_200.0),
        ] {
            assert_eq!(unix_seconds(text), Some(expected), "{text}");
        }
    }
}

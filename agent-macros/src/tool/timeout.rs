//! Parses the time in `timeout = "10s"`.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

pub(crate) fn parse(text: &str) -> Result<Duration, &'static str> {
    const SYNTAX: &str =
        "write a whole number and a unit, one of `ms`, `s`, `m` and `h`: `timeout = \"10s\"`";
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let (digits, _) = text.split_at(text.len() - unit.len());
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(SYNTAX)?;
    if digits.is_empty() {
        return Err(SYNTAX);
    }
    let millis = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(*factor));
    match millis {
        None => Err("this timeout is too long: write `timeout = false` for none"),
        Some(0) => Err("a timeout of zero stops every call: write `timeout = false` for none"),
        Some(millis) => Ok(Duration::from_millis(millis)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_units() {
        for (text, millis) in
            [("250ms", 250), ("10s", 10_000), ("5m", 300_000), ("1h", 3_600_000), ("007s", 7_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in ["", "10", "s", "10 s", " 10s", "10S", "1.5s", "-1s", "10sec", "1m30s", "٣s"] {
            assert!(parse(text).is_err_and(|advice| advice.starts_with("write a whole number")), "{text}");
        }
        assert!(
            parse("0s").is_err_and(|advice| advice.contains("zero") && advice.contains("`timeout = false`"))
        );
        for text in ["99999999999999999999h", "18446744073709551615s"] {
            assert!(parse(text).is_err_and(|advice| advice.contains("too long")), "{text}");
        }
    }
}

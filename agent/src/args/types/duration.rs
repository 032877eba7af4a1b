//! Durations in a human-readable form.

use super::{ParsedText, read, text_of};
use crate::parse_error::ParseError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

/// A duration as text, as a model sends and reads it: `"90s"`, `"1h 30m"`, `"2d"`, `"250ms"`, `"1.5 hours"`, or in ISO 8601: `"PT1H30M"`.
///
/// Without this type, serde represents a [`Duration`] as `{"secs", "nanos"}`. The units are `w`, `d`, `h`, `m` (or `min`), `s`, `ms`,
/// `us` and `ns`, or their names. Larger units come before smaller ones, each unit occurs at most once, and only the last number may have
/// a fraction. A day has 24 hours. Years and months are refused because their length varies. A number without a unit is refused because
/// its meaning is unclear.
///
/// ```
/// use agent::{ToolArgs, args::{HumanDuration, Plan, PlanOptions}};
/// use std::time::Duration;
///
/// #[derive(ToolArgs)]
/// struct Wait {
///     timeout: HumanDuration,
///     /// Between two attempts.
///     #[arg(default = HumanDuration::from(Duration::from_millis(1_500)))]
///     pause: HumanDuration,
/// }
///
/// let plan = Plan::for_type::<Wait>("wait", PlanOptions::default())?;
/// let wait = plan.parse::<Wait>(r#"{"timeout": "1h 30m"}"#)?.value;
/// assert_eq!(wait.timeout.get(), Duration::from_secs(5_400));
/// assert_eq!((wait.timeout.as_secs(), wait.pause.to_string().as_str()), (5_400, "1s 500ms"));
///
/// let refused = plan.parse::<Wait>(r#"{"timeout": "90"}"#).err().unwrap();
/// assert_eq!(refused.issues()[0].path, "/timeout");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(Duration);

impl HumanDuration {
    /// Returns the duration as the type of the standard library.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl Deref for HumanDuration {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl From<Duration> for HumanDuration {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<HumanDuration> for Duration {
    fn from(duration: HumanDuration) -> Self {
        duration.0
    }
}

const SECOND: u128 = 1_000_000_000;

/// The names of each unit, and its length in nanoseconds, the largest unit first.
const UNITS: [(&[&str], u128); 8] = [
    (&["w", "wk", "week", "weeks"], 604_800 * SECOND),
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * SECOND),
    (&["m", "min", "mins", "minute", "minutes"], 60 * SECOND),
    (&["s", "sec", "secs", "second", "seconds"], SECOND),
    (&["ms", "msec", "millis", "millisecond", "milliseconds"], SECOND / 1_000),
    (&["us", "µs", "μs", "micros", "microsecond", "microseconds"], SECOND / 1_000_000),
    (&["ns", "nanos", "nanosecond", "nanoseconds"], 1),
];

/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 200;

/// Writes whole numbers with units, for example `1h 30m`. Parsing the text gives the same duration.
impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        let mut space = "";
        // Weeks are parsed, but not written, because days are easier to read.
        for (names, length) in UNITS.iter().skip(1) {
            if let Some(name) = names.first().filter(|_| rest >= *length) {
                write!(f, "{space}{}{name}", rest / length)?;
                rest %= length;
                space = " ";
            }
        }
        Ok(())
    }
}

impl FromStr for HumanDuration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = |words: &'static str| Err(ParseError::new(words));
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_TEXT {
            return refused("is not a duration: write for example `90s` or `1h 30m`");
        }
        if text.starts_with(['-', '+']) {
            return refused("is not a duration: write it without a sign, for example `90s`");
        }
        match text.strip_prefix('P') {
            Some(iso) => from_iso(iso),
            None => from_words(text),
        }
    }
}

fn from_words(text: &str) -> Result<HumanDuration, ParseError> {
    let mut sum = Sum::default();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = number_in_front(rest);
        if number.is_empty() {
            return Err(ParseError::new("is not a duration: write for example `90s` or `1h 30m`"));
        }
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (name, next) = after.split_at(end);
        if name.is_empty() {
            return Err(ParseError::new(format!(
                "has no unit after {number}: write for example `{number}s` or `{number}m`"
            )));
        }
        let Some(unit) = UNITS.iter().position(|(names, _)| names.contains(&name)) else {
            return Err(unknown_unit(name));
        };
        sum.add(number, unit)?;
        rest = next.trim_start();
    }
    sum.end()
}

/// Parses the part of an ISO 8601 duration after the `P`, for example `1W` or `2DT3H4M5.6S`.
fn from_iso(text: &str) -> Result<HumanDuration, ParseError> {
    let wrong = || ParseError::new("is not an ISO 8601 duration: write for example `PT1H30M`, or `1h 30m`");
    let (mut sum, mut rest, mut time) = (Sum::default(), text, false);
    while !rest.is_empty() {
        if let (Some(after), false) = (rest.strip_prefix('T'), time) {
            (rest, time) = (after, true);
            if rest.is_empty() {
                return Err(wrong());
            }
        }
        let (number, after) = number_in_front(rest);
        let mut signs = after.chars();
        let unit = match (number, signs.next(), time) {
            ("", ..) => return Err(wrong()),
            (_, Some('Y'), false) => return Err(unknown_unit("years")),
            (_, Some('M'), false) => return Err(unknown_unit("months")),
            (_, Some('W'), false) => 0,
            (_, Some('D'), false) => 1,
            (_, Some('H'), true) => 2,
            (_, Some('M'), true) => 3,
            (_, Some('S'), true) => 4,
            _ => return Err(wrong()),
        };
        sum.add(number, unit)?;
        rest = signs.as_str();
    }
    sum.end()
}

fn unknown_unit(name: &str) -> ParseError {
    let known = "w, d, h, m, s, ms, us and ns";
    let varies = ["y", "yr", "yrs", "year", "years", "M", "mo", "mon", "month", "months"].contains(&name);
    let words = match UNITS.iter().find(|(names, _)| names.contains(&name.to_lowercase().as_str())) {
        _ if varies => format!("`{name}` have no fixed length: write days or weeks"),
        Some((names, _)) => format!("has no unit `{name}`: write it as `{}`", names.first().unwrap_or(&"s")),
        None => format!("has no unit `{}`: known are {known}", crate::args::text::cut(name, 20)),
    };
    ParseError::new(words)
}

/// Splits a text after its leading number, which may have a fraction. If the text does not begin with a digit, the number is empty.
fn number_in_front(text: &str) -> (&str, &str) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = match text.as_bytes().get(whole) {
        Some(b'.' | b',') if whole > 0 => digits(&text[whole + 1..]),
        _ => 0,
    };
    text.split_at(if fraction > 0 { whole + 1 + fraction } else { whole })
}

#[derive(Default)]
struct Sum {
    nanos: u128,
    /// The unit of the previous number, as an index of `UNITS`.
    last: Option<usize>,
    fraction: bool,
}

impl Sum {
    fn add(&mut self, number: &str, unit: usize) -> Result<(), ParseError> {
        let refused = |words: &'static str| Err(ParseError::new(words));
        if self.last.is_some_and(|last| last >= unit) {
            return refused("names its units out of order, or twice: write for example `1h 30m`");
        }
        if self.fraction {
            return refused("has a fraction before its last unit: write for example `1h 30m`");
        }
        let length = UNITS.get(unit).map_or(0, |(_, length)| *length);
        let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, ""));
        let too_long = || ParseError::new("is too long");
        let whole: u128 = whole.parse().map_err(|_| too_long())?;
        self.nanos =
            whole.checked_mul(length).and_then(|nanos| self.nanos.checked_add(nanos)).ok_or_else(too_long)?;
        let fraction = fraction.trim_end_matches('0');
        let finer = || ParseError::new("is finer than a nanosecond");
        let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 18).ok_or_else(finer)?;
        let parts = fraction.parse::<u128>().unwrap_or(0) * length;
        if !parts.is_multiple_of(10_u128.pow(digits)) {
            return Err(finer());
        }
        let part = parts / 10_u128.pow(digits);
        self.nanos = self.nanos.checked_add(part).ok_or_else(too_long)?;
        self.fraction = number.contains(['.', ',']);
        self.last = Some(unit);
        Ok(())
    }

    fn end(self) -> Result<HumanDuration, ParseError> {
        if self.last.is_none() {
            return Err(ParseError::new("is not a duration: write for example `90s` or `PT1H30M`"));
        }
        let secs = u64::try_from(self.nanos / SECOND).map_err(|_| ParseError::new("is too long"))?;
        let nanos = u32::try_from(self.nanos % SECOND).unwrap_or_default();
        Ok(HumanDuration(Duration::new(secs, nanos)))
    }
}

impl ParsedText for HumanDuration {
    const WANTED: &'static str = "a duration like `1h 30m`";
    type Error = ParseError;

    fn from_text(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }

    fn nothing() -> Self {
        Self::default()
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for HumanDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "HumanDuration".into()
    }

    fn schema_id() -> Cow<'static, str> {
        "agent::args::HumanDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        text_of("duration", "format")
    }
}

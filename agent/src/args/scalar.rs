//! The rules for scalars. The typed pass and the diagnosis both call these, so they cannot disagree.

use super::issue::IssueCode;
use super::plan::{IntSpec, NumSpec, StrSpec};
use super::policy::Rules;
use serde_json::Value;

/// 2^53: a float literal above it may already have been rounded.
pub(crate) const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// A whole number of any width that serde can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Int {
    Signed(i64),
    Unsigned(u64),
    Wide(i128),
    WideUnsigned(u128),
}

impl Int {
    pub(crate) fn as_i128(self) -> Option<i128> {
        match self {
            Int::Signed(v) => Some(v.into()),
            Int::Unsigned(v) => Some(v.into()),
            Int::Wide(v) => Some(v),
            Int::WideUnsigned(v) => i128::try_from(v).ok(),
        }
    }

    /// Beyond 64 bits JSON values of `serde_json` hold no integer: there it is its digits.
    pub(crate) fn to_value(self) -> Value {
        match self {
            Int::Signed(v) => v.into(),
            Int::Unsigned(v) => v.into(),
            Int::Wide(v) => v.to_string().into(),
            Int::WideUnsigned(v) => v.to_string().into(),
        }
    }

    fn narrow(v: i128) -> Int {
        if let Ok(v) = i64::try_from(v) {
            Int::Signed(v)
        } else if let Ok(v) = u64::try_from(v) {
            Int::Unsigned(v)
        } else {
            Int::Wide(v)
        }
    }
}

/// Text or a literal read as an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Int(Int),
    /// An integer, but wider than any type.
    TooWide,
    NotInteger,
}

impl Digits {
    pub(crate) fn int(self) -> Option<Int> {
        match self {
            Digits::Int(i) => Some(i),
            Digits::TooWide | Digits::NotInteger => None,
        }
    }
}

/// `1.0` and `-0.0` are integers; `1.5` and everything above 2^53 is not.
#[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
pub(crate) fn int_from_f64(f: f64) -> Option<Int> {
    (f.is_finite() && f.fract() == 0.0 && f.abs() <= EXACT_FLOAT).then_some(Int::Signed(f as i64))
}

/// `[+-]?[0-9]+(\.0+)?` after trimming. The digits are exact, so there is no limit of 2^53 here.
pub(crate) fn int_from_text(text: &str) -> Digits {
    // Most are a few digits and nothing else.
    if (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
        return Digits::Int(Int::Signed(text.bytes().fold(0, |n, b| n * 10 + i64::from(b - b'0'))));
    }
    let text = text.trim();
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        Some(_) => return Digits::NotInteger,
        None => text,
    };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Digits::NotInteger;
    }
    if let Ok(v) = whole.parse::<i64>() {
        return Digits::Int(Int::Signed(v));
    }
    match (whole.parse::<i128>(), whole.parse::<u128>()) {
        (Ok(v), _) => Digits::Int(Int::narrow(v)),
        (_, Ok(v)) => Digits::Int(Int::WideUnsigned(v)),
        _ => Digits::TooWide,
    }
}

/// `[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?` after trimming, finite.
pub(crate) fn num_from_text(text: &str) -> Option<f64> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(mantissa),
    };
    if !mantissa_ok || exponent.is_some_and(|e| !digits(e.strip_prefix(['-', '+']).unwrap_or(e))) {
        return None;
    }
    text.parse::<f64>().ok().filter(|f| f.is_finite())
}

pub(crate) fn bool_from_text(text: &str, rules: Rules) -> Option<bool> {
    match text.trim() {
        "true" => Some(true),
        "false" => Some(false),
        text if rules.has(Rules::FOLD_BOOLEAN) && text.eq_ignore_ascii_case("true") => Some(true),
        text if rules.has(Rules::FOLD_BOOLEAN) && text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// The member of a closed set that `text` names: itself, or (lenient) the only one equal but for case and separators.
#[inline]
pub(crate) fn pick<'a>(
    mut members: impl Iterator<Item = &'a str> + Clone,
    text: &str,
    rules: Rules,
) -> Option<&'a str> {
    if let Some(member) = members.clone().find(|m| *m == text) {
        return Some(member);
    }
    if !rules.has(Rules::FOLD_ENUM) || text.len() > 256 {
        return None;
    }
    let folded = fold(text);
    if folded.is_empty() {
        return None;
    }
    let mut same = members.by_ref().filter(|m| fold(m) == folded);
    match (same.next(), same.next()) {
        (Some(member), None) => Some(member),
        _ => None,
    }
}

/// Letters and digits only, in lower case.
pub(crate) fn fold(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The text that a number sent for a string becomes. None if it may have been rounded when it was read.
pub(crate) fn number_text(number: &Value) -> Option<String> {
    let rounded = number.is_f64() && number.as_f64().is_some_and(|f| f.abs() > EXACT_FLOAT);
    (!rounded).then(|| number.to_string())
}

impl IntSpec {
    pub(crate) fn takes(&self, v: Int) -> bool {
        let v = v.as_i128();
        self.min.is_none_or(|min| v.is_none_or(|v| v >= min))
            && self.max.is_none_or(|max| v.is_some_and(|v| v <= max))
            && self.multiple.is_none_or(|m| v.is_some_and(|v| v % m == 0))
    }
}

impl IntSpec {
    /// Whether a number that is not taken lies beyond the width of the numbers that JSON values are made of, and the
    /// schema itself sets no bound on that side.
    pub(crate) fn ends_before(&self, digits: Digits, negative: bool) -> bool {
        let (least, most) = (i64::MIN.into(), u64::MAX.into());
        let value = digits.int().and_then(Int::as_i128);
        if negative {
            self.min == Some(least) && value.is_none_or(|value| value < least)
        } else {
            self.max == Some(most) && value.is_none_or(|value| value > most)
        }
    }
}

impl NumSpec {
    #[expect(clippy::cast_possible_truncation, reason = "that it may become infinite is the question")]
    pub(crate) fn takes(&self, f: f64) -> bool {
        f.is_finite()
            && (!self.single || (f as f32).is_finite())
            && self.min.is_none_or(|m| f >= m)
            && self.max.is_none_or(|m| f <= m)
            && self.above.is_none_or(|m| f > m)
            && self.below.is_none_or(|m| f < m)
            && self.multiple.is_none_or(|m| {
                let quotient = f / m;
                quotient.is_finite() && (quotient - quotient.round()).abs() <= 1e-9
            })
    }
}

impl StrSpec {
    #[inline]
    pub(crate) fn takes(&self, text: &str) -> bool {
        self.is_plain() || self.fault(text).is_none()
    }

    /// What is wrong with `text`, as a code and in words. Lengths are code points, as in JSON Schema.
    pub(crate) fn fault(&self, text: &str) -> Option<(IssueCode, String)> {
        if self.min.is_some() || self.max.is_some() {
            let length = text.chars().count() as u64;
            let words = || if length == 1 { "1 character".into() } else { format!("{length} characters") };
            if self.min.is_some_and(|min| length < min) {
                return Some((IssueCode::Length, format!("too short ({})", words())));
            }
            if self.max.is_some_and(|max| length > max) {
                return Some((IssueCode::Length, format!("too long ({})", words())));
            }
        }
        let pattern = self.pattern.as_ref()?;
        (!pattern.is_match(text)).then(|| (IssueCode::Pattern, "does not match the pattern".into()))
    }
}

/// The member of a closed set of any scalars that `sent` is; numbers are compared by value.
pub(crate) fn const_of<'v>(members: &'v [Value], sent: &Value, rules: Rules) -> Option<&'v Value> {
    if let Some(member) = members.iter().find(|m| same_json(m, sent)) {
        return Some(member);
    }
    let text = sent.as_str()?;
    if rules.has(Rules::TEXT_INTEGER)
        && let Some(int) = int_from_text(text).int()
        && let Some(member) = members.iter().find(|m| m.is_number() && same_json(m, &int.to_value()))
    {
        return Some(member);
    }
    if rules.has(Rules::TEXT_NUMBER)
        && let Some(f) = num_from_text(text)
        && let Some(member) = members.iter().find(|m| m.is_f64() && m.as_f64() == Some(f))
    {
        return Some(member);
    }
    if rules.has(Rules::TEXT_BOOLEAN) {
        let b = bool_from_text(text, rules)?;
        return members.iter().find(|m| m.as_bool() == Some(b));
    }
    None
}

/// Equal as JSON Schema means it: numbers by value, objects without order.
pub(crate) fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || same_float(x.as_f64(), y.as_f64()),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, a)| y.get(k).is_some_and(|b| same_json(a, b)))
        }
        _ => a == b,
    }
}

#[expect(clippy::float_cmp, reason = "JSON Schema compares numbers by their exact value")]
fn same_float(a: Option<f64>, b: Option<f64>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a == b && a.abs() <= EXACT_FLOAT)
}

//! The rules for scalars. Both the reading into a type (`read`) and the search for issues (`judge`) use these functions, so that they
//! always agree.

use super::coercion::{CoercedValue, CoercionRule};
use super::formats;
use super::issue::IssueCode;
use super::plan::{FormatRule, IntSpec, NumSpec, NumberBound, StrSpec};
use super::policy::Rules;
use super::rounding;
use serde_json::{Number, Value};
use std::{cmp::Ordering, fmt};

/// 2^53. From this size on, a float literal may already have been rounded, for example from 2^53 + 1.
pub(crate) const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

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

    /// Returns the integer as a JSON value. A `serde_json` number holds at most 64 bits, so a wider integer becomes a string of its
    /// digits.
    pub(crate) fn to_value(self) -> Value {
        match self {
            Int::Signed(v) => v.into(),
            Int::Unsigned(v) => v.into(),
            wide => wide.to_string().into(),
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

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int::Signed(v) => v.fmt(f),
            Int::Unsigned(v) => v.fmt(f),
            Int::Wide(v) => v.fmt(f),
            Int::WideUnsigned(v) => v.fmt(f),
        }
    }
}

impl From<Int> for CoercedValue<'_> {
    #[inline]
    fn from(int: Int) -> Self {
        match int {
            Int::Signed(v) => CoercedValue::Signed(v),
            Int::Unsigned(v) => CoercedValue::Unsigned(v),
            wide => CoercedValue::Value(Box::new(wide.to_value())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Int(Int),
    /// An integer beyond 128 bits.
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

/// A scalar that was sent in another form, such as 3 for `"3"`, and the rule that accepts this form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoercedScalar<T> {
    pub(crate) value: T,
    pub(crate) rule: CoercionRule,
}

/// Parses an integer that was sent as text. Returns `None` if the rules forbid this coercion.
#[inline]
pub(crate) fn coerced_int(text: &str, rules: Rules) -> Option<CoercedScalar<Digits>> {
    let is_allowed = rules.has(Rules::TEXT_INTEGER);
    is_allowed.then(|| CoercedScalar { value: int_from_text(text), rule: CoercionRule::TextToInteger })
}

/// Converts a float to an integer. Returns `None` if the float is not a whole number below 2^53, or if the rules do not allow floats.
pub(crate) fn coerced_float(float: f64, rules: Rules) -> Option<CoercedScalar<Int>> {
    let value = int_from_f64(float).filter(|_| rules.has(Rules::FLOAT_INTEGER))?;
    Some(CoercedScalar { value, rule: CoercionRule::FloatToInteger })
}

/// Parses a number that was sent as text. Returns `None` if the rules forbid this coercion. The `value` is `None` if the text is not a
/// number.
pub(crate) fn coerced_num(text: &str, rules: Rules) -> Option<CoercedScalar<Option<(Num, &str)>>> {
    let number = || Some((Num::of_text(text)?, text));
    let is_allowed = rules.has(Rules::TEXT_NUMBER);
    is_allowed.then(|| CoercedScalar { value: number(), rule: CoercionRule::TextToNumber })
}

pub(crate) fn coerced_bool(text: &str, rules: Rules) -> Option<CoercedScalar<bool>> {
    let value = bool_from_text(text, rules)?;
    Some(CoercedScalar { value, rule: CoercionRule::TextToBoolean })
}

#[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
fn int_from_f64(f: f64) -> Option<Int> {
    (f.is_finite() && f.fract() == 0.0 && f.abs() < EXACT_FLOAT).then_some(Int::Signed(f as i64))
}

/// Parses a text of 1 to 18 digits: a fast path, because most integers in texts are short.
#[inline]
fn few_digits(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut number = 0;
    for byte in text.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(number)
}

/// Parses `[+-]?[0-9]+(\.0+)?` after trimming. Digits are exact, so the limit 2^53 of floats does not apply.
pub(crate) fn int_from_text(text: &str) -> Digits {
    if let Some(few) = few_digits(text) {
        return Digits::Int(Int::Signed(few));
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

/// A number as `serde_json` reads it. An integer of up to 64 bits keeps its digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Num {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Num {
    /// Parses an integer of up to 64 bits.
    fn whole(text: &str) -> Option<Num> {
        match int_from_text(text).int()? {
            Int::Signed(v) => Some(Num::Signed(v)),
            Int::Unsigned(v) => Some(Num::Unsigned(v)),
            Int::Wide(_) | Int::WideUnsigned(_) => None,
        }
    }

    /// Parses a JSON number. `-0` becomes a float, as `serde_json` reads it.
    pub(crate) fn of_token(token: &str) -> Option<Num> {
        let whole = token != "-0" && token.bytes().all(|b| b == b'-' || b.is_ascii_digit());
        if whole && let Some(whole) = Num::whole(token) {
            return Some(whole);
        }
        token.parse().ok().map(Num::Float)
    }

    /// Parses `[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?` after trimming. Returns `None` for any other text, and for a number that is
    /// infinite as a float.
    pub(crate) fn of_text(text: &str) -> Option<Num> {
        let float = num_from_text(text)?;
        // An integer stays an integer, because types such as `Value` distinguish integers from floats.
        let whole = if text.contains('.') { None } else { Num::whole(text) };
        Some(whole.unwrap_or(Num::Float(float)))
    }

    pub(crate) fn to_value(self) -> Value {
        match self {
            Num::Signed(v) => v.into(),
            Num::Unsigned(v) => v.into(),
            Num::Float(f) => f.into(),
        }
    }

    pub(crate) fn of(number: &Number) -> Option<Num> {
        let whole = number.as_i64().map(Num::Signed).or_else(|| number.as_u64().map(Num::Unsigned));
        whole.or_else(|| number.as_f64().map(Num::Float))
    }
}

fn num_from_text(text: &str) -> Option<f64> {
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

fn bool_from_text(text: &str, rules: Rules) -> Option<bool> {
    if !rules.has(Rules::TEXT_BOOLEAN) {
        return None;
    }
    match text.trim() {
        "true" => Some(true),
        "false" => Some(false),
        text if rules.has(Rules::FOLD_BOOLEAN) && text.eq_ignore_ascii_case("true") => Some(true),
        text if rules.has(Rules::FOLD_BOOLEAN) && text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Returns the text of a number that was sent instead of a string. Returns `None` for a float of 2^53 or more, which may have been
/// rounded, and for `-0`.
pub(crate) fn number_text(number: &Value) -> Option<String> {
    let rounded = number.is_f64() && number.as_f64().is_some_and(|f| f.abs() >= EXACT_FLOAT);
    // The sent text may have been `-0` or `-0.0`, so its digits are unknown.
    let minus_zero = number.as_f64().is_some_and(|f| f == 0.0 && f.is_sign_negative());
    (!rounded && !minus_zero).then(|| number.to_string())
}

impl IntSpec {
    pub(crate) fn takes(&self, v: Int) -> bool {
        self.is_within(v)
            && self.multiple.is_none_or(|unit| match v {
                Int::WideUnsigned(v) => v % unit.unsigned_abs() == 0,
                v => v.as_i128().is_some_and(|v| v % unit == 0),
            })
    }

    /// Returns whether the number is within the bounds. Does not check `multipleOf`.
    pub(crate) fn is_within(&self, number: Int) -> bool {
        // A number that does not fit in an `i128` is greater than every `i128`.
        let v = number.as_i128();
        self.min.is_none_or(|min| v.is_none_or(|v| v >= min))
            && self.max.is_none_or(|max| v.is_some_and(|v| v <= max))
    }

    /// Returns whether a number is out of range only because it exceeds 64 bits. `negative` is the sign of the number.
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
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53; above it the digits are compared")]
    pub(crate) fn takes(&self, number: Num) -> bool {
        let whole: i128 = match number {
            Num::Float(f) => return self.takes_float(f),
            Num::Signed(v) => v.into(),
            Num::Unsigned(v) => v.into(),
        };
        if whole.unsigned_abs() < 1 << 53 { self.takes_float(whole as f64) } else { self.takes_wide(whole) }
    }

    /// Returns the float to which the type rounds a whole number, or `None` if the type keeps the number unchanged.
    #[inline]
    pub(crate) fn rounded_whole(&self, whole: i128) -> Option<f64> {
        let may_round = whole.unsigned_abs() > u128::from(self.exact);
        if may_round { rounding::rounded_whole(whole, self.single) } else { None }
    }

    /// Returns the float to which the type rounds the number `digits`, or `None` if the type keeps the number unchanged. `float` is the
    /// number as a 64-bit float.
    #[expect(clippy::cast_possible_truncation, reason = "whether digits are lost is the question")]
    pub(crate) fn rounded(&self, digits: &str, float: f64) -> Option<f64> {
        if self.single {
            let float = float as f32;
            return rounding::is_rounded_single(digits, float).then(|| rounding::widened(float));
        }
        (!rounding::is_safe(digits) && rounding::is_rounded(digits, float)).then_some(float)
    }

    #[inline]
    fn takes_float(&self, f: f64) -> bool {
        f.is_finite() && (self.is_open || self.is_within(f))
    }

    #[expect(clippy::cast_possible_truncation, reason = "that it may become infinite is the question")]
    fn is_within(&self, f: f64) -> bool {
        (!self.single || (f as f32).is_finite())
            && self.min.is_none_or(|m| f >= m.float)
            && self.max.is_none_or(|m| f <= m.float)
            && self.above.is_none_or(|m| f > m.float)
            && self.below.is_none_or(|m| f < m.float)
            && self.multiple.is_none_or(|m| is_multiple(decimal(f), m))
    }

    fn takes_wide(&self, v: i128) -> bool {
        self.min.is_none_or(|m| m.order(v).is_ge())
            && self.max.is_none_or(|m| m.order(v).is_le())
            && self.above.is_none_or(|m| m.order(v).is_gt())
            && self.below.is_none_or(|m| m.order(v).is_lt())
            && self.multiple.is_none_or(|m| is_multiple(Some((v, 0)), m))
    }
}

impl NumberBound {
    /// Compares an integer with the bound, without rounding.
    #[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates, far beyond 64 bits")]
    fn order(&self, v: i128) -> Ordering {
        if let Some(whole) = self.whole {
            return v.cmp(&whole);
        }
        v.cmp(&(self.float.floor() as i128)).then(if self.float.fract() == 0.0 {
            Ordering::Equal
        } else {
            Ordering::Less
        })
    }
}

/// Returns the shortest decimal that is read as this float: its digits and a power of ten.
pub(super) fn decimal(f: f64) -> Option<(i128, i32)> {
    let text = format!("{f:e}");
    let (mantissa, power) = text.split_once('e')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let power = power.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
    Some((format!("{whole}{fraction}").parse().ok()?, power))
}

/// Returns whether a decimal is a multiple of the shortest decimal of `unit`: 0.3 is a multiple of 0.1. The result is exact, also for
/// large powers of ten.
fn is_multiple(of_f: Option<(i128, i32)>, unit: f64) -> bool {
    let (Some((a, a_power)), Some((b, b_power))) = (of_f, decimal(unit)) else { return false };
    let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
    if a == 0 || b == 0 {
        return a == 0;
    }
    let apart = u32::try_from(i64::from(a_power) - i64::from(b_power));
    #[expect(clippy::single_match_else, reason = "two cases of one size")]
    match apart {
        // Computes `(a * 10^n) mod b`. As `b` has at most 17 digits, no product exceeds 128 bits.
        Ok(mut n) => {
            let (mut out, mut ten) = (a % b, 10 % b);
            while n > 0 {
                if n % 2 == 1 {
                    out = out * ten % b;
                }
                ten = ten * ten % b;
                n /= 2;
            }
            out == 0
        }
        // Computes `a mod (b * 10^n)`. If `b * 10^n` exceeds 128 bits, it is larger than `a`, and `a` is not a multiple of it.
        Err(_) => {
            let n = a_power.abs_diff(b_power);
            let wide = 10u128.checked_pow(n).and_then(|ten| b.checked_mul(ten));
            wide.is_some_and(|wide| a % wide == 0)
        }
    }
}

impl StrSpec {
    #[inline]
    pub(crate) fn takes(&self, text: &str) -> bool {
        self.is_plain || self.fault(text).is_none()
    }

    /// Returns the first fault of `text`, as a code and a message, or `None` if the text is accepted. Lengths count code points, as in
    /// JSON Schema.
    pub(crate) fn fault(&self, text: &str) -> Option<(IssueCode, String)> {
        // Without `..`, the compiler reports a new field.
        let StrSpec { min, max, pattern, format, format_rule: _, is_plain: _ } = self;
        if min.is_some() || max.is_some() {
            let length = text.chars().count() as u64;
            let words = || if length == 1 { "1 character".into() } else { format!("{length} characters") };
            if min.is_some_and(|min| length < min) {
                return Some((IssueCode::Length, format!("too short ({})", words())));
            }
            if max.is_some_and(|max| length > max) {
                return Some((IssueCode::Length, format!("too long ({})", words())));
            }
        }
        if let Some(format) = format
            && self.is_misformatted(format, text)
        {
            let problem =
                formats::fault(format, text).map_or_else(|| format!("not a valid {format}"), String::from);
            return Some((IssueCode::Format, problem));
        }
        let pattern = pattern.as_ref()?;
        let problem =
            if pattern.is_decimal() { "not a decimal number" } else { "does not match the pattern" };
        (!pattern.is_match(text)).then(|| (IssueCode::Pattern, problem.into()))
    }

    /// Returns whether the rules allow this number for a string. A string with a format never accepts a number.
    pub(crate) fn takes_number(&self, number: &Value, rules: Rules) -> bool {
        self.format.is_none() && rules.number_to_text(!number.is_f64())
    }

    fn is_misformatted(&self, format: &str, text: &str) -> bool {
        match self.format_rule {
            FormatRule::Shown => false,
            FormatRule::OfType => formats::is_surely_not(format, text),
            FormatRule::Demanded => !formats::is(format, text),
        }
    }

    /// Returns whether the format of `text` is wrong, and the Rust type has a better message for this fault.
    pub(crate) fn is_for_the_type(&self, text: &str) -> bool {
        self.format_rule == FormatRule::OfType
            && self.fault(text).is_some_and(|(code, _)| code == IssueCode::Format)
    }
}

/// A member of an `enum` or `const`, and the rule by which the sent value was coerced to it, if any.
pub(crate) type PickedMember<'v> = (&'v Value, Option<CoercionRule>);

/// Returns the member that equals `sent`, or to which the rules coerce `sent`. `raw` is the JSON text of `sent`. Numbers are compared by
/// value.
pub(crate) fn const_of<'v>(
    members: &'v [Value],
    sent: &Value,
    raw: &str,
    rules: Rules,
) -> Option<PickedMember<'v>> {
    const BY_NUMBER: Option<CoercionRule> = Some(CoercionRule::ToClosedNumber);
    if let Some(member) = members.iter().find(|m| same_json(m, sent)) {
        // `serde_json` reads `2.0000000000000000001` as 2, but it is not the integer 2.
        let lost = |float: f64| !rounding::is_safe(raw) && rounding::is_rounded(raw, float);
        if !member.is_f64() && sent.is_f64() && sent.as_f64().is_some_and(lost) {
            return None;
        }
        return Some((member, BY_NUMBER.filter(|_| member.is_number() && member != sent)));
    }
    let text = sent.as_str()?;
    if rules.has(Rules::CLOSED_NUMBER)
        && let Some(int) = int_from_text(text).int()
        && let Some(member) = members.iter().find(|m| m.is_number() && same_json(m, &int.to_value()))
    {
        return Some((member, BY_NUMBER));
    }
    if rules.has(Rules::CLOSED_NUMBER)
        && let Some(Num::Float(f)) = Num::of_text(text)
        && let Some(member) = members.iter().find(|m| m.is_f64() && m.as_f64() == Some(f))
    {
        return Some((member, BY_NUMBER));
    }
    let CoercedScalar { value, rule } = coerced_bool(text, rules)?;
    let member = members.iter().find(|m| m.as_bool() == Some(value))?;
    Some((member, Some(rule)))
}

/// Returns whether two values are equal in JSON Schema, which compares numbers by value, and objects without the order of their keys.
pub(crate) fn same_json(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || same_number(x, y),
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| same_json(a, b))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, a)| y.get(k).is_some_and(|b| same_json(a, b)))
        }
        _ => a == b,
    }
}

/// Returns whether two different `Number`s have the same value, such as `1` and `1.0`. An integer and a float beyond 2^53 count as
/// different, because the float may be rounded.
#[expect(clippy::float_cmp, reason = "JSON Schema compares numbers by their exact value")]
#[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
fn same_number(x: &Number, y: &Number) -> bool {
    let whole = |n: &Number| n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from));
    let is = |f: f64, whole: i128| f.fract() == 0.0 && f.abs() <= EXACT_FLOAT && f as i128 == whole;
    match (whole(x), whole(y), x.as_f64(), y.as_f64()) {
        (Some(whole), None, _, Some(f)) | (None, Some(whole), Some(f), _) => is(f, whole),
        (None, None, Some(x), Some(y)) => x == y,
        _ => false,
    }
}

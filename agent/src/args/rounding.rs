//! Decides whether a float is the decimal number that was sent.
//!
//! A float is the sent number if both are exactly equal, as for 2^70, or if the float is written with the same digits, as for
//! `0.1`. Any other number has lost digits, which is recorded.

use std::cmp::Ordering;

/// Number of decimal digits that a 64-bit float always keeps, if the power of ten is from -22 to 22.
pub(crate) const SAFE_DIGITS: usize = 15;
/// Maximum number of significant digits of a float that is written out in full.
const MOST_DIGITS: usize = 767;

/// Maximum number of leading zeros of a fraction with few digits. With more zeros, the float may lose digits or be 0.
const MOST_ZEROS: usize = 300;

/// Returns whether a decimal number differs from `float`, the float of 64 bits that it was read as.
pub(crate) fn is_rounded(decimal: &str, float: f64) -> bool {
    let Some(sent) = Decimal::of(decimal) else { return false };
    !sent.is_written_as(&format!("{float:e}")) && !sent.is_exactly(float)
}

/// Returns whether a decimal number differs from `float`, the float of 32 bits that it was read as.
pub(crate) fn is_rounded_single(decimal: &str, float: f32) -> bool {
    let Some(sent) = Decimal::of(decimal) else { return false };
    !sent.is_written_as(&format!("{float:e}")) && !sent.is_exactly(float.into())
}

/// Returns the float of 64 bits that is written with the same digits as this float of 32 bits.
pub(crate) fn widened(float: f32) -> f64 {
    format!("{float:e}").parse().unwrap_or_else(|_| float.into())
}

/// Returns the nearest float if it differs from the whole number, or else `None`. With `single`, the float has 32 bits.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "whether digits are lost is the question"
)]
pub(crate) fn rounded_whole(whole: i128, single: bool) -> Option<f64> {
    let safe = if single { 1 << 24 } else { 1 << 53 };
    if whole.unsigned_abs() <= safe {
        return None;
    }
    let float = whole as f64;
    let digits = whole.to_string();
    if single {
        let float = float as f32;
        return is_rounded_single(&digits, float).then(|| widened(float));
    }
    is_rounded(&digits, float).then_some(float)
}

/// Returns whether reading may lose digits: the text has a number of more than 15 digits, a fraction so small that a float may be 0, or,
/// with `exponents`, an exponent of two or more digits. Digits in strings may count, too.
pub(crate) fn may_round(text: &str, exponents: bool) -> bool {
    let bytes = text.as_bytes();
    let is_part = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    let mut at = SAFE_DIGITS;
    while at < bytes.len() {
        if is_part(at) {
            let start = (0..at).rev().take_while(|at| is_part(*at)).last().unwrap_or(at);
            let end = (at..bytes.len()).find(|at| !is_part(*at)).unwrap_or(bytes.len());
            let is_long = end - start > SAFE_DIGITS && {
                let digits = text.get(start..end).unwrap_or_default().trim_start_matches(['0', '.']);
                end - start > MOST_ZEROS || digits.len() - digits.matches('.').count() > SAFE_DIGITS
            };
            if is_long {
                return true;
            }
            at = at.max(end);
        }
        at += SAFE_DIGITS + 1;
    }
    let is_exponent = |part: &[u8]| match part {
        [b'e' | b'E', b'+' | b'-', one, two] | [b'e' | b'E', one, two, _] => {
            one.is_ascii_digit() && two.is_ascii_digit()
        }
        _ => false,
    };
    exponents && bytes.windows(4).any(is_exponent)
}

/// Returns whether a float is very small (below 1e-7) or very large (1e22 or more). Such a float can differ from the sent number even if
/// that number has few digits.
#[inline]
pub(crate) fn is_extreme(float: f64) -> bool {
    let size = float.abs();
    !(1e-7..1e22).contains(&size)
}

/// Returns whether a float has at most six decimal digits, so that a float of 32 bits keeps all of them.
#[inline]
pub(crate) fn has_few_digits(float: f64) -> bool {
    [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6].into_iter().any(|power: f64| {
        let whole = (float * power).round();
        whole.abs() < 1e6 && (whole / power).to_bits() == float.to_bits()
    })
}

pub(crate) fn is_whole(decimal: &str) -> bool {
    Decimal::of(decimal).is_some_and(|number| number.power >= 0)
}

pub(crate) fn is_safe(decimal: &str) -> bool {
    decimal.len() <= SAFE_DIGITS && !decimal.bytes().any(|byte| matches!(byte, b'e' | b'E'))
}

/// A decimal number: digits without zeros at either end, times a power of ten.
struct Decimal {
    is_negative: bool,
    digits: String,
    power: i64,
}

impl Decimal {
    /// Parses `[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?`, in time linear in its length.
    fn of(text: &str) -> Option<Decimal> {
        let text = text.trim();
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = String::with_capacity(mantissa.len());
        digits.push_str(whole);
        digits.push_str(fraction);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let length = digits.trim_end_matches('0').len();
        let zeros = digits.len() - length;
        digits.truncate(length);
        let start = digits.len() - digits.trim_start_matches('0').len();
        digits.drain(..start);
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let power = power(exponent)?.saturating_sub(count(fraction.len())).saturating_add(count(zeros));
        let is_negative = text.starts_with('-');
        Some(Decimal { is_negative, power: if digits.is_empty() { 0 } else { power }, digits })
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Returns whether `text` has the same value, such as `1.50` for `1.5`.
    fn is_written_as(&self, text: &str) -> bool {
        Decimal::of(text).is_some_and(|float| {
            (self.is_negative == float.is_negative || self.is_zero())
                && self.power == float.power
                && self.digits == float.digits
        })
    }

    fn is_exactly(&self, float: f64) -> bool {
        if self.is_zero() || float == 0.0 {
            return self.is_zero() && float == 0.0;
        }
        if self.is_negative != float.is_sign_negative() {
            return false;
        }
        match self.digits.len().cmp(&38) {
            Ordering::Less => self.in_binary() == Some(binary(float)),
            _ if self.digits.len() > MOST_DIGITS => false,
            _ => {
                // First compares only as many digits as were sent, because most different numbers already differ in these digits.
                let shown = |digits: usize| format!("{float:.*e}", digits - 1);
                self.is_written_as(&shown(self.digits.len())) && self.is_written_as(&shown(MOST_DIGITS))
            }
        }
    }

    /// Returns `(odd, power)` of the number `odd * 2^power`. Returns `None` if `odd` is not an integer of at most 64 bits.
    fn in_binary(&self) -> Option<(u64, i64)> {
        let digits: u128 = self.digits.parse().ok()?;
        let twos = digits.trailing_zeros();
        let odd = digits >> twos;
        let fives =
            u32::try_from(self.power.unsigned_abs()).ok().and_then(|power| 5_u128.checked_pow(power))?;
        let odd = if self.power >= 0 {
            odd.checked_mul(fives)?
        } else if odd.is_multiple_of(fives) {
            odd / fives
        } else {
            return None;
        };
        Some((u64::try_from(odd).ok()?, self.power + i64::from(twos)))
    }
}

fn binary(float: f64) -> (u64, i64) {
    let bits = float.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or_default();
    let (odd, power) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let twos = odd.trailing_zeros();
    (odd >> twos, power + i64::from(twos))
}

/// Parses an exponent: digits with an optional sign. An exponent beyond `i64` is replaced by one that no float reaches.
fn power(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(i64::MAX / 2);
    Some(if text.starts_with('-') { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn rounds(text: &str) -> bool {
        is_rounded(text, text.parse().expect("a number"))
    }

    #[test]
    fn a_float_is_its_own_digits_or_its_own_value() {
        let two = |power: i32| format!("{:.0}", 2_f64.powi(power));
        for exact in [
            "0",
            "-0",
            "0.0",
            "0e999999999",
            "0.1",
            "-0.1",
            "1e23",
            "1.50",
            "100",
            "1e3",
            "5e-324",
            "1180591620717411303424",
            "9007199254740992",
            "9007199254740994",
            "0.1000000000000000055511151231257827021181583404541015625",
            "1.7976931348623157e308",
            "0.30000000000000004",
            "00.5",
            "+2",
            "1.000000000000000000000000",
            "10000000000000000000000000000",
        ] {
            assert!(!rounds(exact), "{exact}");
        }
        assert!(!rounds(&two(200)) && !rounds(&two(1023)));
        for rounded in [
            "9007199254740993",
            "18446744073709551617",
            "12345678901234567890123",
            "1e-400",
            "-1e-400",
            "0.10000000000000000555",
            "1.0000000000000000001",
            "0.30000000000000001",
            "1e-999999999",
            "0.1000000000000000055511151231257827021181583404541015624",
            "0.10000000000000000555111512312578270211815834045410156251",
            "3.141592653589793238462643",
        ] {
            assert!(rounds(rounded), "{rounded}");
        }
        assert!(rounds(&(two(200) + ".5")));
    }

    #[test]
    fn thirty_two_bits() {
        for (text, rounded) in [
            ("16777217", true),
            ("16777216", false),
            ("0.1", false),
            ("3.1415927", false),
            ("3.14159265", true),
            ("1e-50", true),
        ] {
            assert_eq!(is_rounded_single(text, text.parse().expect("a number")), rounded, "{text}");
        }
        assert_eq!(widened(0.1).to_bits(), 0.1_f64.to_bits());
        assert_eq!(rounded_whole(16_777_217, true), Some(16_777_216.0));
        assert_eq!(rounded_whole(16_777_217, false), None);
        assert_eq!(rounded_whole(9_007_199_254_740_993, false), Some(9_007_199_254_740_992.0));
        assert_eq!(rounded_whole(1 << 62, false), None);
    }

    #[test]
    fn long_digits_take_linear_time() {
        let start = Instant::now();
        for text in [
            "1".repeat(1_000_000).replacen('1', "0.", 1),
            format!("1e-{}", "9".repeat(1_000_000)),
            format!("{}1", "0".repeat(1_000_000)),
            format!("0.{}", "0".repeat(1_000_000)),
        ] {
            rounds(&text);
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    #[test]
    fn a_text_without_long_numbers_is_safe() {
        for safe in
            ["", "{}", r#"{"a":0.123456789012345}"#, "[1.5,2.5,3.25,100000,0.0001]", "1234567890.1234"]
        {
            assert!(!may_round(safe, false), "{safe}");
        }
        for before in 0..40 {
            for digits in ["1234567890123456", "0.12345678901234567", "12345678901234567890123"] {
                let text = format!("{}{digits}]", " ".repeat(before));
                assert!(may_round(&text, false), "{text}");
            }
        }
        assert!(
            may_round("[1e-400]", true)
                && may_round(&format!("[0.{}1]", "0".repeat(400)), false)
                && may_round("[1E10]", true)
                && !may_round("[1e9]", true)
                && !may_round("here 1", true)
        );
        assert!(is_safe("123456789012345") && !is_safe("1e-400") && !is_safe("1234567890123456"));
    }
}

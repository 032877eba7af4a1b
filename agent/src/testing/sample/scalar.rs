//! Generates numbers and texts: common ones, and those at the limits of a schema.

use super::super::pattern;
use super::{MAX_MADE, SAFE, Sampler};
use serde_json::{Map, Number, Value, json};

impl Sampler<'_> {
    pub(super) fn integer(&mut self, schema: &Map<String, Value>) -> Value {
        let whole = |key: &str| {
            let value = schema.get(key)?;
            #[expect(clippy::cast_possible_truncation, reason = "bounds of samples may be rounded")]
            value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))
        };
        let least = whole("minimum").or_else(|| whole("exclusiveMinimum").map(|v| v.saturating_add(1)));
        let most = whole("maximum").or_else(|| whole("exclusiveMaximum").map(|v| v.saturating_sub(1)));
        let (least, most) = (least.unwrap_or(-SAFE - 1), most.unwrap_or(SAFE + 1));
        let edges = [1, 0, -1, 42, 1_000, SAFE - 1, SAFE, SAFE + 1, 1 - SAFE, -SAFE, i64::from(i32::MAX) + 1];
        let mut ways: Vec<i64> = edges.into_iter().filter(|v| (least..=most).contains(v)).collect();
        ways.extend([least, most, least.saturating_add(1), most.saturating_sub(1)]);
        let value = ways.get(self.choices.pick(ways.len())).copied().unwrap_or(least);
        match whole("multipleOf") {
            Some(step) if step > 0 => {
                let rest = value.rem_euclid(step);
                let down = value.checked_sub(rest).filter(|down| *down >= least);
                down.unwrap_or_else(|| value.saturating_add(step - rest)).into()
            }
            _ => value.into(),
        }
    }

    pub(super) fn number(&mut self, schema: &Map<String, Value>) -> Value {
        let float = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let Some(step) = float("multipleOf") {
            let times =
                [1.0, 0.0, 2.0, 3.0, 10.0, 7.0, -1.0].get(self.choices.pick(7)).copied().unwrap_or(1.0);
            let from = float("minimum").map_or(0.0, |least| (least / step).ceil());
            return Number::from_f64((from + times) * step).map_or(Value::Null, Value::Number);
        }
        let inside = |v: &f64| {
            float("minimum").is_none_or(|end| *v >= end)
                && float("maximum").is_none_or(|end| *v <= end)
                && float("exclusiveMinimum").is_none_or(|end| *v > end)
                && float("exclusiveMaximum").is_none_or(|end| *v < end)
        };
        let ends = [float("minimum"), float("maximum"), float("exclusiveMinimum"), float("exclusiveMaximum")];
        let near =
            ends.into_iter().flatten().flat_map(|end| [end, end + 0.5, end - 0.5, end + 1e-6, end - 1e-6]);
        let some = [0.5, 1.0, 0.0, -0.0, -1.5, 1e-7, 123_456.75, 3e10, 9_007_199_254_740_993.0];
        let between = float("minimum").zip(float("maximum")).map(|(a, b)| f64::midpoint(a, b));
        let mut ways: Vec<Value> = some
            .into_iter()
            .chain(near)
            .chain(between)
            .filter(inside)
            .filter_map(|v| Number::from_f64(v).map(Value::Number))
            .collect();
        // JSON integers are valid for the type `number`, too.
        ways.extend(
            [2_i64, -3, 0]
                .into_iter()
                .filter(|v| inside(&(f64::from(i32::try_from(*v).unwrap_or(0)))))
                .map(Value::from),
        );
        ways.get(self.choices.pick(ways.len())).cloned().unwrap_or_else(|| json!(0))
    }

    pub(super) fn text(&mut self, schema: &Map<String, Value>) -> String {
        if let Some(made) = schema.get("format").and_then(Value::as_str).and_then(formatted) {
            return made.get(self.choices.pick(made.len())).copied().unwrap_or_default().to_owned();
        }
        if schema.get("contentEncoding").is_some_and(|encoding| encoding == "base64") {
            let made = ["aGVsbG8=", "", "AA==", "/+8="];
            return made.get(self.choices.pick(made.len())).copied().unwrap_or_default().to_owned();
        }
        let length = |key: &str| schema.get(key).and_then(Value::as_u64);
        let (least, most) = (length("minLength").unwrap_or(0), length("maxLength").unwrap_or(u64::MAX));
        if let Some(made) =
            schema.get("pattern").and_then(Value::as_str).and_then(|p| pattern::matching(p, self.choices))
        {
            return made;
        }
        let long = "many words ".repeat(30);
        let texts = [
            "some text",
            "",
            "a",
            "42",
            "true",
            "null",
            "{\"a\": [1]}",
            "é日本😀 \u{301}",
            "line\nbreak\t\"quoted\" \\ / \u{1}\u{7f}\u{2028}",
            " spaced ",
            "-0.0",
            "C:\\path/to~1/x",
            &long,
            "😀",
        ];
        let text = texts.get(self.choices.pick(texts.len())).copied().unwrap_or_default();
        let wanted = match self.choices.pick(4) {
            1 => least,
            2 if most <= MAX_MADE => most,
            _ => u64::try_from(text.chars().count()).unwrap_or(0).clamp(least, most.max(least)),
        };
        text.chars()
            .chain("xyzé".chars().cycle())
            .take(usize::try_from(wanted).unwrap_or(0).min(5_000))
            .collect()
    }
}

fn formatted(format: &str) -> Option<&'static [&'static str]> {
    Some(match format {
        "date" => &["2026-11-21", "2024-02-29", "1970-01-01"],
        "date-time" => &["2026-11-21T10:30:00Z", "1999-12-31T23:59:59.123+05:30"],
        "partial-date-time" => &["2026-11-21T10:30:00", "1999-12-31T23:59:59.5"],
        "zoned-date-time" => &["2026-11-21T10:30:00+00:00[UTC]", "2026-11-21T10:30:00+01:00[+01:00]"],
        "time" => &["10:30:00Z", "23:59:59+02:00"],
        "partial-time" => &["10:30:00", "00:00:00"],
        "duration" => &["PT1H30M", "P1D", "PT0S"],
        "uuid" => &["67e55044-10b1-426f-9247-bb680e5fe0c8", "00000000-0000-0000-0000-000000000000"],
        "uri" | "iri" | "uri-reference" => &["https://example.com/a?b=c#d", "mailto:ann@example.com"],
        "base64" => &["aGVsbG8=", "", "AA==", "/+8="],
        "email" => &["ann@example.com"],
        "hostname" => &["example.com"],
        "ipv4" | "ip" => &["192.0.2.1", "0.0.0.0"],
        "ipv6" => &["2001:db8::1", "::"],
        _ => return None,
    })
}

use super::{Base64, HumanDuration};
use std::time::Duration;

fn read(text: &str) -> Result<Duration, String> {
    text.parse::<HumanDuration>().map(Duration::from).map_err(|error| error.to_string())
}

#[test]
fn durations_are_read_in_every_spelling() {
    let second = Duration::from_secs(1);
    for (text, want) in [
        ("90s", second * 90),
        ("1h 30m", second * 5_400),
        ("1h30m", second * 5_400),
        (" 1 hour 30 minutes ", second * 5_400),
        ("2d", second * 172_800),
        ("1w", second * 604_800),
        ("250ms", Duration::from_millis(250)),
        ("1.5h", second * 5_400),
        ("1.50 hours", second * 5_400),
        ("0.1s", Duration::from_millis(100)),
        ("1,5s", Duration::from_millis(1_500)),
        ("3us", Duration::from_micros(3)),
        ("3µs", Duration::from_micros(3)),
        ("7ns", Duration::from_nanos(7)),
        ("0s", Duration::ZERO),
        ("PT1H30M", second * 5_400),
        ("P1DT2H", second * 93_600),
        ("P2W", second * 1_209_600),
        ("PT0.25S", Duration::from_millis(250)),
        ("PT36H", second * 129_600),
        ("18446744073709551615s", Duration::from_secs(u64::MAX)),
        ("18446744073709551615s 999999999ns", Duration::MAX),
    ] {
        assert_eq!(read(text), Ok(want), "{text}");
    }
}

#[test]
fn what_is_no_duration_is_refused_in_words() {
    for (text, words) in [
        ("", "is not a duration"),
        ("90", "has no unit after 90: write for example `90s` or `90m`"),
        ("1h 30", "has no unit after 30"),
        ("-5s", "without a sign"),
        ("+5s", "without a sign"),
        ("P-1D", "ISO 8601"),
        ("soon", "is not a duration"),
        ("5 parsecs", "has no unit `parsecs`: known are"),
        ("30M", "no fixed length"),
        ("2 years", "no fixed length"),
        ("P1Y", "no fixed length"),
        ("P1M", "no fixed length"),
        ("1H", "write it as `h`"),
        ("P", "is not a duration"),
        ("PT", "ISO 8601"),
        ("PT1", "ISO 8601"),
        ("P1H", "ISO 8601"),
        ("PT1D", "ISO 8601"),
        ("P1TT2H", "ISO 8601"),
        ("pt1h", "is not a duration"),
        ("30m 1h", "out of order"),
        ("5m 5m", "twice"),
        ("1.5h 30m", "fraction before"),
        (".5s", "is not a duration"),
        ("5.s", "has no unit"),
        ("1h:30m", "is not a duration"),
        ("0.1ns", "finer than a nanosecond"),
        ("0.0000000001s", "finer than a nanosecond"),
        ("18446744073709551616s", "too long"),
        ("99999999999999999999999999999999999999999999w", "too long"),
        // The fraction exceeds `u128::MAX`.
        ("340282366920938463463374607431768211.456us", "too long"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.contains(words), "{text:?}: {error}");
    }
    assert!(read(&"1".repeat(100_000)).is_err());
}

#[test]
fn durations_are_written_as_they_are_read() {
    for (duration, text) in [
        (Duration::from_secs(5_400), "1h 30m"),
        (Duration::from_secs(700_000), "8d 2h 26m 40s"),
        (Duration::new(1, 2_003_004), "1s 2ms 3us 4ns"),
        (Duration::MAX, "213503982334601d 7h 15s 999ms 999us 999ns"),
    ] {
        assert_eq!(HumanDuration::from(duration).to_string(), text);
        assert_eq!(read(text), Ok(duration));
    }
}

#[test]
fn base64_is_one_spelling() {
    let bytes: Base64 = serde_json::from_str(r#""+//+AA==""#).expect("is base64");
    assert_eq!(*bytes, [0xfb, 0xff, 0xfe, 0]);
    assert_eq!(serde_json::to_string(&bytes).expect("is JSON"), r#""+//+AA==""#);
    assert_eq!(format!("{bytes:?}"), "Base64(4 bytes)");
    for (text, words) in [
        ("-__-AA==", "not the one for URLs"),
        ("+//+AA", "padding"),
        ("+//+AA=", "padding"),
        ("+//+ AA==", "remove spaces"),
        ("+//+A", "cut short"),
        ("+//+AB==", "cut short"),
        ("é", "`é` at character 1"),
        ("aé==", "`é` at character 2"),
        ("====", "padding"),
        ("data:text/plain;base64,AA==", "after the comma"),
    ] {
        let error = serde_json::from_str::<Base64>(&format!("{text:?}")).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

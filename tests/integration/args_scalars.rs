//! Scalars under the default policy.

use super::{W, bad, ok, w};

#[test]
fn integers() {
    ok(r#"{"v":1.0}"#, w(1i64));
    ok(r#"{"v":" 42 "}"#, w(42u8));
    ok(r#"{"v":"+7"}"#, w(7i32));
    ok(r#"{"v":"007"}"#, w(7i32));
    ok(r#"{"v":-0.0}"#, w(0i32));
    ok(r#"{"v":-0}"#, w(0i32));
    ok(r#"{"v":"1.0"}"#, w(1i64));
    ok(r#"{"v":18446744073709551615}"#, w(u64::MAX));
    ok(r#"{"v":"18446744073709551615"}"#, w(u64::MAX));
    ok(r#"{"v":-9223372036854775808}"#, w(i64::MIN));
    for text in [
        "1.5",
        "\"1.5\"",
        "\"1e3\"",
        "\"1_000\"",
        "\"\"",
        "\" \"",
        "\"0x10\"",
        "true",
        "1e300",
        "null",
        "[1]",
    ] {
        bad::<W<i64>>(&format!("{{\"v\":{text}}}"), &[("/v", "type")]);
    }
}

#[test]
fn integers_out_of_range() {
    bad::<W<u8>>(r#"{"v":256}"#, &[("/v", "range")]);
    bad::<W<u8>>(r#"{"v":"256"}"#, &[("/v", "range")]);
    bad::<W<u32>>(r#"{"v":-1}"#, &[("/v", "range")]);
    bad::<W<u32>>(r#"{"v":-1.0}"#, &[("/v", "range")]);
    bad::<W<i32>>(r#"{"v":2147483648}"#, &[("/v", "range")]);
    bad::<W<i64>>(r#"{"v":18446744073709551615}"#, &[("/v", "range")]);
    // Beyond 64 and beyond 128 bits, as a literal and as text.
    bad::<W<i64>>(r#"{"v":18446744073709551616}"#, &[("/v", "range")]);
    bad::<W<u64>>(r#"{"v":"18446744073709551616"}"#, &[("/v", "range")]);
    let long = "9".repeat(60);
    bad::<W<i64>>(&format!("{{\"v\":{long}}}"), &[("/v", "range")]);
    bad::<W<i64>>(&format!("{{\"v\":\"{long}\"}}"), &[("/v", "range")]);
    bad::<W<u128>>(&format!("{{\"v\":{long}}}"), &[("/v", "range")]);
    bad::<W<i128>>(&format!("{{\"v\":\"{}\"}}", u128::MAX), &[("/v", "range")]);
}

#[test]
fn integers_of_128_bits() {
    ok(r#"{"v":170141183460469231731687303715884105727}"#, w(i128::MAX));
    ok(r#"{"v":"-170141183460469231731687303715884105728"}"#, w(i128::MIN));
    ok(r#"{"v":340282366920938463463374607431768211455}"#, w(u128::MAX));
    ok(r#"{"v":"340282366920938463463374607431768211455"}"#, w(u128::MAX));
    ok(r#"{"v":3.0}"#, w(3i128));
    ok(r#"{"v":"\u0035"}"#, w(5i128));
    ok(r#"{"v":[1,"2"]}"#, w(vec![1i128, 2]));
    ok(r#"{"v":null}"#, w(None::<u128>));
    bad::<W<u128>>(r#"{"v":-1}"#, &[("/v", "range")]);
    bad::<W<i128>>(r#"{"v":1.5}"#, &[("/v", "type")]);
    bad::<W<i128>>(r#"{"v":true}"#, &[("/v", "type")]);
}

#[test]
fn numbers() {
    ok(r#"{"v":3}"#, w(3.0f64));
    ok(r#"{"v":" 2.5e3 "}"#, w(2500.0f64));
    ok(r#"{"v":"-4"}"#, w(-4.0f64));
    ok(r#"{"v":1e300}"#, w(1e300f64));
    for text in ["NaN", "inf", "Infinity", "1e999", ".5", "5.", "0x10", "", "1_0"] {
        bad::<W<f64>>(&format!("{{\"v\":\"{text}\"}}"), &[("/v", "type")]);
    }
    bad::<W<f64>>(r#"{"v":true}"#, &[("/v", "type")]);
    // serde_json alone makes infinity of it.
    bad::<W<f32>>(r#"{"v":1e300}"#, &[("/v", "range")]);
    bad::<W<f64>>(r#"{"v":1e999}"#, &[("/v", "range")]);
}

#[test]
fn booleans() {
    ok(r#"{"v":"true"}"#, w(true));
    ok(r#"{"v":" false "}"#, w(false));
    for text in ["1", "0", "\"True\"", "\"yes\"", "\"1\"", "null", "\"\""] {
        bad::<W<bool>>(&format!("{{\"v\":{text}}}"), &[("/v", "type")]);
    }
}

#[test]
fn text() {
    ok(r#"{"v":"1"}"#, w("1".to_string()));
    ok(r#"{"v":"  x\u00e9\n "}"#, w("  xé\n ".to_string()));
    ok(r#"{"v":"é"}"#, w('é'));
    ok(r#"{"v":[1,"a",2.5]}"#, w(vec!["1".to_string(), "a".into(), "2.5".into()]));
    ok(r#"{"v":null}"#, w(None::<String>));
    // It would be rounded on the way.
    bad::<W<Vec<String>>>(r#"{"v":[12345678901234567890123]}"#, &[("/v/0", "type")]);
    bad::<W<String>>(r#"{"v":1.10}"#, &[("/v", "type")]);
    bad::<W<String>>(r#"{"v":5}"#, &[("/v", "type")]);
    bad::<W<String>>(r#"{"v":null}"#, &[("/v", "type")]);
    bad::<W<char>>(r#"{"v":"ab"}"#, &[("/v", "length")]);
    bad::<W<Vec<String>>>(
        r#"{"v":[true,null,["x"],{}]}"#,
        &[("/v/0", "type"), ("/v/1", "type"), ("/v/2", "type"), ("/v/3", "type")],
    );
    bad::<W<Vec<String>>>(r#"{"v":"a,b"}"#, &[("/v", "type")]);
    bad::<W<Vec<String>>>(r#"{"v":"[\"a\"]"}"#, &[("/v", "type")]);
}

#[test]
fn options() {
    ok("{}", w(None::<i32>));
    ok(r#"{"v":null}"#, w(None::<i32>));
    ok("{\"v\" :\n null }", w(None::<i32>));
    ok(r#"{"\u0076":null}"#, w(None::<i32>));
    ok(r#"{"\u0076":5}"#, w(Some(5)));
    ok(r#"{"v":"5"}"#, w(Some(5)));
    ok(r#"{"v":"5"}"#, w(Some(Some(5))));
    ok(r#"{"v":null}"#, w(None::<Option<i32>>));
    ok("", w(None::<i32>));
    ok(" \n", w(None::<i32>));
    ok("null", w(None::<i32>));
    ok(r#""{\"v\":1}""#, w(Some(1)));
    ok(r#"{"v":[null,1]}"#, w(vec![None, Some(1)]));
    bad::<W<Vec<Option<i32>>>>(r#"{"v":[null,"x"]}"#, &[("/v/1", "type")]);
}

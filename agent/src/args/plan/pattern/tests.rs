use super::translated;

#[track_caller]
fn check(pattern: &str, matching: &[&str], others: &[&str]) {
    let translated = translated(pattern).expect(pattern);
    let regex = regex::Regex::new(&translated).unwrap_or_else(|e| panic!("{pattern} as {translated}: {e}"));
    for text in matching {
        assert!(regex.is_match(text), "{pattern} as {translated}: {text:?}");
    }
    for text in others {
        assert!(!regex.is_match(text), "{pattern} as {translated}: {text:?}");
    }
}

#[test]
fn classes_are_those_of_ecma_262() {
    check(r"^\d+$", &["42"], &["٤٢"]);
    check(r"^[\w-]+$", &["a_b-c"], &["é"]);
    check(r"^\D+$", &["٤٢"], &["4"]);
    check(r"^[\D]$", &["٤"], &["4"]);
    check(r"^[\W_]$", &["é", "_"], &["e"]);
    check(r"^[^\W]$", &["e"], &["é", "-"]);
    check(r"^\s$", &["\u{FEFF}", "\u{A0}", "\u{2028}", "\t", "\u{B}"], &["\u{85}", "a"]);
    check(r"^\S$", &["\u{85}"], &["\u{FEFF}", " "]);
    check(r"^[\s]$", &["\u{FEFF}"], &["\u{85}"]);
    check(r"^.$", &["a", "\u{85}"], &["\n", "\r", "\u{2028}"]);
    check(r"\bb", &["éb"], &["ab"]);
    check(r"a\Bb", &["ab"], &["a b"]);
    check(r"^\\d$", &[r"\d"], &["4"]);
    check(r"^[\b]$", &["\u{8}"], &["b"]);
}

#[test]
fn brackets_hold_no_operations() {
    check(r"^[[]$", &["["], &["a"]);
    check(r"^[[:alpha:]]$", &["a]", ":]"], &["a", "b]"]);
    check(r"^[a&&b]$", &["a", "&", "b"], &["c"]);
    check(r"^[a~~b]$", &["a", "~", "b"], &["c"]);
    check(r"^[+--]$", &["+", ",", "-"], &["."]);
    check(r"^[a-c--]$", &["b", "-"], &["d"]);
    check(r"^[\w-.]$", &["a", "-", "."], &["/"]);
    check(r"^[a-]$", &["a", "-"], &["b"]);
    check(r"^[-a]$", &["a", "-"], &["b"]);
    check(r"^[]$", &[], &["", "a"]);
    check(r"^[^]$", &["a", "\n"], &[""]);
    check(r"^[^a^]$", &["b"], &["a", "^"]);
}

#[test]
fn characters_by_number() {
    check(r"^\x41\u0042\u{43}\cJ\0$", &["ABC\n\0"], &["ABC"]);
    check(r"^[\uD83D\uDE00]$", &["😀"], &["a"]);
    check(r"^\p{L}[\p{Lu}]\/\-é$", &["éÉ/-é"], &["éé/-é"]);
    check(r"^(?<name>a)(?:b)(?i:c)$", &["abC"], &["ABC"]);
}

#[test]
fn what_has_another_meaning_here_is_refused() {
    for pattern in [
        r"\Aa", r"a\z", r"\a", r"\Q", r"[\z]", r"\uD83D", r"\x4", r"\c1", "[a", "a\\", "(?s).", "(?x)a",
        "a{,5}", "a{ 2}", "a{2 }", "a{2, 3}", r"(a)\1", r"\k<n>", r"\u{41", r"\u{+41}", r"\u{}",
    ] {
        assert!(translated(pattern).is_err(), "{pattern}");
    }
}

//! Compile errors: what a mistake in an annotation looks like to the person who made it. See `README.md`.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*/*.rs");
}

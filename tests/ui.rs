//! Compile errors: what a mistake in an annotation looks like to the person who made it. See `ui/README.md`.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/fail/*/*.rs");
}

//! `tools![…]`: tools that are types, and the comparison of their names at compile time.

use super::set::Entry;

/// A tool that is a type. For a function, `#[tool]` generates a type of the same name.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "a path in `tools![…]` names a function or struct marked `#[tool]`",
    note = "put `#[tool]` on it; if it is a value that holds tools, write `{{ value }}`"
)]
pub trait StaticTool {
    const NAME: &'static str;
    fn entry() -> Entry;
}

/// Lists tools: paths of functions and structs marked [`#[tool]`](macro@crate::tool), and values that convert to tools
/// ([`IntoTools`](crate::tool::IntoTools)).
///
#[doc = include_str!("../docs/tools.md")]
#[doc(alias = "tools![]")]
#[macro_export]
macro_rules! tools {
    ($($entries:tt)*) => { $crate::__private::tools_impl! { ($crate) $($entries)* } };
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const HEAD: &str = "two tools in this list are named `";
const TAIL: &str = "`: rename one with `#[tool(name = \"…\")]`";

#[doc(hidden)]
pub const fn duplicate_message_len(name: &str) -> usize {
    HEAD.len() + name.len() + TAIL.len()
}

/// Returns the message that two tools have the same name, as UTF-8. A panic in a constant cannot format a text, so the bytes are joined
/// here.
#[doc(hidden)]
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time; `N` is the sum of the lengths")]
pub const fn duplicate_message<const N: usize>(name: &str) -> [u8; N] {
    let (parts, mut out, mut end, mut part) =
        ([HEAD.as_bytes(), name.as_bytes(), TAIL.as_bytes()], [0; N], 0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            out[end] = parts[part][at];
            end += 1;
            at += 1;
        }
        part += 1;
    }
    out
}

/// Panics at compile time with `message` if `name` is one of the names `before` it in the list.
#[doc(hidden)]
#[track_caller]
pub const fn assert_distinct(name: &str, before: &[&str], message: &[u8]) {
    let mut at = 0;
    while at < before.len() {
        if same(before[at].as_bytes(), name.as_bytes()) {
            match std::str::from_utf8(message) {
                Ok(message) => panic!("{}", message),
                Err(_) => panic!("two tools in this list have one name"),
            }
        }
        at += 1;
    }
}

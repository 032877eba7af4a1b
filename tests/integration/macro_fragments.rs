//! Tools made by `macro_rules!`: every kind of fragment, wherever one may stand.

#![expect(
    clippy::let_and_return,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    reason = "tools as people write them"
)]

use crate::macro_support::{definition, property, text};
use agent::{ToolArgs, ToolOutput, tool, tools};

macro_rules! body {
    ($name:ident, $body:block) => {
        #[doc = "A body."]
        #[tool]
        fn $name(_x: u8) -> u8 $body
    };
    (async $name:ident, $body:block) => {
        #[doc = "A body."]
        #[tool]
        async fn $name(_x: u8) -> u8 $body
    };
    (deeper $name:ident, $body:block) => {
        body!($name, $body);
    };
}
body!(with_body, { 1 });
body!(async with_async_body, {
    let two = 2;
    two
});
body!(deeper with_deep_body, { 3 });

pub(crate) struct Shop;

macro_rules! methods {
    ($ty:ty, $name:ident, $receiver:ident, $body:block) => {
        #[tool]
        impl $ty {
            #[doc = "A method."]
            #[tool]
            fn $name(&$receiver, _by: u8) -> u8 $body
        }
    };
}
methods!(Shop, with_method_body, self, { 4 });

macro_rules! signature {
    ($(#[$meta:meta])* $vis:vis, $name:ident, $pat:pat, $ty:ty, $result:ty, $life:lifetime, $path:path, $value:expr, $text:literal) => {
        $(#[$meta])*
        $vis fn $name<$life>(
            #[arg(default = $value, range($value..=$value), multiple_of = $value)] $pat: $ty,
            #[arg(length($value..), example = $text, alias = $text, rename = $text)] words: &[$path],
            state: &$life Shop,
        ) -> $result {
            let _ = (words, state);
            <$result>::from($text)
        }
    };
}
signature!(
    #[tool(read_only, max_attempts = 3)]
    /// Every fragment.
    pub(crate), every, _number, u8, String, 'a, String, 2, "many"
);

macro_rules! options {
    ($name:ident, $text:literal, $path:path, $closure:expr, $count:expr, $flag:literal, $range:expr, $tree:tt) => {
        #[tool(
            name = $text, description = $text, title = $text, timeout = $text, approval = when($closure),
            max_retries = $count, max_result_bytes = $count, cache = $flag, examples($tree), coerce = "strict"
        )]
        fn $name(#[arg(validate = $path, range($range))] n: u8) -> u8 {
            n
        }
    };
}

fn even(n: &u8) -> Result<(), String> {
    if n.is_multiple_of(2) { Ok(()) } else { Err("odd".into()) }
}

options!(options_from_fragments, "10s", crate::macro_fragments::even, |n: &u8| *n > 7, 9, false, 1..=8, {"n": 4});

macro_rules! item {
    ($item:item) => {
        #[tool]
        $item
    };
}
item! {
    /// An item.
    fn whole_item(a: u8) -> u8 { a }
}

macro_rules! types {
    ($name:ident, $field:ident, $ty:ty, $default:expr, $text:literal, $meta:meta) => {
        #[derive(ToolArgs, ToolOutput)]
        #[$meta]
        struct $name {
            #[doc = $text]
            #[arg(default = $default, range($default..))]
            $field: $ty,
            #[arg(with(same as $ty), default = $default)]
            other: $ty,
            list: Option<$ty>,
        }
    };
}
fn same(n: i16) -> Result<i16, String> {
    Ok(n)
}
types!(Made, depth, i16, -3, "How deep.", serde(rename_all = "camelCase"));

/// Takes what was made.
#[tool]
fn takes(made: Made) -> i16 {
    made.depth + made.other + made.list.unwrap_or_default()
}

macro_rules! unsized_state {
    ($name:ident, $ty:ty, $bytes:ty) => {
        #[doc = "State behind a fragment."]
        #[tool]
        fn $name(state: &$ty, text: &$bytes) -> usize {
            let _ = state;
            text.len()
        }
    };
}
unsized_state!(lent, dyn Fn() -> u8 + Send + Sync, str);

macro_rules! listed {
    ($($path:path),* ; $value:expr) => { tools![$($path),*, { $value }] };
}

macro_rules! left_out {
    ($path:path) => {
        tools![
            #[cfg(any())]
            $path,
            with_body
        ]
    };
}

#[tokio::test]
async fn they_work() {
    assert_eq!(text(tools![with_body], "with_body", r#"{"x":0}"#).await, "1");
    assert_eq!(text(tools![with_async_body], "with_async_body", r#"{"x":0}"#).await, "2");
    assert_eq!(text(tools![with_deep_body], "with_deep_body", r#"{"x":0}"#).await, "3");
    assert_eq!(text(tools![{ Shop }], "with_method_body", r#"{"by":0}"#).await, "4");
    assert_eq!(text(tools![whole_item], "whole_item", r#"{"a":5}"#).await, "5");
    assert_eq!(text(tools![takes], "takes", r#"{"list":1}"#).await, "-5");
    let every = definition(tools![every]);
    assert_eq!(every.description(), "Every fragment.");
    assert_eq!(every.parameters()["properties"]["many"]["minItems"], 2);
    assert_eq!(every.parameters()["properties"]["number"]["maximum"], 2);
    assert_eq!(definition(tools![options_from_fragments]).name(), "10s");
    assert_eq!(property(tools![options_from_fragments], "n")["maximum"], 8);
    assert_eq!(property(tools![takes], "depth")["minimum"], -3);
    assert_eq!(definition(tools![lent]).parameters()["required"], agent::json!(["text"]));
    assert_eq!(listed!(with_body, whole_item; Shop).len(), 3);
    assert_eq!(left_out!(whole_item).len(), 1);
}

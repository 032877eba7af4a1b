//! `#[tool]` on impl blocks.

#![expect(clippy::unused_async, clippy::needless_arbitrary_self_type, reason = "the form is what is tested")]

use crate::macro_support::{outcome, text};
use agent::{Registry, ToolArgs, ToolContext, tool, tools};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct Files {
    root: String,
    reads: AtomicU32,
}

#[derive(ToolArgs)]
struct Range {
    from: u32,
    #[arg(default = Files::LINES)]
    lines: u32,
}

#[tool]
impl Files {
    /// No tool.
    const LINES: u32 = 100;

    fn new(root: impl Into<String>) -> Self {
        Files { root: root.into(), reads: AtomicU32::new(0) }
    }

    /// Read a text file below the root.
    #[tool(read_only)]
    async fn read_file(
        &self,
        /// Path relative to the root.
        path: String,
        cx: &ToolContext,
    ) -> Result<String, std::io::Error> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Ok(format!("{}/{path} {}", self.root, cx.call_id()))
    }

    /// How often was read.
    #[agent::tool(name = "reads")]
    fn count_reads(self: &Self) -> u32 {
        self.reads.load(Ordering::SeqCst)
    }

    /// The whole object, and `Self` in a default.
    #[tool(inline)]
    fn lines(&self, range: Range) -> String {
        format!("{}+{}", range.from, range.lines)
    }

    /// A default from the block.
    #[tool]
    fn page(&self, #[arg(default = Self::LINES)] size: u32, words: &[String]) -> String {
        format!("{size} {}", words.join(" "))
    }

    /// Needs no value.
    #[tool]
    async fn twice(n: u32, cx: &ToolContext) -> String {
        format!("{} {}", n * 2, cx.call_id())
    }

    /// Is not there.
    #[cfg(any())]
    #[tool]
    fn never(&self, a: NoSuchType) {}
}

struct Shelf<T> {
    label: T,
}

#[tool]
impl<T> Shelf<T>
where
    T: Display + Send + Sync + 'static,
{
    /// Say the label.
    #[tool]
    fn label(&self, #[arg(default = 1)] times: usize, other: &Other<T>) -> String {
        format!("{}{}", self.label.to_string().repeat(times), other.0)
    }
}
struct Other<T>(T);

#[tokio::test]
async fn methods_share_one_value() {
    let registry = Registry::new(tools![Files::new("r")]).expect("sound");
    assert_eq!(registry.names().collect::<Vec<_>>(), ["read_file", "reads", "lines", "page", "twice"]);
    let call = |name: &'static str, arguments: &'static str| {
        let registry = registry.clone();
        async move {
            let call = agent::message::ToolCall::new("call_1", name, arguments);
            registry.call(&call, &ToolContext::new()).await.outcome.text().into_owned()
        }
    };
    assert_eq!(call("read_file", r#"{"path": "x"}"#).await, "r/x call_1");
    assert_eq!(call("reads", "").await, "1");
    assert_eq!(call("lines", r#"{"from": 7}"#).await, "7+100");
    assert_eq!(call("page", r#"{"words": ["a", "b"]}"#).await, "100 a b");
    assert_eq!(call("twice", r#"{"n": 2}"#).await, "4 call_1");
}

#[tokio::test]
async fn the_value_can_be_shared_with_the_application() {
    let files = Arc::new(Files::new("r"));
    text(tools![files.clone()], "read_file", r#"{"path": "x"}"#).await;
    assert_eq!(files.count_reads(), 1);
}

#[tokio::test]
async fn generic_blocks() {
    let cx = ToolContext::new().with_state(Other("!")).expect("one");
    let set = || tools![Shelf { label: "ab" }];
    assert_eq!(outcome(set(), "label", r#"{"times": 2}"#, &cx).await.text(), "abab!");
    let missing = Registry::new(tools![Shelf { label: 1_u8 }]).expect("sound").check_state(&cx);
    assert!(missing.expect_err("another type").to_string().contains("Other<u8>"));
}

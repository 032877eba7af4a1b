//! Results that are delivered to a suspended run.

use serde_json::{Value, json};

use super::restore_unchanged;
use crate::model::reply;
use crate::runtime::{Assistant, Decisions};
use crate::tool::context::ToolContext;
use crate::tool::outcome::ToolOutcome;
use crate::tool::output::ToolOutput;
use crate::{ScriptedModel, ToolBuilder, ToolSet};

#[tokio::test]
async fn a_delivered_result_is_kept_in_a_file_if_it_is_longer_than_its_tool_allows() {
    let folder = std::env::temp_dir().join(format!("agent-delivered-{}", std::process::id()));
    for (own, all, is_kept) in [(100, 10_000, true), (10_000, 100, false)] {
        let order = ToolBuilder::new("order")
            .description("Orders.")
            .schema(json!({"type": "object"}))
            .max_result_bytes(own)
            .build(|_: Value, _: ToolContext| async { ToolOutcome::Deferred { handle: "order".to_owned() } });
        let model = ScriptedModel::new([reply().tool_call("order", "{}"), reply().text("done")]);
        let assistant = Assistant::builder(model)
            .tools(ToolSet::new().with(order.unwrap()))
            .max_result_bytes(all)
            .spill_results(&folder)
            .build()
            .unwrap();
        let run = assistant.prompt("go").await.unwrap().snapshot.unwrap();
        let delivered = Decisions::new().deliver("call_1", ToolOutput::text("tea ".repeat(500)));
        assistant.resume(&run, delivered).await.unwrap();
        let text = assistant.messages().get(2).unwrap().text();
        assert_eq!(text.contains("read it with `read_result`, handle `"), is_kept, "{text}");
        assert_eq!(text.len() < 2_000, is_kept, "{text}");
        let files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        assert_eq!(files, usize::from(is_kept));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn of_items_that_look_the_same_none_gets_its_secret_back() {
    let hidden = crate::args::hidden();
    let shown = json!([{"key": hidden}, {"key": hidden}, {"key": hidden, "host": "b"}]);
    let sent = json!([{"key": "1"}, {"key": "2"}, {"key": "3", "host": "b"}]);
    let mut edited = json!([{"key": hidden}, {"key": "4"}, {"key": hidden, "host": "b"}]);
    restore_unchanged(&mut edited, &shown, &sent);
    assert_eq!(edited, json!([{"key": hidden}, {"key": "4"}, {"key": "3", "host": "b"}]));
}

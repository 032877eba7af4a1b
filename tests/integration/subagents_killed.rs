//! A tree whose process dies at each request to its store: it ends with the conversation and the usage of an undisturbed one.

use agent::message::{Message, Usage};
use agent::model::{ModelError, ModelErrorKind, ScriptedReply, reply};
use agent::store::{EntryKind, MemoryStore, Store};
use agent::{
    Assistant, AssistantBuilder, RunError, RunStop, ScriptedModel, ToolArgs, UsageLimits, tool, tools,
};

use crate::store_support::{Fault, Faulty};

/// Looks something up.
#[tool(read_only, allow_repeat)]
fn look() -> &'static str {
    "found"
}

#[derive(ToolArgs)]
#[expect(dead_code, reason = "only its schema is used")]
struct Train {
    changes: u8,
}

/// A reply that used tokens.
fn said(text: &str) -> ScriptedReply {
    reply().text(text).usage(Usage::new(100, 10))
}

/// An assistant whose model does this in the turn with this number.
fn of(turn: impl Fn(usize) -> ScriptedReply + Send + Sync + 'static) -> AssistantBuilder {
    let model = ScriptedModel::from_fn(move |request| {
        let turns = request.messages.iter().filter(|message| message.as_assistant().is_some());
        turn(turns.count())
    });
    Assistant::builder(model).tools(tools![look])
}

/// Sub-agents that answer, reach a limit, fail and say nothing.
fn tree() -> AssistantBuilder {
    const TASK: &str = r#"{"task": "go"}"#;
    let looks = |_| said("Well.").tool_call("look", "{}");
    let limits = UsageLimits { requests: Some(2), ..UsageLimits::default() };
    let limited = of(looks).limits(limits).build().unwrap().as_tool("limited", "Never ends.");
    let failing = of(|turn| match turn {
        0 => said("Well.").tool_call("look", "{}"),
        _ => reply().error(ModelError::new(ModelErrorKind::Auth, "the key is not valid")),
    });
    let failing = failing.build().unwrap().as_tool("failing", "Fails.");
    let silent = of(|turn| match turn {
        0 => said("Well.").tool_call("look", "{}"),
        _ => said(""),
    });
    let silent = silent.build().unwrap().as_tool("silent", "Says nothing.");
    let typed = of(|_| said("").tool_call("structured_output", r#"{"changes": 1}"#)).build().unwrap();
    let typed = typed.as_tool("typed", "Finds a train.").output::<Train>();
    let middle = of(|turn| match turn {
        0 => said("").tool_call("failing", TASK).tool_call("typed", TASK),
        _ => said("middle done"),
    });
    let middle = middle.tools(failing).tools(typed).build().unwrap().as_tool("middle", "Delegates.");
    let root = of(|turn| match turn {
        0 => said("").tool_call("limited", TASK).tool_call("middle", TASK),
        1 => said("").tool_call("silent", TASK),
        _ => said("done"),
    });
    root.tools(limited).tools(middle).tools(silent)
}

async fn open(store: impl Store + 'static) -> Assistant {
    tree().store(store).session("s").await.unwrap()
}

/// The texts of the conversation, with the codes of failures.
fn texts(assistant: &Assistant) -> Vec<(String, Option<String>)> {
    let code = |message: &Message| message.as_tool_result()?.code.clone();
    assistant.messages().iter().map(|message| (message.text(), code(message))).collect()
}

/// How each run of the tree ended.
async fn ends(store: &MemoryStore) -> Vec<String> {
    let mut ends = Vec::new();
    for session in store.list_sessions("", None, 100).await.unwrap() {
        let entries = store.load(&session.session, 0, 100).await.unwrap();
        let end = entries.iter().filter_map(|(_, entry)| match &entry.kind {
            EntryKind::RunEnd { stop, detail, .. } => {
                Some(format!("{stop} {}", detail.as_deref().unwrap_or("-")))
            }
            _ => None,
        });
        ends.push(end.collect::<Vec<_>>().join(", "));
    }
    ends.sort();
    ends
}

#[tokio::test]
async fn each_end_of_a_child_is_the_same_wherever_the_process_dies() {
    let store = MemoryStore::new();
    let counted = Faulty::new(&store, Fault::Hangs, usize::MAX, 0);
    let calm = open(counted.clone()).await;
    let whole = calm.prompt("go").await.unwrap();
    let wanted = texts(&calm);
    let codes: Vec<_> = wanted.iter().filter_map(|(_, code)| code.as_deref()).collect();
    assert_eq!(codes, ["limit"]);
    assert_eq!(whole.usage.total, 110 * (2 + 1 + 1 + 2 + 2 + 3), "{wanted:#?}");
    let how = ends(&store).await;
    assert_eq!(how.len(), 6, "{how:?}");
    assert!(how.contains(&"error the key is not valid".to_owned()), "{how:?}");

    let (requests, mut killed) = (counted.asked(), 0);
    for at in 0..requests {
        for fault in [Fault::Hangs, Fault::HangsWhenDone] {
            let store = MemoryStore::new();
            let dying = Faulty::new(&store, fault, at, usize::MAX);
            let mut run = Box::pin(async { open(dying.clone()).await.prompt("go").await });
            while dying.asked() <= at {
                assert!(futures_util::poll!(&mut run).is_pending(), "{at} {fault:?}");
                tokio::task::yield_now().await;
            }
            assert!(futures_util::poll!(&mut run).is_pending(), "{at} {fault:?}");
            // Killed: the process does nothing more, also not what a drop does.
            std::mem::forget(run);
            killed += 1;

            let next = open(store.clone()).await;
            let output = if next.messages().is_empty() && next.unfinished_run().is_none() {
                next.prompt("go").await
            } else {
                next.continue_run().await
            };
            assert_eq!(texts(&next), wanted, "{at} {fault:?}");
            match output {
                Ok(output) => {
                    assert_eq!(
                        (output.stop, output.usage.total),
                        (RunStop::Completed, whole.usage.total),
                        "{at} {fault:?}"
                    );
                }
                Err(error) => {
                    assert!(matches!(error, RunError::LastMessageIsAssistant), "{at} {fault:?}: {error}");
                }
            }
            assert_eq!(ends(&store).await, how, "{at} {fault:?}");
        }
    }
    assert!(killed > 80, "{killed}");
}

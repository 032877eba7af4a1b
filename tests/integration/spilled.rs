//! Results that are kept in files: who can read them, and what else is not read.

use agent::message::{Message, ToolCall};
use agent::model::reply;
use agent::{Assistant, ScriptedModel, Tool, ToolContext, ToolOutput, ToolSet, json};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("agent-spilled-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// An assistant that calls `long` at `go`, and reads the handle that any other prompt is.
fn assistant(folder: &Path, text: &'static str) -> Assistant {
    let long = Tool::new(
        "long",
        "Returns much.",
        json!({"type": "object"}),
        move |_: Value, _: ToolContext| async move { ToolOutput::text(text.repeat(500)) },
    );
    let model = ScriptedModel::from_fn(|request| {
        let last = request.messages.last().unwrap();
        match &**last {
            Message::User(said) if said.text() == "go" => reply().tool_call("long", "{}"),
            Message::User(said) => {
                reply().tool_call("read_result", json!({"handle": said.text(), "length": 40}))
            }
            other => reply().text(other.text()),
        }
    });
    let builder = Assistant::builder(model).tools(ToolSet::new().with(long.unwrap()));
    builder.max_result_bytes(1000).spill_results(folder).without_loop_guard().build().unwrap()
}

/// The handle that the result of `go` names.
async fn spill(assistant: &Assistant) -> String {
    let text = assistant.prompt("go").await.unwrap().text();
    text.split("handle `").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned()
}

async fn read(assistant: &Assistant, handle: &str) -> String {
    assistant.prompt(handle).await.unwrap().text()
}

#[tokio::test]
async fn each_conversation_reads_its_own_results_alone() {
    let folder = folder("own");
    let (ann, bob) = (assistant(&folder, "SECRET OF ANN "), assistant(&folder, "SECRET OF BOB "));
    let (of_ann, of_bob) = (spill(&ann).await, spill(&bob).await);
    assert!(read(&ann, &of_ann).await.contains("SECRET OF ANN"));
    assert!(read(&ann.fork(), &of_ann).await.contains("SECRET OF ANN"), "a fork has the conversation");
    assert!(read(&bob, &of_ann).await.contains("there is no result"), "another conversation");
    assert!(read(&ann, &of_bob).await.contains("there is no result"), "another conversation");
    // The same conversation elsewhere, as long as the file is there.
    let loaded = Assistant::builder(ScriptedModel::from_fn(move |request| {
        match request.messages.last().unwrap().role() {
            "user" => {
                reply().tool_call("read_result", json!({"handle": request.messages.last().unwrap().text()}))
            }
            _ => reply().text(request.messages.last().unwrap().text()),
        }
    }));
    let loaded = loaded.conversation(ann.messages()).spill_results(&folder).build().unwrap();
    assert!(read(&loaded, &of_ann).await.contains("SECRET OF ANN"));
    assert!(read(&loaded, &of_bob).await.contains("there is no result"));
    ann.reset().await;
    assert!(read(&ann, &of_ann).await.contains("there is no result"), "forgotten");
    // Without a run there is no conversation.
    let call = ToolCall::new("c", "read_result", json!({"handle": of_bob}));
    let outcome = bob.registry().call(&call, &ToolContext::new()).await.outcome;
    assert!(outcome.text().contains("there is no result"));
    drop((ann, bob, loaded));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_private_and_nothing_else_in_the_folder_is_read() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = folder("private");
    let assistant = assistant(&folder, "a long text ");
    let handle = spill(&assistant).await;
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    let file = folder.join(&handle);
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    std::fs::write(folder.join("id_rsa"), "PRIVATE KEY").unwrap();
    for name in ["id_rsa", "../x", "a/b", "", ".", "result_", &handle[..handle.len() - 1]] {
        // A result that names it does not make it one.
        let hint = format!("read it with `read_result`, handle `{name}`");
        let text = read(&assistant, &hint).await + &read(&assistant, name).await;
        assert!(!text.contains("PRIVATE KEY") && !text.contains("[bytes"), "{name}: {text}");
    }
    // The file becomes a link.
    std::fs::remove_file(&file).unwrap();
    symlink(folder.join("id_rsa"), &file).unwrap();
    assert!(read(&assistant, &handle).await.contains("there is no result"));
    drop(assistant);
    assert!(folder.join("id_rsa").exists() && !file.exists(), "the link is deleted, not its target");
    std::fs::remove_dir_all(&folder).unwrap();
}

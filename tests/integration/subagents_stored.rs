//! Runs within runs: with a store, with state, with types, and many of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::model::{ModelError, ModelErrorKind, reply};
use agent::run::{Limit, ResumeError};
use agent::store::{InvocationQuery, InvocationStatus, MemoryStore, Store as _};
use agent::{
    Assistant, Decision, Registry, RunStop, ScriptedModel, SuspendedRun, ToolArgs, ToolContext, UsageLimits,
    json, message::ToolCall, tool, tools,
};

use crate::subagents::{Log, obedient, one, stored, tree};

#[tokio::test]
async fn with_a_store_a_tree_continues_after_its_process_died() {
    for kill_after in 0..60 {
        let (log, store) = (Arc::new(Log::default()), MemoryStore::new());
        let open = || tree(&log).store(store.clone()).session("s");
        let prompt = json!([
            [
                ["first", [[["look", "a"]], [["second", one("look", "b")]]]],
                ["first", [[["look", "c"]], [["look", "d"]]]],
            ],
            [["look", "e"]],
        ])
        .to_string();
        let expected = "[[a found, [b found]], [c found, d found], e found]";
        let mut polls = kill_after;
        let finished = {
            let root = open().await.unwrap();
            let mut run = root.prompt(prompt).stream();
            // Killed: the process does nothing more, also not what a drop does.
            loop {
                match run.next().await {
                    Some(_) if polls == 0 => {
                        std::mem::forget((run, root));
                        break None;
                    }
                    Some(_) => polls -= 1,
                    None => break Some(run.output().await.unwrap().text()),
                }
            }
        };
        let text = if let Some(text) = finished {
            text
        } else {
            let root = open().await.unwrap();
            if root.unfinished_run().is_none() {
                continue;
            }
            root.continue_run().await.unwrap();
            assert!(root.messages().is_sound());
            root.messages().last().unwrap().text()
        };
        // `look` is `once`: a call whose body had begun is lost, and its own run continues.
        let is_lost = text.contains("not known") || text.contains("interrupted") || text.contains("lost");
        assert!(text == expected || is_lost, "after {kill_after} events: {text}");
        let lines = log.lines();
        let mut once = lines.clone();
        once.dedup();
        assert_eq!(lines, once, "after {kill_after} events");
    }
}

#[tokio::test]
async fn a_tree_that_waits_in_a_store_is_resumed_in_another_process() {
    let (log, store) = (Arc::new(Log::default()), MemoryStore::new());
    let open = || tree(&log).store(store.clone()).session("s");
    let prompt =
        json!([[["first", json!([[["look", "a"]], [["second", one("book", "Rome")]]])], ["look", "b"]]])
            .to_string();
    let suspended = {
        let root = open().await.unwrap();
        stored(&root.prompt(prompt).await.unwrap().snapshot.unwrap())
    };
    // The process died; a new one asks again, and the request is the same.
    let root = open().await.unwrap();
    let again = root.continue_run().await.unwrap();
    assert_eq!(again.stop, RunStop::Suspended);
    let now = again.snapshot.unwrap();
    assert_eq!(now.requests()[0].request_id, suspended.requests()[0].request_id);
    assert_eq!(now.requests()[0].path, suspended.requests()[0].path);
    assert_eq!(log.lines(), ["look a", "look b"]);
    drop(root);

    // Resumed from the run that was suspended before.
    let root = open().await.unwrap();
    let decisions = suspended.decide(|_| Decision::Allow);
    let output = root.resume(&suspended, decisions).await.unwrap();
    assert_eq!(output.text(), "[[a found, [booked Rome]], b found]");
    assert_eq!(log.lines(), ["book Rome", "look a", "look b"]);
    let page = store.list(InvocationQuery::new()).await.unwrap();
    assert_eq!(page.len(), 5);
    assert!(page.iter().all(|record| record.status == InvocationStatus::Completed), "{page:?}");
    // Each run is a session of its own.
    let child = page.iter().find(|record| record.tool == "book").unwrap();
    assert_eq!(child.session.as_deref(), Some(&*child.key.run));
    let entries = store.load(&child.key.run, 0, 100).await.unwrap();
    assert!(entries.len() >= 6);
}

#[derive(ToolArgs)]
struct Trip {
    from: String,
    to: String,
}

#[derive(ToolArgs)]
struct Train {
    #[expect(dead_code, reason = "only the schema counts")]
    departs: String,
}

#[tokio::test]
async fn arguments_and_answers_have_types_and_refusals_are_reports() {
    let answers = ScriptedModel::from_fn(|request| {
        let refused = request.messages.iter().any(|message| message.as_tool_result().is_some());
        let text = request.messages.iter().next().unwrap().text();
        assert_eq!(text, "From Bern to Rome?");
        let args = if refused { r#"{"departs": "8:15"}"# } else { r#"{"leaves": "8:15"}"# };
        reply().tool_call("structured_output", args)
    });
    let expert = Assistant::builder(answers).build().unwrap();
    let find = || {
        let find = expert
            .as_tool("find", "Finds a train.")
            .input(|trip: Trip| format!("From {} to {}?", trip.from, trip.to));
        find.output::<Train>()
    };
    let registry = Registry::new(find()).unwrap();
    let tool = registry.fetch("find").unwrap();
    assert!(tool.definition().output_schema().is_some());
    let call = |args: &str| ToolCall::new("1", "find", args);
    let result = registry.call(&call(r#"{"from": "Bern"}"#), &ToolContext::new()).await;
    assert_eq!(result.outcome.code(), Some("invalid_arguments"));
    // Outside of a run it works, too.
    let result = registry.call(&call(r#"{"from": "Bern", "to": "Rome"}"#), &ToolContext::new()).await;
    assert_eq!(result.outcome.text(), r#"{"departs":"8:15"}"#);
    let model = ScriptedModel::new([
        reply().tool_call("find", r#"{"from": "Bern", "to": "Rome"}"#),
        reply().text("8:15"),
    ]);
    let root = Assistant::builder(model).tools(find()).build().unwrap();
    let output = root.prompt("Rome?").await.unwrap();
    assert_eq!(output.messages[2].text(), r#"{"departs":"8:15"}"#);

    let bad = Assistant::builder(ScriptedModel::new(["Hello!"]))
        .tools(expert.as_tool("not a name", "Fails."))
        .build();
    assert!(bad.unwrap_err().to_string().contains("not a name"));
}

/// Says who asks, and what the sub-agent knows.
#[tool]
fn who(person: &str_state::Person, place: &str_state::Place) -> String {
    format!("{} in {}", person.0, place.0)
}

/// State of tools.
mod str_state {
    pub(super) struct Person(pub(super) &'static str);
    pub(super) struct Place(pub(super) &'static str);
}

#[tokio::test]
async fn state_passes_down_and_own_state_takes_precedence() {
    use str_state::{Person, Place};
    let model = || ScriptedModel::new([reply().tool_call("who", "{}"), reply().text("done")]);
    let expert = Assistant::builder(model()).tools(tools![who]).state(Place("Rome"));
    let expert = expert.state_per_prompt::<Person>().build().unwrap();
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let heard = seen.clone();
    let model = ScriptedModel::new([reply().tool_call("ask", r#"{"task": "Who?"}"#), reply().text("done")]);
    let root = Assistant::builder(model).tools(expert.as_tool("ask", "Knows who asks.")).state(Place("Bern"));
    let root = root.on_event(move |event| {
        if let agent::EventKind::ToolExecutionEnd { result, .. } = &event.kind
            && !event.is_own()
        {
            *heard.lock().unwrap() = result.outcome.text().into_owned();
        }
    });
    root.build().unwrap().prompt("Who?").with_state(Person("Ann")).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), "Ann in Rome");
}

#[tokio::test]
async fn a_sub_agent_that_fails_is_a_failed_call() {
    let failing =
        ScriptedModel::new([reply().error(ModelError::new(ModelErrorKind::Auth, "the key is not valid"))]);
    let long = ScriptedModel::from_fn(|_| reply().tool_call("nothing", "{}"));
    let silent = ScriptedModel::new([""]);
    let agents = [("failing", failing), ("long", long), ("silent", silent)];
    let tools = agents.map(|(name, model)| {
        let limits = UsageLimits { requests: Some(2), ..UsageLimits::default() };
        Assistant::builder(model).limits(limits).build().unwrap().as_tool(name, "Answers.").build().unwrap()
    });
    let model = ScriptedModel::from_fn(|request| {
        if request.messages.len() > 1 {
            return reply().text("done");
        }
        ["failing", "long", "silent"]
            .iter()
            .fold(reply(), |said, name| said.tool_call(*name, r#"{"task": "go"}"#))
    });
    let root = Assistant::builder(model).tools(Vec::from(tools)).build().unwrap();
    let output = root.prompt("go").await.unwrap();
    let results: Vec<_> = output.messages.iter().filter_map(|message| message.as_tool_result()).collect();
    let codes: Vec<_> = results.iter().map(|result| result.code.as_deref()).collect();
    assert_eq!(codes, [Some("child_failed"), Some("limit"), None]);
    assert!(output.messages[4].text().contains("gave no answer"));
    let limits = UsageLimits { requests: Some(1), ..UsageLimits::default() };
    let expert = Assistant::builder(ScriptedModel::new(["never"])).build().unwrap();
    let model = ScriptedModel::new([reply().tool_call("ask", r#"{"task": "go"}"#)]);
    let root =
        Assistant::builder(model).tools(expert.as_tool("ask", "Answers.")).limits(limits).build().unwrap();
    assert_eq!(root.prompt("go").await.unwrap_err().as_limit().unwrap().limit, Limit::Requests);
}

#[tokio::test]
async fn a_thousand_sub_agents_wait_and_continue() {
    static BOOKED: AtomicUsize = AtomicUsize::new(0);

    /// Books a place.
    #[tool(approval = "always")]
    fn reserve(place: u32) -> String {
        BOOKED.fetch_add(1, Ordering::SeqCst);
        format!("{place} reserved")
    }
    const MANY: usize = 1_000;
    let model = ScriptedModel::from_fn(|request| {
        let text = request.messages.iter().next().unwrap().text();
        if request.messages.len() > 1 {
            reply().text("done")
        } else {
            reply().tool_call("reserve", json!({"place": text}).to_string())
        }
    });
    let expert = Assistant::builder(model).tools(tools![reserve]).build().unwrap();
    let model = ScriptedModel::from_fn(|request| {
        if request.messages.len() > 1 {
            return reply().text("all done");
        }
        (0..MANY).fold(reply(), |said, place| {
            said.tool_call("ask", json!({"task": place.to_string()}).to_string())
        })
    });
    let build = || {
        let root = Assistant::builder(model.clone()).tools(expert.as_tool("ask", "Reserves."));
        root.max_children(2_000).max_concurrency(100).approval_key([7; 32]).build().unwrap()
    };
    let suspended = build().prompt("go").await.unwrap().snapshot.unwrap();
    assert_eq!(suspended.requests().len(), MANY);
    assert_eq!(BOOKED.load(Ordering::SeqCst), 0);
    let suspended = stored(&suspended);
    let output = build().resume(&suspended, suspended.decide(|_| Decision::Allow)).await.unwrap();
    assert_eq!((output.text().as_str(), BOOKED.load(Ordering::SeqCst)), ("all done", MANY));
}

#[tokio::test]
async fn limits_hold_for_a_tree_that_continues_in_another_process() {
    let log = Arc::new(Log::default());
    // Each run makes two requests, one of them after the decision.
    for (allowed, ends) in [(3, false), (4, true)] {
        let open = || {
            let limits = UsageLimits { requests: Some(allowed), ..UsageLimits::default() };
            tree(&log).limits(limits).build().unwrap()
        };
        let prompt = one("first", one("book", "Rome")).to_string();
        let suspended = stored(&open().prompt(prompt).await.unwrap().snapshot.unwrap());
        let result = open().resume(&suspended, suspended.decide(|_| Decision::Allow)).await;
        match result {
            Ok(output) => assert!(ends && output.text() == "[[booked Rome]]"),
            Err(error) => assert!(!ends && error.as_limit().unwrap().limit == Limit::Requests, "{error}"),
        }
    }
}

#[tokio::test]
async fn what_ended_sub_agents_used_is_signed() {
    let log = Arc::new(Log::default());
    let prompt = json!([[["first", one("look", "a")]], [["book", "Rome"]]]).to_string();
    let output = tree(&log).build().unwrap().prompt(prompt).await.unwrap();
    let whole = serde_json::to_value(output.snapshot.unwrap()).unwrap();
    assert_eq!((&whole["children"]["runs"], &whole["version"]), (&json!(1), &json!(6)));
    for (count, version, refused) in [
        ("runs", 6, "the stored run does not have this assistant's signature"),
        ("requests", 6, "the stored run does not have this assistant's signature"),
        ("runs", 5, "the stored run has version 5"),
        ("", 6, ""),
    ] {
        let mut stored = whole.clone();
        stored["version"] = json!(version);
        if !count.is_empty() {
            stored["children"][count] = json!(0);
        }
        let suspended: SuspendedRun = serde_json::from_value(stored).unwrap();
        let root = tree(&log).build().unwrap();
        let resumed = root.resume(&suspended, suspended.decide(|_| Decision::Allow)).await;
        let error = resumed.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(refused) && error.is_empty() == refused.is_empty(), "{count}: {error}");
    }
    assert_eq!(log.lines(), ["book Rome", "look a"]);
}

#[tokio::test]
async fn with_records_and_no_session_a_tree_that_waits_is_resumed() {
    let (log, store) = (Arc::new(Log::default()), MemoryStore::new());
    let open = || tree(&log).store(store.clone()).build().unwrap();
    let prompt = one("first", one("second", one("book", "Rome"))).to_string();
    let suspended = stored(&open().prompt(prompt).await.unwrap().snapshot.unwrap());
    let output = open().resume(&suspended, suspended.decide(|_| Decision::Allow)).await.unwrap();
    assert_eq!(output.text(), "[[[booked Rome]]]");
    assert_eq!(log.lines(), ["book Rome"]);
    let page = store.list(InvocationQuery::new()).await.unwrap();
    assert!(page.iter().all(|record| record.status == InvocationStatus::Completed), "{page:?}");
}

#[tokio::test]
async fn a_call_whose_sub_agent_is_gone_fails_and_the_others_continue() {
    /// Knows things, as a function.
    #[tool(name = "first", idempotent)]
    fn function(task: String, log: &Log) -> String {
        log.add(format!("function {task}"));
        "a function".to_owned()
    }
    for (is_function, has_store) in [(false, false), (true, false), (false, true), (true, true)] {
        let (log, store) = (Arc::new(Log::default()), MemoryStore::new());
        // Two experts, of which one is gone later.
        let later = |is_there: bool| {
            let expert = || tree(&log).build().unwrap();
            let root = Assistant::builder(obedient()).shared_state(log.clone()).approval_key([7; 32]);
            let root = root.tools(expert().as_tool("second", "Knows things."));
            match (is_there, is_function) {
                (true, _) => root.tools(expert().as_tool("first", "Knows things.")),
                (false, true) => root.tools(tools![function]),
                (false, false) => root,
            }
        };
        let open = async |is_there| {
            if has_store {
                later(is_there).store(store.clone()).session("s").await.unwrap()
            } else {
                later(is_there).build().unwrap()
            }
        };
        let prompt = json!([[["first", one("book", "Rome")], ["second", one("book", "Bern")]]]).to_string();
        let suspended = stored(&open(true).await.prompt(prompt).await.unwrap().snapshot.unwrap());
        let root = open(false).await;
        let output = if has_store {
            // After a crash the one that is left asks again.
            let output = root.continue_run().await.unwrap();
            let again = output.snapshot.unwrap();
            assert_eq!(again.requests().len(), 1, "{is_function}");
            root.resume(&again, again.decide(|_| Decision::Allow)).await.unwrap()
        } else {
            root.resume(&suspended, suspended.decide(|_| Decision::Allow)).await.unwrap()
        };
        let results: Vec<_> = output.messages.iter().filter_map(|message| message.as_tool_result()).collect();
        let codes: Vec<_> = results.iter().map(|result| result.code.as_deref()).collect();
        assert_eq!(codes, [Some("child_gone"), None], "{is_function} {has_store}: {:?}", output.text());
        assert_eq!(log.lines(), ["book Bern"], "{is_function} {has_store}");
        assert!(root.messages().is_sound());
    }
}

#[tokio::test]
async fn a_call_of_a_sub_agents_tool_that_is_gone_fails_within_it() {
    let log = Arc::new(Log::default());
    let prompt = one("first", json!([[["book", "Rome"]], [["look", "tea"]]])).to_string();
    let suspended = stored(&tree(&log).build().unwrap().prompt(prompt).await.unwrap().snapshot.unwrap());
    let codes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ends = codes.clone();
    let first = Assistant::builder(obedient()).build().unwrap();
    let root = Assistant::builder(obedient()).tools(first.as_tool("first", "Knows things."));
    let root = root.approval_key([7; 32]).on_event(move |event| {
        if let agent::EventKind::ToolExecutionEnd { result, .. } = &event.kind {
            ends.lock().unwrap().push(result.outcome.code().map(str::to_owned));
        }
    });
    let output =
        root.build().unwrap().resume(&suspended, suspended.decide(|_| Decision::Allow)).await.unwrap();
    assert!(
        output.text().starts_with("[[The call was not run: `book` is not what it was"),
        "{}",
        output.text()
    );
    let code = |text: &str| Some(text.to_owned());
    assert_eq!(*codes.lock().unwrap(), [code("approval_stale"), code("unknown_tool"), None]);
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn eight_levels_are_stored_and_resumed_and_more_are_refused() {
    let log = Arc::new(Log::default());
    let build = || tree(&log).self_as_tool("self", "Does a part.").max_depth(8).build().unwrap();
    let prompt = (0..8).fold(one("book", "Rome"), |plan, _| one("self", plan));
    let run = build().prompt(prompt.to_string()).await.unwrap().snapshot.unwrap();
    let suspended = stored(&run);
    assert_eq!(suspended.requests()[0].path.calls().len(), 8);
    let output = build().resume(&suspended, suspended.decide(|_| Decision::Allow)).await.unwrap();
    assert!(output.text().contains("booked Rome"), "{}", output.text());
    assert_eq!(log.lines(), ["book Rome"]);

    let mut deeper = serde_json::to_value(&run).unwrap();
    let child = deeper["batch"]["slots"][0]["state"].clone();
    let leaf = (0..8).fold(&mut deeper, |run, _| &mut run["batch"]["slots"][0]["state"]["child"]);
    leaf["batch"]["slots"][0]["state"] = child;
    let deeper: SuspendedRun = serde_json::from_value(deeper).unwrap();
    let error = build().resume(&deeper, deeper.decide(|_| Decision::Allow)).await.unwrap_err();
    assert!(
        matches!(error.as_resume_error(), Some(ResumeError::TooDeep { depth: 16, max: 8, .. })),
        "{error}"
    );
}

#[tokio::test]
async fn the_loop_guard_compares_what_sub_agents_are_asked_and_not_what_they_say() {
    let said = AtomicUsize::new(0);
    let model = ScriptedModel::from_fn(move |_| {
        reply().text(format!("answer {}", said.fetch_add(1, Ordering::SeqCst)))
    });
    let expert = Assistant::builder(model.clone()).build().unwrap();
    let root = ScriptedModel::from_fn(|_| reply().tool_call("ask", r#"{"task": "the same"}"#));
    let root = Assistant::builder(root).tools(expert.as_tool("ask", "Answers.")).build().unwrap();
    let error = root.prompt("go").await.unwrap_err();
    assert_eq!(error.as_limit().unwrap().limit, Limit::RepeatedCalls);
    // The third call is refused, and the fifth ends the run.
    assert_eq!(model.requests().len(), 2);

    // Within a sub-agent its own guard counts.
    let log = Arc::new(Log::default());
    let model = ScriptedModel::from_fn(|_| reply().tool_call("order", r#"{"to": "Rome"}"#));
    let expert = Assistant::builder(model).tools(tools![order]).shared_state(log.clone()).build().unwrap();
    let model = ScriptedModel::new([reply().tool_call("ask", r#"{"task": "go"}"#), reply().text("done")]);
    let root = Assistant::builder(model).tools(expert.as_tool("ask", "Orders.")).build().unwrap();
    let output = root.prompt("go").await.unwrap();
    assert_eq!(output.messages[2].as_tool_result().unwrap().code.as_deref(), Some("limit"));
    assert_eq!(log.lines(), ["order Rome"; 2]);
}

/// Orders something.
#[tool]
fn order(to: String, log: &Log) -> String {
    log.add(format!("order {to}"));
    "ordered".to_owned()
}

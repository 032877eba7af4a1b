//! Laws of random trees of runs: the grammar of their events, and one answer however they are decided on, stored, stopped or driven.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::run::{PendingCall, RunPath};
use agent::tool::QuestionInput;
use agent::{
    Assistant, Decision, Decisions, Event, EventKind, RunOutput, SuspendedRun, ToolOutput, Value, json, tool,
    tools,
};

use crate::durable_subagents::tree;
use crate::runtime_core::assert_grammar;
use crate::subagents::{Log, obedient, one, stored};

/// Numbers that are the same in every run of the tests.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// The replies of a run at this depth, each a list of calls.
    fn plan(&mut self, depth: usize, place: &mut u32) -> Value {
        let replies = 1 + self.roll(2);
        let mut reply = || {
            let calls = 1 + self.roll(3);
            let call = |_| {
                *place += 1;
                match (self.roll(6), ["first", "second", "third"].get(depth)) {
                    (0 | 1, Some(tool)) => json!([tool, self.plan(depth + 1, place)]),
                    (2, _) => json!(["book", format!("p{place}")]),
                    (3, _) => json!(["seat", format!("p{place}")]),
                    (4, _) => json!(["order", format!("p{place}")]),
                    _ => json!(["look", format!("p{place}")]),
                }
            };
            (0..calls).map(call).collect::<Vec<_>>()
        };
        (0..replies).map(|_| json!(reply())).collect()
    }
}

/// An assistant, and the events of its trees.
fn build(events: &Arc<Mutex<Vec<Event>>>) -> Assistant {
    let sink = events.clone();
    let record = move |event: &Event| sink.lock().unwrap().push(event.clone());
    tree(&Arc::new(Log::default())).approval_key([7; 32]).on_event(record).build().unwrap()
}

/// Decides on a part of what a tree waits for.
fn some(suspended: &SuspendedRun, is_chosen: &mut dyn FnMut(&RunPath) -> bool) -> (Decisions, usize) {
    let (mut decisions, mut number) = (Decisions::new(), 0);
    let mut chosen: BTreeMap<String, bool> = BTreeMap::new();
    // The calls of one run are decided together.
    let mut choose = |path: &RunPath| *chosen.entry(format!("{path:?}")).or_insert_with(|| is_chosen(path));
    for request in suspended.requests() {
        if choose(&request.path) {
            (decisions, number) = (decisions.allow(&request), number + 1);
        }
    }
    for question in suspended.questions() {
        if choose(&question.path) {
            (decisions, number) = (decisions.accept(&question, json!(7)), number + 1);
        }
    }
    for call in suspended.pending() {
        if let PendingCall::Deferred { path, handle, .. } = &call
            && choose(path)
        {
            let ticket = ToolOutput::text(format!("ticket for {handle}"));
            (decisions, number) = (decisions.deliver_to(&call, ticket), number + 1);
        }
    }
    (decisions, number)
}

/// Resumes a tree, each time in another process, until it has ended.
async fn finish(mut output: RunOutput, events: &Arc<Mutex<Vec<Event>>>, dice: &mut Dice) -> RunOutput {
    while let Some(suspended) = output.snapshot.take() {
        let suspended = stored(&suspended);
        let (mut decisions, number) = some(&suspended, &mut |_| dice.roll(2) == 0);
        if number == 0 {
            decisions = some(&suspended, &mut |_| true).0;
        }
        output = build(events).resume(&suspended, decisions).await.unwrap();
    }
    output
}

/// Holds the events of a tree against the grammar.
fn assert_tree(events: &[Event]) {
    let mut runs: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for event in events {
        runs.entry(event.run_id.to_string()).or_default().push(event.clone());
    }
    for (run, own) in &runs {
        assert_grammar(own);
        let Some(call) = own[0].path.calls().last() else {
            continue;
        };
        assert!(*call.run_id == **run && own.iter().all(|event| event.path == own[0].path));
        let parent = run.rsplitn(4, '/').last().unwrap();
        let of_parent = |event: &&(usize, &Event)| *event.1.run_id == *parent;
        let all: Vec<(usize, &Event)> = events.iter().enumerate().collect();
        let at = |find: fn(&EventKind) -> bool| -> Vec<usize> {
            all.iter().filter(of_parent).filter(|(_, event)| find(&event.kind)).map(|(at, _)| *at).collect()
        };
        let turn: u32 = run.rsplit('/').nth(2).unwrap().parse().unwrap();
        let start = all.iter().filter(of_parent).find(|(_, event)| {
            event.turn == turn
                && matches!(&event.kind, EventKind::ToolExecutionStart { call: begun, .. } if begun.id == call.call_id)
        });
        let end = all.iter().filter(of_parent).find(|(_, event)| {
            event.turn == turn
                && matches!(&event.kind, EventKind::ToolExecutionEnd { result, .. } if result.call_id == call.call_id)
        });
        let own: Vec<usize> =
            all.iter().filter(|(_, event)| *event.run_id == **run).map(|(at, _)| *at).collect();
        assert!(start.unwrap().0 < own[0] && *own.last().unwrap() < end.unwrap().0, "{run}");
        // While the parent is suspended, nothing happens in the child: it suspends before, and resumes after.
        let suspended = at(|kind| matches!(kind, EventKind::RunSuspended { .. }));
        let resumed = at(|kind| matches!(kind, EventKind::RunResumed));
        assert_eq!(suspended.len(), resumed.len());
        for (from, to) in suspended.into_iter().zip(resumed) {
            assert!(!own.iter().any(|at| from < *at && *at < to), "{run} between {from} and {to}");
        }
    }
    // What a root waits for is what all of its runs wait for.
    for event in events.iter().filter(|event| event.is_own()) {
        if let EventKind::RunSuspended { pending, .. } = &event.kind {
            assert!(!pending.is_empty());
        }
    }
}

#[tokio::test]
async fn a_tree_has_one_answer_and_events_of_one_grammar_however_it_is_decided_on() {
    let (mut suspensions, mut depths) = (0, [0; 4]);
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let plan = dice.plan(0, &mut 0).to_string();
        let mut answers = Vec::new();
        let mut asked = Vec::new();
        for _ in 0..2 {
            let events = Arc::default();
            let output = build(&events).prompt(plan.as_str()).await.unwrap();
            let run_id = output.run_id.clone();
            let output = finish(output, &events, &mut dice).await;
            let events = events.lock().unwrap().clone();
            assert_tree(&events);
            suspensions +=
                events.iter().filter(|event| matches!(event.kind, EventKind::RunSuspended { .. })).count();
            for event in &events {
                depths[event.path.calls().len()] += 1;
            }
            for event in &events {
                match &event.kind {
                    EventKind::ApprovalRequired { request_id, .. } => {
                        asked.push((request_id.replace(&*run_id, "r"), json!("allow")));
                    }
                    EventKind::QuestionAsked { question, .. } => {
                        asked.push((question.request_id.replace(&*run_id, "r"), json!(7)));
                    }
                    EventKind::RunSuspended { pending, .. } => {
                        asked.extend(pending.iter().filter_map(|call| match call {
                            PendingCall::Deferred { handle, .. } => Some((handle.clone(), json!("ticket"))),
                            PendingCall::Question { question, .. } => {
                                Some((question.request_id.replace(&*run_id, "r"), json!(7)))
                            }
                            _ => None,
                        }));
                    }
                    _ => {}
                }
            }
            answers.push(output.text());
        }
        // On an engine, too.
        let rehearsal =
            Rehearsal::new(Service::new(&build(&Arc::default())).unwrap(), RunRequest::new("r", &*plan));
        for (id, answer) in asked {
            match answer.as_str() {
                Some("allow") => rehearsal.decide(id, Decision::Allow),
                Some(_) => rehearsal.deliver(id.clone(), ToolOutput::text(format!("ticket for {id}"))),
                None => rehearsal.answer(id, QuestionInput::Accept(answer)),
            }
        }
        answers.push(rehearsal.play().await.unwrap().text());
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{seed}: {plan}\n{answers:#?}");
    }
    assert!(suspensions > 100 && depths.iter().all(|events| *events > 100), "{suspensions} {depths:?}");
}

#[tokio::test]
async fn a_snapshot_of_a_tree_that_works_continues_each_of_its_runs() {
    let (mut taken, mut nested) = (0, 0);
    for seed in 0..12 {
        let mut dice = Dice(1000 + seed);
        let plan = dice.plan(0, &mut 0).to_string();
        let events = Arc::default();
        let undisturbed = build(&events).prompt(plan.as_str()).await.unwrap();
        let whole = finish(undisturbed, &events, &mut dice).await.text();

        let mut run = build(&Arc::default()).prompt(plan.as_str()).stream();
        let (handle, mut snapshots) = (run.handle(), Vec::new());
        while run.next().await.is_some() {
            if let Some(snapshot) = handle.snapshot().filter(|_| dice.roll(4) == 0) {
                snapshots.push(stored(&snapshot));
            }
        }
        for snapshot in snapshots {
            let json = serde_json::to_string(&snapshot).unwrap();
            let events = Arc::default();
            let decisions = some(&snapshot, &mut |_| true).0;
            let output = match build(&events).resume(&snapshot, decisions).await {
                Ok(output) => finish(output, &events, &mut dice).await,
                // The run had ended.
                Err(error) if error.as_resume_error().is_some() => continue,
                Err(error) => panic!("{seed}: {error}\n{json}"),
            };
            assert_eq!(output.text(), whole, "{seed}: {plan}\n{json}");
            (taken, nested) = (taken + 1, nested + usize::from(json.contains(r#""child":"#)));
        }
    }
    assert!(taken > 50 && nested > 20, "{taken} snapshots, {nested} of them with children");
}

#[tokio::test]
async fn a_call_that_may_have_taken_effect_is_lost_in_the_run_that_made_it() {
    /// Pays, and takes its time.
    #[tool]
    async fn pay(what: String, log: &Log) -> String {
        log.add(format!("pay {what}"));
        std::future::pending().await
    }

    let log = Arc::new(Log::default());
    let build = || {
        let state = || Assistant::builder(obedient()).shared_state(log.clone());
        let second =
            state().tools(tools![pay].map(|tool| tool.configure(|own| own.name("look")))).build().unwrap();
        let first = state().tools(second.as_tool("second", "Pays.")).build().unwrap();
        state().tools(first.as_tool("first", "Knows things.")).approval_key([7; 32]).build().unwrap()
    };
    let mut run = build().prompt(one("first", one("second", one("look", "tea"))).to_string()).stream();
    let handle = run.handle();
    while log.lines().is_empty() {
        tokio::select! {
            _ = run.next() => {}
            () = tokio::time::sleep(std::time::Duration::from_millis(5)) => {}
        }
    }
    let snapshot = stored(&handle.snapshot().unwrap());
    drop(run);
    let text = build().resume(&snapshot, Decisions::new()).await.unwrap().text();
    assert!(text.starts_with("[[[No result of this call was recorded."), "{text}");
    assert_eq!(log.lines(), ["pay tea"], "it did not run again");
}

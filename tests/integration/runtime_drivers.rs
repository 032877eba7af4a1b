//! The written-down runs to which something is done from outside, in one process and on an engine: steered, cancelled, decided on at the same
//! moments. `durable` plays the others, and kills them at each step.

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::durable::{Rehearsal, RunRequest, Service, ServiceError};
use agent::message::{AssistantMessage, Message};
use agent::{Assistant, Decision, Decisions, EventKind, RunStop, json};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::runtime_scenarios::{given, model, play, setup, shown};
use given::{Action, Given};

/// Scenarios that mean something to one driver alone, and why.
const APART: [(&str, &str); 12] = [
    ("a_second_prompt_is_refused", "a run of an engine has an id, and nobody prompts it"),
    ("a_reset_takes_effect_at_once", "an assistant is reset; a run of an engine is cancelled"),
    ("abort_while_waiting_for_a_place", PLACES),
    ("cancel_running", PLACES),
    ("an_abort_at_the_first_end_finds_all_begun", PLACES),
    ("abort_counts_more_than_end_now", BEHIND),
    ("abort_counts_more_than_steering", BEHIND),
    ("abort_counts_more_than_the_call_limit", BEHIND),
    ("abort_at_the_end_of_a_turn_counts_more_than_end_now", BEHIND),
    ("abort_counts_more_than_a_cut_reply", BEHIND),
    ("steering_counts_more_than_a_cut_reply", BEHIND),
    ("steering_at_the_last_check_ends_all_that_could_run", BEHIND),
];
const PLACES: &str = "an engine has a place for each call of a batch";
const BEHIND: &str = "a step that ends calls or the run does so before a notice is received, which arrives with the end of the step";

/// What a run came to: its messages, and how it ended.
type Ended = (Vec<Value>, Value);

/// When an action happened in one process.
#[derive(Clone, Debug)]
struct Moment {
    action: Action,
    /// On the clock of the run.
    at: Duration,
    /// The event that it waited for.
    event: String,
    turn: u32,
    /// The position of the call that the event is about.
    call: Option<usize>,
}

impl Moment {
    fn is_later_than_its_event(&self) -> bool {
        self.action.when().1 > 0
    }

    fn happen(&self, run: &Rehearsal) {
        match &self.action {
            Action::Abort { reason, .. } => run.cancel(reason.as_deref().unwrap_or("cancelled")),
            Action::Steer { messages, .. } => {
                for text in messages {
                    run.steer(&**text);
                }
            }
            Action::FollowUp { messages, .. } => {
                for text in messages {
                    run.follow_up(&**text);
                }
            }
            Action::Reset { .. } | Action::Prompt { .. } => panic!("this is for assistants alone"),
        }
    }

    /// How many of a run's steps are done before the one with whose end this is heard: the one that the event tells of.
    fn steps_before(&self, steps: &[String]) -> usize {
        let of_turn = format!("run/{}/", self.turn);
        let first = |begin: &str| steps.iter().position(|step| step.starts_with(begin));
        let model = first(&format!("{of_turn}model/"));
        let tool = |ord: usize| first(&format!("{of_turn}tool/{ord}"));
        let at = match (&*self.event, self.call) {
            ("message_end" | "approval_required" | "tool_execution_start", _) => model,
            ("tool_execution_end", Some(ord)) => tool(ord).or(model),
            ("turn_end", _) => (0..8).rev().find_map(tool).or(model),
            _ => None,
        };
        at.unwrap_or_else(|| panic!("{self:?} has no place in {steps:?}"))
    }
}

fn said<'m>(messages: impl IntoIterator<Item = &'m Arc<Message>>) -> Vec<Value> {
    let one = |message: &'m Arc<Message>| {
        let calls = message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
        let calls: Vec<_> = calls.map(|call| (&call.id, &call.name, call.args.text())).collect();
        json!({"role": message.role(), "text": message.text(), "calls": calls})
    };
    messages.into_iter().map(one).collect()
}

/// What is noticed in one process.
struct Seen {
    end: Value,
    calls: Vec<String>,
    counts: Vec<u64>,
    moments: Vec<Moment>,
}

fn watch(assistant: &Assistant, given: &Arc<Given>) -> Arc<Mutex<Seen>> {
    let counts = vec![0; given.actions.len()];
    let seen = Seen { end: Value::Null, calls: Vec::new(), counts, moments: Vec::new() };
    let (seen, setup, begun) = (Arc::new(Mutex::new(seen)), given.clone(), Instant::now());
    let table = seen.clone();
    let note = move |event: &agent::Event| {
        let Seen { end, calls, counts, moments } = &mut *table.lock().unwrap();
        match &event.kind {
            EventKind::AgentEnd { stop, detail, .. } => *end = json!({"stop": stop, "detail": detail}),
            EventKind::MessageEnd { message, .. } => {
                if let Some(reply) = message.as_assistant() {
                    *calls = reply.tool_calls().map(|call| call.id.clone()).collect();
                }
            }
            _ => {}
        }
        let shown = shown::event(event);
        for (action, count) in setup.actions.iter().zip(counts) {
            let (when, after) = action.when();
            *count += u64::from(when.fits(&shown));
            if !when.fits(&shown) || *count != when.nth {
                continue;
            }
            moments.push(Moment {
                action: action.clone(),
                at: begun.elapsed() + Duration::from_millis(after),
                event: shown["type"].as_str().unwrap().to_owned(),
                turn: event.turn,
                call: calls.iter().position(|id| shown["call_id"] == **id),
            });
        }
    };
    assistant.subscribe(note).forever();
    seen
}

/// The run in one process; who waits for a decision is allowed to go on.
async fn in_process(given: &Arc<Given>) -> (Ended, Vec<Moment>) {
    let assistant = setup::assistant(given, model::scripted(given)).unwrap();
    let before = assistant.messages().len();
    let seen = watch(&assistant, given);
    let (_, result) = play::to_its_end(&assistant, given).await.unwrap();
    if let Ok(output) = result
        && output.stop == RunStop::Suspended
    {
        let run = output.snapshot.unwrap();
        let requests = run.requests();
        let decisions = requests.iter().fold(Decisions::new(), Decisions::allow);
        assistant.resume(&run, decisions).await.unwrap();
    }
    let messages = said(&assistant.messages().shared()[before..]);
    let seen = seen.lock().unwrap();
    ((messages, seen.end.clone()), seen.moments.clone())
}

/// The run on an engine; what of its setup an engine does not do is an error.
fn rehearsal(given: &Arc<Given>) -> Result<Rehearsal, ServiceError> {
    let assistant = setup::assistant(given, model::scripted(given)).unwrap();
    let service = Service::new(&assistant)?;
    let mut prompts = given.prompt.iter().flatten();
    let request = RunRequest::new("run", &**prompts.next().unwrap());
    let request = prompts.fold(request, |request, text| request.with_message(Message::user(&**text)));
    let run = Rehearsal::new(service, request);
    given.steering_queued.iter().for_each(|text| run.steer(&**text));
    given.follow_up_queued.iter().for_each(|text| run.follow_up(&**text));
    // Who decides later is asked again by the run; the request is named by its place.
    for turn in 1..4 {
        for ord in 0..8 {
            run.decide(format!("run/{turn}/approval/{ord}"), Decision::Allow);
        }
    }
    Ok(run)
}

/// The run step by step: what happens right at an event happens between two steps, what happens later at its time.
async fn step_by_step(given: impl Fn() -> Arc<Given>, moments: &[Moment]) -> Result<Ended, ServiceError> {
    let run = rehearsal(&given())?;
    let mut timed: Vec<&Moment> = match moments {
        [moment] if !moment.is_later_than_its_event() => {
            let undisturbed = rehearsal(&given())?;
            undisturbed.play().await.unwrap();
            let count = moment.steps_before(&undisturbed.steps());
            assert_eq!(run.crash_before_step(count).await.unwrap(), None, "{moment:?}");
            moment.happen(&run);
            Vec::new()
        }
        moments => moments.iter().collect(),
    };
    timed.sort_by_key(|moment| moment.at);
    let begun = Instant::now();
    let mut play = pin!(run.play());
    for moment in timed {
        tokio::select! {
            biased;
            outcome = &mut play => return Ok(ended(&outcome.unwrap())),
            () = sleep_until(begun + moment.at) => moment.happen(&run),
        }
    }
    Ok(ended(&play.await.unwrap()))
}

fn ended(outcome: &agent::durable::Outcome) -> Ended {
    (said(&outcome.messages), json!({"stop": outcome.stop, "detail": outcome.detail}))
}

fn on_a_virtual_clock<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(work)
}

#[test]
fn what_is_done_to_a_run_comes_to_the_same_on_both_drivers() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/runs.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let (mut played, mut apart, mut refused, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for scenario in file["scenarios"].as_array().unwrap() {
        let has_actions = scenario["given"]["actions"].as_array().is_some_and(|actions| !actions.is_empty());
        let is_suspended = scenario["expect"]["end"]["stop"] == "suspended";
        if !has_actions && !is_suspended {
            continue;
        }
        let id = scenario["id"].as_str().unwrap();
        if let Some((_, why)) = APART.iter().find(|(apart, _)| *apart == id) {
            println!("{id} is for one of them alone: {why}");
            apart.push(id);
            continue;
        }
        let given = || Arc::new(Given::read(&scenario["given"].to_string()).unwrap());
        let (expected, moments) = on_a_virtual_clock(in_process(&given()));
        let found = match on_a_virtual_clock(step_by_step(given, &moments)) {
            Ok(found) => found,
            Err(why) => {
                println!("{id} is for one of them alone: {why}");
                refused.push(id);
                continue;
            }
        };
        if found != expected {
            wrong.push(format!("{id}, {moments:?}:\nwanted {expected:?}\n   got {found:?}"));
        }
        played.push(id);
    }
    println!(
        "{} runs are the same in both, {} are refused by the engine, {} are for one alone",
        played.len(),
        refused.len(),
        apart.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Who adds a scenario says here where it belongs.
    let counts = (played.len(), refused.len(), apart.len());
    assert_eq!(counts, (12, 0, APART.len()), "{played:?}, {refused:?}");
}

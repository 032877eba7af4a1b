//! Checks a store against its contract.

use crate::message::{Message, UserMessage};
use crate::store::{
    BudgetHold, BudgetUse, EntryKind, InvocationEnd, InvocationQuery, InvocationRecord, InvocationStatus,
    SessionEntry, SessionSummary, Store, StoreError, StoreErrorKind,
};
use crate::{
    json,
    step_key::{StepKey, StepKind},
    tool::{
        outcome::{OutcomeCode, ToolOutcome},
        output::{Control, ToolOutput},
    },
};

/// Checks a store against the contract of [`Store`](crate::store::Store).
///
/// The store may have other contents. The check adds entries that remain in the store. Their keys begin with `name`, so each `name` can be
/// used only once per store.
///
/// ```
/// use agent::store::MemoryStore;
/// use agent::testing::assert_store;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_store(&MemoryStore::new(), "doc").await;
/// # }
/// ```
///
/// # Panics
/// Panics if the store violates the contract, or if one of its methods fails.
pub async fn assert_store(store: &(impl Store + ?Sized), name: &str) {
    records(store, name).await;
    ends(store, name).await;
    lists(store, name).await;
    odd_texts(store, name).await;
    retention(store, name).await;
    entries(store, name).await;
    session_list(store, name).await;
    inbox(store, name).await;
    budgets(store, name).await;
}

/// Checks that one `reserve` call reserves all amounts or none, that only the first `settle` call has an effect, and that a reserved
/// amount counts as spent if it is not settled in time. Skips stores without budgets.
async fn budgets(store: &(impl Store + ?Sized), name: &str) {
    let (one, other) = (format!("{name}/\0one"), format!("{name}/other"));
    let id = |id: &str| format!("{name}/{id}");
    let hold = |budget: &str, amount: u64| BudgetHold::new(budget, amount, 100);
    let used = async |budget: &str| {
        let found = ok(store.budget(budget).await, "budget");
        assert_eq!(found.budget, budget);
        (found.spent, found.held)
    };
    let first = store.reserve(&id("a"), vec![hold(&one, 60)], 1_000, 5_000).await;
    if first.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Unsupported) {
        return;
    }
    assert_eq!(ok(first, "reserve"), None);
    let again = ok(store.reserve(&id("a"), vec![hold(&one, 60)], 1_000, 5_000).await, "reserve");
    assert_eq!((again, used(&one).await), (None, (0, 60)), "the same hold is made once");
    assert_eq!(used(&other).await, (0, 0), "a budget that was never used");
    let both = || vec![hold(&other, 50), hold(&one, 50)];
    let refused = ok(store.reserve(&id("b"), both(), 1_000, 5_000).await, "reserve");
    assert_eq!(refused, Some(BudgetUse::new(&one, 0, 60)), "the budget that has too little left");
    assert_eq!((used(&one).await, used(&other).await), ((0, 60), (0, 0)), "all or none");
    let amounts = |amount: u64| vec![(one.clone(), amount)];
    assert!(ok(store.settle(&id("a"), amounts(30)).await, "settle"));
    assert!(!ok(store.settle(&id("a"), amounts(30)).await, "settle"), "a hold is settled once");
    assert!(!ok(store.settle(&id("x"), amounts(30)).await, "settle"), "there is no such hold");
    assert_eq!(used(&one).await, (30, 0));
    assert_eq!(ok(store.reserve(&id("b"), both(), 1_000, 5_000).await, "reserve"), None);
    assert_eq!((used(&one).await, used(&other).await), ((30, 50), (0, 50)));
    // Exactly the remaining amount can be reserved.
    assert_eq!(ok(store.reserve(&id("c"), vec![hold(&one, 20)], 1_000, 9_000).await, "reserve"), None);
    assert!(ok(store.reserve(&id("d"), vec![hold(&one, 1)], 1_000, 9_000).await, "reserve").is_some());
    assert!(ok(store.settle(&id("c"), amounts(0)).await, "settle"));
    // The amounts of `b` were reserved until 5,000 and never settled, as if their process had crashed.
    assert_eq!(ok(store.reserve(&id("e"), vec![hold(&one, 20)], 6_000, 9_000).await, "reserve"), None);
    assert_eq!(used(&one).await, (80, 20), "what was not settled in time is spent");
    assert_eq!(used(&other).await, (0, 50), "and of another budget once that is used");
    assert!(ok(store.settle(&id("b"), amounts(10)).await, "settle"), "a late settlement corrects it");
    assert_eq!(used(&one).await, (40, 20));
    assert!(ok(store.settle(&id("e"), amounts(500)).await, "settle"), "more may be spent than was reserved");
    assert_eq!(used(&one).await, (540, 0));
    assert!(ok(store.reserve(&id("f"), vec![hold(&one, 0)], 6_000, 9_000).await, "reserve").is_some());
    assert!(ok(store.reserve(&id("g"), vec![hold(&other, 51)], 6_000, 9_000).await, "reserve").is_some());
    assert_eq!(used(&other).await, (50, 0), "a refusal counts what was not settled in time, too");
}

fn ok<T>(answer: Result<T, StoreError>, what: &str) -> T {
    answer.unwrap_or_else(|error| panic!("{what}: {error}"))
}

fn key(name: &str, run: &str, turn: u32, ord: u32) -> StepKey {
    StepKey::new(format!("{name}/{run}"), turn, StepKind::Tool, ord)
}

fn call(key: &StepKey, tool: &str, at: i64) -> InvocationRecord {
    let args = json!({"text": "naïve \u{1f600} \u{0} \"quoted\"", "n": 9_007_199_254_740_993_u64, "deep": [[null, 1.5]]});
    InvocationRecord::new(key.clone(), "call_1", tool, args).at(at).in_session(Some("a session".to_owned()))
}

fn output() -> ToolOutput {
    ToolOutput::text("it is\ndone").with_metadata("took", 5).with_control(Control::EndIfAll)
}

async fn found(store: &(impl Store + ?Sized), key: &StepKey) -> InvocationRecord {
    ok(store.get(key).await, "get").unwrap_or_else(|| panic!("get: there is no record {key}"))
}

/// Begins a call that has begun before, and returns the record of the first `begin`.
async fn begun(store: &(impl Store + ?Sized), new: InvocationRecord) -> InvocationRecord {
    ok(store.begin(new).await, "begin again").unwrap_or_else(|| panic!("begin again: nothing was found"))
}

/// Checks that the first `begin` inserts a record, and that a repeated `begin` returns it and counts an attempt. If the handle of the
/// record begins with `agent:`, the next `begin` removes the handle from the stored record and counts no attempt.
async fn records(store: &(impl Store + ?Sized), name: &str) {
    let key = key(name, "begin", 1, 0);
    assert_eq!(ok(store.get(&key).await, "get"), None, "nothing has begun");
    let mut new = call(&key, "send", 1_000);
    new.source = Some("user:7".to_owned());
    "I send it.".clone_into(&mut new.text);
    new.fingerprint = u64::MAX - 1;
    new.is_withheld = true;
    assert_eq!(ok(store.begin(new.clone()).await, "begin"), None);
    let record = found(store, &key).await;
    assert_eq!(record, new, "a record is what was begun");
    let mut other = new.clone();
    (other.tool, other.created_at) = ("another".to_owned(), 1);
    for attempt in 2..4 {
        let again = begun(store, other.clone()).await;
        assert_eq!(
            (again.attempt, again.status),
            (attempt, InvocationStatus::Pending),
            "attempts are counted"
        );
        assert_eq!(InvocationRecord { attempt: 1, ..again }, new, "what was begun first stays");
    }
    assert!(ok(store.defer(&key, "job-5").await, "defer"), "a pending record can wait for its result");
    assert_eq!(found(store, &key).await.handle.as_deref(), Some("job-5"));
    assert!(ok(store.defer(&key, "").await, "defer"), "a handle can be empty");
    assert_eq!(found(store, &key).await.handle.as_deref(), Some(""), "an empty handle is a handle");
    assert!(ok(store.defer(&key, "agent:ask").await, "defer"));
    let waiting = found(store, &key).await;
    let again = begun(store, other.clone()).await;
    assert_eq!(again, waiting, "what continues is given back as it was, and no attempt counted");
    let continued = found(store, &key).await;
    assert_eq!((continued.handle, continued.attempt), (None, waiting.attempt), "and its handle is removed");
    let again = begun(store, other).await;
    assert_eq!((again.handle, again.attempt), (None, waiting.attempt + 1), "to one caller alone");
}

/// Checks that only the first end of a call is recorded, and that a call that has ended cannot become pending again.
async fn ends(store: &(impl Store + ?Sized), name: &str) {
    let done = key(name, "finish", 1, 0);
    let end = InvocationEnd::new(output().into(), 2_000);
    assert!(!ok(store.finish(&done, end.clone()).await, "finish"), "what has not begun does not end");
    assert!(!ok(store.defer(&done, "x").await, "defer"), "what has not begun does not wait");
    ok(store.begin(call(&done, "send", 1_500)).await, "begin");
    assert!(ok(store.finish(&done, end.clone()).await, "finish"));
    let late = InvocationEnd::new(ToolOutcome::aborted("late"), 3_000);
    assert!(!ok(store.finish(&done, late).await, "finish"), "the first end counts");
    assert!(!ok(store.defer(&done, "x").await, "defer"), "what has ended does not wait");
    let record = found(store, &done).await;
    assert_eq!(
        (record.status, record.end.as_ref(), record.attempt),
        (InvocationStatus::Completed, Some(&end), 1)
    );
    assert_eq!((record.completed_at(), record.failed_at()), (Some(2_000), None));
    let again = begun(store, call(&done, "send", 5_000)).await;
    assert_eq!(again, record, "a result is given back, and no attempt counted");

    let outcomes = [
        crate::tool::error::ToolError::retry("better").with_metadata("wait", 5).into(),
        ToolOutcome::failed(OutcomeCode::TOOL_ERROR, "kaput"),
        ToolOutcome::denied(OutcomeCode::BLOCKED, "no"),
        ToolOutcome::Interrupted { code: OutcomeCode::LOST, reason: "gone".to_owned() },
    ];
    for (ord, outcome) in (1..).zip(outcomes) {
        let key = key(name, "finish", 1, ord);
        ok(store.begin(call(&key, "send", 1_500)).await, "begin");
        assert!(ok(store.finish(&key, InvocationEnd::new(outcome.clone(), 1_600)).await, "finish"));
        let record = begun(store, call(&key, "send", 1_700)).await;
        assert_eq!((record.outcome(), record.failed_at()), (Some(&outcome), Some(1_600)));
    }
}

/// Checks the filters, the order and the pages of `list`.
async fn lists(store: &(impl Store + ?Sized), name: &str) {
    let run = format!("{name}/list");
    for ord in 0..5_u32 {
        let key = key(name, "list", 1 + ord / 3, ord % 3);
        let mut new = call(&key, if ord % 2 == 0 { "even" } else { "odd" }, 100 - i64::from(ord / 2));
        new.session = Some(format!("{name}-{}", ord / 4));
        ok(store.begin(new).await, "begin");
        if ord < 2 {
            ok(store.finish(&key, InvocationEnd::new(output().into(), 200)).await, "finish");
        }
    }
    let all = InvocationQuery::new().run(&*run);
    let keys = |records: &[InvocationRecord]| -> Vec<String> {
        let short = |record: &InvocationRecord| format!("{}.{}", record.key.turn, record.key.ord);
        records.iter().map(short).collect()
    };
    let listed = async |query: InvocationQuery| keys(&ok(store.list(query).await, "list")).join(" ");
    assert_eq!(listed(all.clone()).await, "2.1 1.2 2.0 1.0 1.1", "by time, turn, position");
    assert_eq!(listed(all.clone().tool("odd")).await, "2.0 1.1");
    assert_eq!(listed(all.clone().status(InvocationStatus::Completed)).await, "1.0 1.1");
    assert_eq!(listed(all.clone().session(format!("{name}-1"))).await, "2.1");
    assert_eq!(listed(all.clone().between(99, 100)).await, "1.2 2.0", "the end is not included");
    assert_eq!(listed(InvocationQuery::new().run(format!("{run}/none"))).await, "");
    // An empty name still filters: a name may come from a request, and an empty one must not match all records.
    assert_eq!(listed(all.clone().session("")).await, "", "no session has the empty name");
    assert_eq!(listed(all.clone().tool("")).await, "", "no tool has the empty name");
    assert_eq!(listed(InvocationQuery::new().run("").session(format!("{name}-0"))).await, "");
    let (mut paged, mut query) = (Vec::new(), all.limit(2));
    loop {
        let page = ok(store.list(query.clone()).await, "list");
        assert!(page.len() <= 2, "a page is as long as was asked for");
        paged.extend(keys(&page));
        assert!(paged.len() <= 5, "a page begins after the last record of the page before: {paged:?}");
        let Some(last) = page.last() else { break };
        query = query.after(last);
    }
    assert_eq!(paged.join(" "), "2.1 1.2 2.0 1.0 1.1", "pages are the whole list");
}

/// Checks that empty names and names with control characters are valid and distinct.
async fn odd_texts(store: &(impl Store + ?Sized), name: &str) {
    const TEXTS: [&str; 5] = ["", "\0", "a\0b", "a\u{1a}b", "\u{1a}"];
    let run = |text: &str| format!("{name}/odd{text}");
    let call_of = |text: &str, session: Option<&str>, turn| {
        let key = StepKey::new(run(text), turn, StepKind::Tool, 0);
        call(&key, text, 700).in_session(session.map(str::to_owned))
    };
    let sessions = |text: &str| [None, Some(String::new()), Some(format!("{name}\u{1a}{text}\0"))];
    for text in TEXTS {
        for (turn, session) in (1..).zip(sessions(text)) {
            let new = call_of(text, session.as_deref(), turn);
            assert_eq!(ok(store.begin(new.clone()).await, "begin"), None, "{text:?}");
            assert!(ok(store.defer(&new.key, text).await, "defer"));
            let record = found(store, &new.key).await;
            let mut begun = new;
            begun.handle = Some(text.to_owned());
            assert_eq!(record, begun, "a record is what was begun");
        }
    }
    let count = async |query: InvocationQuery| ok(store.list(query).await, "list").len();
    for text in TEXTS {
        let all = InvocationQuery::new().run(run(text));
        assert_eq!(count(all.clone()).await, 3, "the run {text:?}");
        assert_eq!(count(all.clone().tool(text)).await, 3, "the tool {text:?}");
        assert_eq!(count(all.clone().tool("a")).await, 0, "another tool");
        for session in sessions(text).iter().flatten() {
            assert_eq!(count(all.clone().session(session)).await, 1, "the session {session:?}");
        }
        let mut query = all.limit(1);
        for _ in 0..2 {
            let page = ok(store.list(query.clone()).await, "list");
            query = query.after(page.last().unwrap_or_else(|| panic!("list: no page of {text:?}")));
        }
        assert_eq!(count(query).await, 1, "the last page");
    }
    for text in TEXTS {
        let (session, entry) = (format!("{name}-odd{text}"), SessionEntry::new(EntryKind::RunBegin));
        assert_eq!(ok(store.append(&session, 0, vec![entry]).await, "append"), 1, "the session {session:?}");
        let mut message = UserMessage::from(text);
        message.id = Some(format!("id{text}"));
        assert!(ok(store.push_steering(&session, message.clone()).await, "push"));
        assert!(!ok(store.push_steering(&session, message.clone()).await, "push"), "one id, one message");
        let key = StepKey::new(run(text), 1, StepKind::Poll, 0);
        assert_eq!(ok(store.take_steering(&session, &key, 9).await, "take"), [message]);
        assert_eq!(ok(store.delete_session(&session).await, "delete"), 1);
    }
}

/// Checks that `pending_before` finds calls that may be lost, and that `delete_finished_before` deletes only calls that ended before the
/// given time.
async fn retention(store: &(impl Store + ?Sized), name: &str) {
    let old = |ord| key(name, "old", 1, ord);
    for ord in 0..4 {
        ok(store.begin(call(&old(ord), "send", i64::from(ord) - 50)).await, "begin");
    }
    ok(store.defer(&old(3), "elsewhere").await, "defer");
    ok(store.finish(&old(1), InvocationEnd::new(output().into(), -20)).await, "finish");
    ok(store.finish(&old(2), InvocationEnd::new(output().into(), -10)).await, "finish");
    let mine = |records: Vec<InvocationRecord>| -> Vec<u32> {
        let mine = records.iter().filter(|record| record.key.run == old(0).run);
        mine.map(|record| record.key.ord).collect()
    };
    assert_eq!(mine(ok(store.pending_before(-40, 100).await, "pending_before")), [0]);
    assert_eq!(
        mine(ok(store.pending_before(-50, 100).await, "pending_before")),
        [0; 0],
        "the time is not included"
    );
    assert!(ok(store.delete_finished_before(-10).await, "delete") >= 1);
    let left = InvocationQuery::new().run(&*old(0).run);
    assert_eq!(mine(ok(store.list(left).await, "list")), [0, 2, 3], "pending and later ones stay");
    assert!(ok(store.finish(&old(0), InvocationEnd::new(output().into(), -30)).await, "finish"));
    assert!(ok(store.finish(&old(3), InvocationEnd::new(output().into(), -30)).await, "finish"));
    assert!(ok(store.delete_finished_before(0).await, "delete") >= 3);
}

/// Checks that `append` refuses writers that do not know the last entry, and that `delete_session` also deletes the sessions of
/// sub-agents.
async fn entries(store: &(impl Store + ?Sized), name: &str) {
    let (session, other) = (format!("{name} é '\"%"), format!("{name}-other"));
    let entry = |text: &str| {
        let kind = EntryKind::message_without(Message::user(text), vec!["c1".to_owned()], true);
        SessionEntry::new(kind).in_run("run-1", 2).written_by("me", 5)
    };
    let load = async |session: &str, after, limit| ok(store.load(session, after, limit).await, "load");
    assert_eq!(load(&session, 0, 10).await, [], "a session begins empty");
    let first = vec![SessionEntry::new(EntryKind::RunBegin), entry("one"), entry("two \u{0}")];
    assert_eq!(ok(store.append(&session, 0, first.clone()).await, "append"), 3);
    assert_eq!(ok(store.append(&session, 3, Vec::new()).await, "append"), 3, "nothing is added");
    assert_eq!(ok(store.append(&session, 3, vec![entry("three")]).await, "append"), 4);
    for (expected, count) in [(3, 1), (3, 2), (5, 1), (5, 2), (0, 1), (3, 0), (u64::MAX, 1)] {
        let error = store.append(&session, expected, vec![entry("late"); count]).await;
        let kind = error.as_ref().map_err(StoreError::kind);
        assert_eq!(kind, Err(StoreErrorKind::Conflict), "{count} behind {expected}, where 4 is the last");
    }
    let all = load(&session, 0, 10).await;
    let wanted = (1..).zip(first.into_iter().chain([entry("three")]));
    assert_eq!(all, wanted.collect::<Vec<_>>(), "what conflicts adds nothing");
    assert_eq!(load(&session, 1, 2).await, all[1..3], "a part");
    assert_eq!(load(&session, 4, 2).await, [], "behind the end");
    assert_eq!(ok(store.append(&other, 0, vec![entry("x")]).await, "append"), 1, "sessions are apart");
    assert_eq!(ok(store.delete_session(&session).await, "delete"), 4);
    assert_eq!(ok(store.delete_session(&session).await, "delete"), 0);
    assert_eq!((load(&session, 0, 9).await.len(), load(&other, 0, 9).await.len()), (0, 1));
    assert_eq!(ok(store.append(&session, 0, vec![entry("anew")]).await, "append"), 1);

    let run = format!("{name}/tree_1");
    let begins = |run: &str| SessionEntry::new(EntryKind::RunBegin).in_run(run, 0);
    let within = [format!("{run}/1/tool/0"), format!("{run}/1/tool/0/2/tool/1")];
    let apart = [format!("{name}/treeX1/1/tool/0"), format!("{run}0/1/tool/0")];
    for session in within.iter().chain(&apart) {
        ok(store.append(session, 0, vec![begins(session), entry("x")]).await, "append");
    }
    let root = format!("{name}-tree");
    ok(store.append(&root, 0, vec![begins(&run), entry("y")]).await, "append");
    assert_eq!(ok(store.delete_session(&root).await, "delete"), 6, "with those of its sub-agents");
    for session in within.iter().chain([&root]) {
        assert_eq!(load(session, 0, 9).await, [], "{session} is deleted");
    }
    for session in &apart {
        assert_eq!(load(session, 0, 9).await.len(), 2, "{session} belongs to another run");
    }
}

/// Checks that `list_sessions` lists each session with entries once, the latest first, for every page size. Ends early if the store cannot
/// list sessions, which it reports as `Unsupported`.
async fn session_list(store: &(impl Store + ?Sized), name: &str) {
    let names: Vec<String> =
        ["B", "a%", "a_c", "a\\", "é\u{0}"].iter().map(|end| format!("{name}-list/{end}")).collect();
    let entry = |at| SessionEntry::new(EntryKind::RunBegin).written_by("w", at);
    // The times of the last entries, two of which are equal.
    let times = [12, 14, 11, 14, 10];
    for ((count, at), session) in (1..).zip(times).zip(&names) {
        let earlier = std::iter::repeat_n(entry(1), count - 1);
        ok(store.append(session, 0, earlier.chain([entry(at)]).collect()).await, "append");
    }
    let prefix = format!("{name}-list/");
    match store.list_sessions(&prefix, None, 1).await {
        Err(error) if error.kind() == StoreErrorKind::Unsupported => return,
        first => assert_eq!(ok(first, "list_sessions").len(), 1, "a page has at most its limit"),
    }
    let pages = async |containing: &str, limit| -> Vec<SessionSummary> {
        let mut all: Vec<SessionSummary> = Vec::new();
        loop {
            let page = ok(store.list_sessions(containing, all.last(), limit).await, "list_sessions");
            assert!(page.len() <= limit, "a page has at most its limit");
            let is_known = |listed: &SessionSummary| all.iter().any(|known| known.session == listed.session);
            assert!(
                !page.iter().any(is_known),
                "a page begins after the last session of the page before: {page:?}"
            );
            let is_last = page.len() < limit;
            all.extend(page);
            if is_last {
                return all;
            }
        }
    };
    let whole = pages(&prefix, 100).await;
    for limit in [1, 2] {
        assert_eq!(pages(&prefix, limit).await, whole, "pages of {limit} are the whole list in its order");
    }
    assert!(whole.is_sorted_by(|one, next| one.at >= next.at), "the latest first: {whole:?}");
    let mut sorted = whole;
    sorted.sort_by_key(|listed| listed.entries);
    let expected: Vec<_> = (1..)
        .zip(times)
        .zip(&names)
        .map(|((count, at), session)| SessionSummary::new(session, count, at))
        .collect();
    assert_eq!(sorted, expected, "the number of entries, and the time of the last one");
    // The search ignores the case of ASCII letters and has no wildcards.
    for (end, session) in ["b", "A%", "a_", "A\\", "é\u{0}"].iter().zip(&names) {
        let found = pages(&format!("{prefix}{end}"), 10).await;
        assert_eq!(
            found.iter().map(|listed| &listed.session).collect::<Vec<_>>(),
            [session],
            "containing {end:?}"
        );
    }
    let found = pages(&format!("{prefix}É"), 10).await;
    assert_eq!(found, [], "the case of other letters is not ignored");
    ok(store.append(&names[4], 5, vec![entry(20)]).await, "append");
    let first = pages(&prefix, 10).await.swap_remove(0);
    assert_eq!(first, SessionSummary::new(&*names[4], 6, 20), "a session with a new entry is the first");
    ok(store.delete_session(&names[0]).await, "delete");
    assert_eq!(pages(&prefix, 10).await.len(), names.len() - 1, "a deleted session is not listed");
}

/// Checks that a message is added once and taken once, and that the same [`StepKey`] always receives the same messages.
async fn inbox(store: &(impl Store + ?Sized), name: &str) {
    let session = format!("{name}-inbox");
    let message = |id: &str| {
        let mut message = UserMessage::from(format!("say {id}").as_str());
        message.id = Some(id.to_owned());
        message
    };
    let poll = |turn| StepKey::new(format!("{name}/inbox"), turn, StepKind::Poll, 1);
    let take = async |turn, limit| -> Vec<String> {
        let taken = ok(store.take_steering(&session, &poll(turn), limit).await, "take");
        taken.iter().map(|message| message.id.clone().unwrap_or_default()).collect()
    };
    assert_eq!(take(1, 5).await, [""; 0], "nothing is there");
    for id in ["a", "b", "c"] {
        assert!(ok(store.push_steering(&session, message(id)).await, "push"));
    }
    assert!(!ok(store.push_steering(&session, message("b")).await, "push"), "one id, one message");
    assert_eq!(take(1, 5).await, [""; 0], "a key that was given nothing is given nothing");
    assert_eq!(take(2, 2).await, ["a", "b"], "oldest first");
    assert_eq!(take(2, 9).await, ["a", "b"], "a key is given the same again");
    assert_eq!(take(3, 9).await, ["c"]);
    assert!(!ok(store.push_steering(&session, message("a")).await, "push"), "also when it was taken");
    let nameless = store.push_steering(&session, UserMessage::from("nobody")).await;
    assert!(nameless.is_err(), "a message needs an id");
    ok(store.delete_session(&session).await, "delete");
    assert!(ok(store.push_steering(&session, message("a")).await, "push"), "a deleted inbox is empty");
    assert_eq!(take(2, 9).await, ["a"]);
}

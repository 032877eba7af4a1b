//! Budgets: what is reserved before a request, and settled after it. Never above the limit, whoever shares it.

use std::sync::Arc;
use std::time::Duration;

use agent::durable::{Rehearsal, RunRequest, Service};
use agent::message::Usage;
use agent::model::{Fallback, ModelAttempt, ModelError, ModelErrorKind, ModelInfo, ScriptedReply, reply};
use agent::provider::Prices;
use agent::run::{Budget, Limit};
use agent::store::{BudgetHold, MemoryStore, SqlStore, Store, StoreErrorKind};
use agent::testing::EventLog;
use agent::{Assistant, AssistantBuilder, EventKind, RunError, RunStop, ScriptedModel, tool, tools};

use crate::context_runs::{is_summary, next_reply};
use crate::store_kill::{finish, kill_at, lines, start_spending};
use crate::store_support::{Fault, Faulty, Folder, postgres, unique};

fn info() -> ModelInfo {
    ModelInfo::new("acme", "acme-chat", "large-1")
}

fn answers() -> ScriptedModel {
    ScriptedModel::from_fn(|_| reply().text("Hello!").usage(Usage::new(60, 40))).with_info(info())
}

fn builder(model: &ScriptedModel, store: &(impl Store + Clone + 'static)) -> AssistantBuilder {
    Assistant::builder(model.clone()).store(store.clone()).request(|request| request.with_max_tokens(50))
}

/// Counts.
#[tool(inline, read_only)]
fn count(number: usize) -> usize {
    number
}

/// The key of a budget of tokens for all time.
fn key(name: &str) -> String {
    format!("6:tokens/{}:{name}/0:/5:total", name.len())
}

fn total(name: &str, tokens: u64) -> Budget {
    Budget::tokens(tokens).named(name).in_total()
}

/// 64 runs at a time take of one budget, through these stores of one database.
async fn many_at_once(stores: Vec<Arc<dyn Store>>) {
    const LIMIT: u64 = 1_500;
    // Each takes about 67, and uses 50.
    let usage = || Usage::new(10, 40);
    let model = ScriptedModel::from_fn(move |_| reply().text("Hello!").usage(usage())).with_info(info());
    let name = unique("shared");
    let tasks: Vec<_> = (0..64)
        .map(|at| {
            let store = stores[at % stores.len()].clone();
            let budget = total(&name, LIMIT);
            let assistant = builder(&model, &store).budget(budget).build().unwrap();
            tokio::spawn(async move { assistant.prompt("Hi").await })
        })
        .collect();
    let mut answered = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(output) => {
                assert_eq!(output.text(), "Hello!");
                answered += 1;
            }
            Err(error) => {
                let reached = error.as_limit().unwrap_or_else(|| panic!("{error}"));
                assert_eq!((reached.limit, reached.allowed), (Limit::Budget, 1_500.0));
                assert!(reached.used <= reached.allowed, "{reached}");
            }
        }
    }
    assert_eq!(answered, model.requests().len(), "what is refused is not sent");
    let used = stores[0].budget(&key(&name)).await.unwrap();
    assert_eq!((used.spent, used.held), (50 * answered as u64, 0));
    assert!((20..=30).contains(&answered), "{answered} of 30 possible");
    // What is left serves those who come later, until nothing is.
    let assistant = builder(&model, &stores[0]).budget(total(&name, LIMIT)).build().unwrap();
    while assistant.prompt("Hi").await.is_ok() {}
    let used = stores[0].budget(&key(&name)).await.unwrap();
    assert!((1_400..=1_500).contains(&used.spent) && used.held == 0, "{used:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_at_the_same_time_never_exceed_a_budget() {
    many_at_once(vec![Arc::new(MemoryStore::new())]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_of_one_sqlite_file_share_a_budget() {
    let folder = Folder::new();
    let path = folder.path("budgets.db");
    let (one, other) = (SqlStore::sqlite(&path).await.unwrap(), SqlStore::sqlite(&path).await.unwrap());
    many_at_once(vec![Arc::new(one), Arc::new(other)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "postgres: needs DATABASE_URL"]
async fn store_budgets_in_postgres() {
    many_at_once(vec![Arc::new(postgres().await), Arc::new(postgres().await)]).await;
}

/// Two processes take of one budget; one of them is killed while requests of it are open.
async fn two_processes(database: &str, store: &SqlStore) {
    const LIMIT: u64 = 3_000;
    // On a busy machine, one of them may take all of it before the other begins.
    let found = (0..10).find_map(|_| {
        let (folder, name) = (Folder::new(), unique("processes"));
        let logs = [folder.path("one"), folder.path("other")];
        let mut killed = start_spending(database, &logs[0], &name);
        let other = start_spending(database, &logs[1], &name);
        if kill_at(&mut killed, &logs[0], 12, Duration::from_millis(5)) {
            return Some((folder, name, logs, other));
        }
        finish(other);
        None
    });
    let (_folder, name, logs, other) = found.expect("it was killed");
    let left = store.budget(&key(&name)).await.unwrap();
    assert!(left.spent + left.held <= LIMIT, "{left:?}");
    finish(other);
    let used = store.budget(&key(&name)).await.unwrap();
    let count =
        |word: &str| logs.iter().flat_map(|log| lines(log)).filter(|line| line == word).count() as u64;
    let (sent, answered) = (count("sent"), count("answered"));
    // What was answered is settled, and what the killed process had open is still reserved: at most 61 tokens for each.
    assert!(used.spent >= 50 * answered && used.spent + used.held <= LIMIT, "{used:?}, {answered} answers");
    assert!(used.held > 0 && used.held <= 8 * 70, "{used:?}");
    assert!(sent > answered && sent <= LIMIT / 50, "{sent} requests");
    // An hour later these count as spent, because they may have been made; nothing is reserved any more.
    let later = now() + 3_600_000;
    let all = vec![BudgetHold::new(key(&name), LIMIT, LIMIT)];
    let refused = store.reserve("later", all, later, later + 1_000).await.unwrap().unwrap();
    assert_eq!((refused.spent, refused.held), (used.spent + used.held, 0));
}

#[tokio::test]
async fn two_processes_never_exceed_a_budget_also_if_one_is_killed() {
    let folder = Folder::new();
    let path = folder.path("budgets.db");
    let store = SqlStore::sqlite(&path).await.unwrap();
    two_processes(path.to_str().unwrap(), &store).await;
}

#[tokio::test]
#[ignore = "postgres: needs DATABASE_URL"]
async fn store_budgets_of_processes_in_postgres() {
    let store = postgres().await;
    two_processes(&std::env::var("DATABASE_URL").unwrap(), &store).await;
}

#[tokio::test]
async fn a_process_that_dies_between_has_spent_what_it_reserved() {
    let (model, store) = (answers(), MemoryStore::new());
    let hold = vec![BudgetHold::new(key("team"), 900, 1_000)];
    // Another process, an hour ago.
    let an_hour_ago = now() - 3_600_000;
    assert_eq!(store.reserve("gone", hold, an_hour_ago, an_hour_ago + 60_000).await.unwrap(), None);
    let assistant = builder(&model, &store).budget(total("team", 1_000)).build().unwrap();
    let error = assistant.prompt("A long text. ".repeat(40)).await.unwrap_err();
    assert_eq!(error.as_limit().map(|reached| reached.used), Some(900.0));
    assert_eq!((model.requests().len(), store.budget(&key("team")).await.unwrap().spent), (0, 900));
    // It was only slow.
    assert!(store.settle("gone", vec![(key("team"), 200)]).await.unwrap());
    assistant.prompt("Hi").await.unwrap();
    assert_eq!(store.budget(&key("team")).await.unwrap().spent, 300);
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[tokio::test]
async fn a_reply_is_limited_to_what_fits() {
    let (model, store) = (answers(), MemoryStore::new());
    let limited = |tokens: u64| {
        let builder = Assistant::builder(model.clone()).store(store.clone());
        let builder = builder.request(|request| request.with_max_tokens(20_000));
        builder.budget(total(&format!("of {tokens}"), tokens)).build().unwrap()
    };
    limited(30_000).prompt("Hi").await.unwrap();
    limited(5_000).prompt("Hi").await.unwrap();
    let error = limited(1_020).prompt("Hi").await.unwrap_err();
    assert!(error.is_limit(), "{error}");
    let asked: Vec<u64> = model.requests().iter().map(|request| request.max_tokens.unwrap()).collect();
    assert_eq!(asked.len(), 2, "a reply of fewer than 1,024 tokens is not asked for");
    assert!(asked[0] == 20_000 && (4_900..5_000).contains(&asked[1]), "{asked:?}");
}

#[tokio::test]
async fn the_error_says_what_was_needed_and_the_next_prompt_may_fit() {
    let (model, store) = (answers(), MemoryStore::new());
    let assistant = builder(&model, &store).budget(total("team", 150)).build().unwrap();
    assistant.prompt("Hi").await.unwrap();
    let error = assistant.prompt("Again").await.unwrap_err();
    assert!(matches!(&error, RunError::Limit(reached) if reached.limit == Limit::Budget), "{error}");
    assert!(
        error.to_string().starts_with("the limit of 150 units of the budget `team` is reached (100 used)"),
        "{error}"
    );
    let last = assistant.messages().last().unwrap().as_assistant().unwrap().error.clone().unwrap();
    assert!(
        last.starts_with("the budget `team` of 150 tokens has too little left for a request of "),
        "{last}"
    );
    assert!(last.ends_with(": 100 are spent, and 0 reserved for other requests"), "{last}");
    // A larger budget of the same name counts what was spent.
    let assistant = builder(&model, &store).budget(total("team", 300)).build().unwrap();
    assistant.prompt("Again").await.unwrap();
    assert_eq!(store.budget(&key("team")).await.unwrap().spent, 200);
}

#[tokio::test]
async fn a_request_that_failed_costs_what_the_provider_may_have_counted() {
    let error = |kind| ModelError::new(kind, "no");
    let cases: [(&str, ScriptedReply, std::ops::RangeInclusive<u64>); 5] = [
        ("refused", reply().error(error(ModelErrorKind::InvalidRequest).with_status(400)), 0..=0),
        ("too many", reply().error(error(ModelErrorKind::RateLimit).with_status(429)), 0..=0),
        ("server", reply().error(error(ModelErrorKind::Server).with_status(500)), 1..=49),
        ("cut", reply().text("Hel").usage(Usage::new(7, 3)).error(error(ModelErrorKind::Connection)), 1..=49),
        ("silent", reply().text("Hello!"), 51..=99),
    ];
    for (name, answer, spent) in cases {
        let (model, store) = (ScriptedModel::new([answer]), MemoryStore::new());
        let assistant = builder(&model, &store).budget(total(name, 1_000)).build().unwrap();
        let answered = assistant.prompt("Hi").await;
        assert_eq!(answered.is_ok(), name == "silent", "{name}");
        let used = store.budget(&key(name)).await.unwrap();
        assert!(spent.contains(&used.spent) && used.held == 0, "{name}: {used:?}");
    }
    // A run that is cancelled while the model answers.
    let (model, store) = (ScriptedModel::new([reply().text("word ".repeat(30)).hang()]), MemoryStore::new());
    let assistant = builder(&model, &store).budget(total("cancelled", 1_000)).build().unwrap();
    let token = agent::CancelToken::new();
    let cancel = async {
        while assistant.streaming_message().is_none_or(|reply| reply.text().len() < 150) {
            tokio::task::yield_now().await;
        }
        token.cancel("enough");
    };
    let (ended, ()) = tokio::join!(async { assistant.prompt("Hi").cancel(token.clone()).await }, cancel);
    assert!(ended.unwrap_err().is_aborted());
    while store.budget(&key("cancelled")).await.unwrap().held > 0 {
        tokio::task::yield_now().await;
    }
    assert!((40..70).contains(&store.budget(&key("cancelled")).await.unwrap().spent), "what arrived counts");
}

#[tokio::test]
async fn money_is_counted_in_billionths_at_the_prices_of_the_list() {
    let store = MemoryStore::new();
    let prices = [("acme/large-1", Prices::new(3.0, 15.0))];
    let assistant = |dollars: f64| {
        let budget = Budget::dollars(dollars).named("money").in_total();
        builder(&answers(), &store).prices(prices).budget(budget).build().unwrap()
    };
    assistant(0.01).prompt("Hi").await.unwrap();
    // 60 tokens at 3,000 billionths and 40 at 15,000.
    let key = "11:nanodollars/5:money/0:/5:total";
    assert_eq!(store.budget(key).await.unwrap().spent, 780_000);
    let error = assistant(0.001).prompt("Hi").await.unwrap_err();
    let reached = error.as_limit().unwrap();
    assert_eq!((reached.allowed, reached.used, reached.budget.as_deref()), (0.001, 0.000_78, Some("money")));
    assert!(error.to_string().contains("of the budget `money` is reached"), "{error}");
}

#[tokio::test]
async fn each_scope_and_session_has_an_amount_of_its_own() {
    let (model, store) = (answers(), MemoryStore::new());
    let budget = || Budget::tokens(190).scope(|cx| cx.get::<String>().cloned().unwrap_or_default());
    let assistant = builder(&model, &store).budget(budget().per_month()).build().unwrap();
    for tenant in ["ann", "ben"] {
        assistant.prompt("Hi").with_state(tenant.to_owned()).await.unwrap();
        assert!(assistant.prompt("Hi").with_state(tenant.to_owned()).await.unwrap_err().is_limit());
    }
    let session = Budget::tokens(190).per_session();
    for name in ["ann", "ben"] {
        let assistant = builder(&model, &store).budget(session.clone()).session(name).await.unwrap();
        assistant.prompt("Hi").await.unwrap();
        assert!(assistant.prompt("Hi").await.unwrap_err().is_limit());
    }
    let error = builder(&model, &store).budget(session).build().unwrap().prompt("Hi").await.unwrap_err();
    assert!(error.to_string().contains("is for a session, and the run has none"), "{error}");
    // Each run begins anew, also without a store.
    let assistant = Assistant::builder(model.clone())
        .request(|request| request.with_max_tokens(50))
        .budget(Budget::tokens(190))
        .build()
        .unwrap();
    for _ in 0..3 {
        assistant.prompt("Hi").await.unwrap();
    }
    let panics = Budget::tokens(150).scope(|_| panic!("a test"));
    let sent = model.requests().len();
    let error = builder(&model, &store).budget(panics).build().unwrap().prompt("Hi").await.unwrap_err();
    assert!(error.to_string().contains("the scope of the budget `budget` panicked: a test"), "{error}");
    assert_eq!(model.requests().len(), sent);
}

#[tokio::test]
async fn all_budgets_have_to_admit_a_request_and_none_is_taken_of_in_vain() {
    let (model, store) = (answers(), MemoryStore::new());
    let assistant = builder(&model, &store).budget(total("a", 1_000)).budget(total("b", 60)).build().unwrap();
    assert!(assistant.prompt("A long text. ".repeat(20)).await.unwrap_err().is_limit());
    let used = store.budget(&key("a")).await.unwrap();
    assert_eq!((used.spent, used.held, model.requests().len()), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_lets_nothing_be_sent() {
    let model = answers();
    let broken = Faulty::new(&MemoryStore::new(), Fault::Fails(StoreErrorKind::Unavailable), 0, usize::MAX);
    let assistant = builder(&model, &broken).budget(total("team", 1_000)).build().unwrap();
    let error = assistant.prompt("Hi").await.unwrap_err();
    let kind = error.as_store_error().map(agent::store::StoreError::kind);
    assert_eq!((error.code(), kind), ("store", Some(StoreErrorKind::Unavailable)));
    assert!(assistant.last_error().unwrap().contains("the budget could not be reserved"));
    assert_eq!((model.requests().len(), assistant.messages().len()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_loses_neither_the_end_of_a_reply_nor_its_settlement() {
    let inner = MemoryStore::new();
    let slow = Faulty::new(&inner, Fault::Slow(Duration::from_millis(300)), 0, usize::MAX);
    let model = ScriptedModel::new([
        reply().text("Hel").error(ModelError::new(ModelErrorKind::Server, "broken")),
        reply().text("Hello!").usage(Usage::new(60, 40)),
    ]);
    let assistant = builder(&model, &slow).budget(total("slow", 1_000)).build().unwrap();
    let error = assistant.prompt("Hi").await.unwrap_err();
    assert!(error.as_model_error().is_some_and(|error| error.message() == "broken"), "{error}");
    let before = inner.budget(&key("slow")).await.unwrap();
    assert_eq!(assistant.prompt("Hi").await.unwrap().text(), "Hello!");
    let used = inner.budget(&key("slow")).await.unwrap();
    assert_eq!((used.spent - before.spent, used.held), (100, 0));
    // The run is dropped before it knows that the store has reserved.
    let lost = Faulty::new(&inner, Fault::LosesTheAnswer, 0, 1);
    let assistant = builder(&model, &lost).budget(total("slow", 1_000)).build().unwrap();
    tokio::time::timeout(Duration::from_millis(1), assistant.prompt("Hi")).await.unwrap_err();
    assert!(inner.budget(&key("slow")).await.unwrap().held > 0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(inner.budget(&key("slow")).await.unwrap(), used);
}

#[tokio::test]
async fn requests_for_summaries_and_durable_runs_count_too() {
    let model = ScriptedModel::from_fn(|request| next_reply(request, 60)).with_info(info());
    let store = MemoryStore::new();
    let assistant = crate::context_runs::builder(model.clone())
        .manage_context(crate::context_runs::rules())
        .store(store.clone())
        .budget(total("all", 10_000_000))
        .build()
        .unwrap();
    let output = assistant.prompt("Read 60 pages.").await.unwrap();
    assert!(model.requests().iter().any(is_summary));
    let used = store.budget(&key("all")).await.unwrap();
    assert_eq!((used.spent, used.held), (output.usage.input + output.usage.output, 0));

    let model = answers();
    let assistant = builder(&model, &store).budget(total("durable", 120)).build().unwrap();
    for stop in [RunStop::Completed, RunStop::Limit] {
        let run = Rehearsal::new(Service::new(&assistant).unwrap(), RunRequest::new("r", "Hi"));
        assert_eq!(run.play().await.unwrap().stop, stop);
    }
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn budgets_that_cannot_be_used_are_found_when_the_assistant_is_built() {
    let (model, store) = (answers(), MemoryStore::new());
    let refused = |builder: AssistantBuilder| builder.build().unwrap_err().to_string();
    let with = |budget: Budget| refused(builder(&model, &store).budget(budget));
    assert_eq!(with(Budget::tokens(0)), "the budget `budget` cannot be used: it has no tokens");
    for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(with(Budget::dollars(odd)).contains("its amount is not a number above zero"), "{odd}");
    }
    assert_eq!(with(total("", 1)), "the budget `` cannot be used: its name is empty");
    let no_store = Assistant::builder(model.clone()).budget(total("team", 1));
    assert!(refused(no_store).contains("so it needs a store"));
    assert!(
        refused(builder(&model, &store).budget(total("a", 1)).budget(total("a", 2)))
            .contains("there are two")
    );
    assert!(
        builder(&model, &store).budget(total("a", 1)).budget(Budget::tokens(1).named("a")).build().is_ok()
    );

    let other = ScriptedModel::new([""; 0]).with_info(ModelInfo::new("acme", "acme-chat", "small-1"));
    let with_price = || {
        let prices = [("acme/large-1", Prices::new(3.0, 15.0))];
        builder(&model, &store).prices(prices).budget(Budget::dollars(1.0))
    };
    assert!(with_price().build().is_ok());
    assert!(
        refused(with_price().named_model("cheap", other.clone()))
            .contains("the model `acme/small-1` has no price")
    );
    let both = Fallback::new([model.clone(), other]);
    let prices = [("acme/large-1", Prices::new(3.0, 15.0))];
    let both = Assistant::builder(both).prices(prices).budget(Budget::dollars(1.0));
    assert!(refused(both).contains("the model `acme/small-1` has no price"));
}

#[tokio::test]
async fn attempts_of_a_fallback_that_failed_count_too() {
    let fails = |status: u16| {
        let error = ModelError::new(ModelErrorKind::Server, "broken").with_status(status);
        ScriptedModel::from_fn(move |_| error.clone().into()).with_info(ModelInfo::new(
            "acme",
            "acme-chat",
            "large-1",
        ))
    };
    let mut spent = Vec::new();
    for status in [500, 429] {
        let store = MemoryStore::new();
        let second = ScriptedModel::new([reply().text("Hello!").usage(Usage::new(60, 40))])
            .with_info(ModelInfo::new("acme", "acme-chat", "small-1"));
        let kinds = [ModelErrorKind::Server, ModelErrorKind::RateLimit];
        let both = Fallback::new([fails(status), second]).on(kinds);
        let assistant = Assistant::builder(both).store(store.clone()).budget(total("team", 100_000)).build();
        assert_eq!(assistant.unwrap().prompt("Hi").await.unwrap().text(), "Hello!");
        let used = store.budget(&key("team")).await.unwrap();
        assert_eq!(used.held, 0);
        spent.push(used.spent);
    }
    assert!((101..200).contains(&spent[0]), "the estimated input of the first: {spent:?}");
    assert_eq!(spent[1], 100, "a refused request costs nothing");
}

#[tokio::test]
async fn a_fallback_does_not_exceed_a_budget() {
    let error = ModelError::new(ModelErrorKind::Server, "broken").with_status(500);
    let first = ScriptedModel::from_fn(move |_| error.clone().into()).with_info(info());
    // It uses all that it may.
    let second = ScriptedModel::from_fn(|request| {
        let limit = request.max_tokens.expect("the reply is limited");
        reply().text("Hello!").usage(Usage::new(1, limit))
    });
    let second = second.with_info(ModelInfo::new("acme", "acme-chat", "small-1"));
    let store = MemoryStore::new();
    let both = Assistant::builder(Fallback::new([first, second])).store(store.clone());
    let assistant = both.budget(total("team", 5_000)).build().unwrap();
    assert_eq!(assistant.prompt("Hi").await.unwrap().text(), "Hello!");
    let used = store.budget(&key("team")).await.unwrap();
    assert!((4_000..=5_000).contains(&used.spent), "{used:?}");
}

/// Waits until a budget has this use: what a run leaves behind is settled beside it.
async fn assert_settled(store: &MemoryStore, name: &str, spent: std::ops::Range<u64>) {
    for _ in 0..100 {
        tokio::task::yield_now().await;
        if store.budget(&key(name)).await.unwrap().held == 0 {
            break;
        }
    }
    let used = store.budget(&key(name)).await.unwrap();
    assert!(used.held == 0 && spent.contains(&used.spent), "{spent:?}: {used:?}");
}

#[tokio::test]
async fn attempts_count_also_if_the_request_is_cancelled() {
    let error = ModelError::new(ModelErrorKind::Server, "broken");
    let first = ScriptedModel::from_fn(move |_| error.clone().into()).with_info(info());
    let silent = ScriptedModel::from_fn(|_| reply().hang());
    let silent = silent.with_info(ModelInfo::new("acme", "acme-chat", "small-1"));
    let mut spent = Vec::new();
    for (at, model) in
        [Fallback::new([silent.clone()]), Fallback::new([first, silent])].into_iter().enumerate()
    {
        let store = MemoryStore::new();
        let assistant = Assistant::builder(model).store(store.clone()).budget(total("team", 100_000));
        let assistant = assistant.build().unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(30), assistant.prompt("Hi")).await.unwrap_err();
        assert_settled(&store, "team", 1..200).await;
        spent.push(store.budget(&key("team")).await.unwrap().spent);
        let messages = assistant.messages();
        let reply = messages.last().and_then(|message| message.as_assistant());
        assert!(reply.is_none_or(|reply| ModelAttempt::before(reply).len() == at));
    }
    assert_eq!(spent[1], 2 * spent[0], "the estimated input of each");
}

#[tokio::test]
async fn each_compaction_between_runs_has_the_amount_of_a_run() {
    let model = ScriptedModel::from_fn(|request| {
        if is_summary(request) {
            return reply().text(r#"{"goal": "Know why", "open": ["Why"]}"#).usage(Usage::new(14_000, 10));
        }
        let length: usize = request.messages.iter().map(|message| message.text().len()).sum();
        reply().text("Because.").usage(Usage::new(length as u64 / 4, 10))
    });
    let assistant = crate::context_runs::builder(model.clone())
        .manage_context(crate::context_runs::rules())
        .budget(Budget::tokens(30_000))
        .build()
        .unwrap();
    for turn in 0..3 {
        for _ in 0..4 {
            assistant.prompt("why ".repeat(400)).await.unwrap();
        }
        assert!(assistant.compact(None).await.unwrap().is_some(), "{turn}");
    }
}

#[tokio::test]
async fn a_cancelled_summary_is_settled_as_a_request_that_was_made() {
    let model =
        ScriptedModel::from_fn(
            |request| {
                if is_summary(request) { reply().hang() } else { reply().text("Because.") }
            },
        );
    let (store, log) = (MemoryStore::new(), EventLog::new());
    let assistant = crate::context_runs::builder(model.clone())
        .on_event(log.listener())
        .conversation(crate::context_runs::chat(600, 15))
        .manage_context(crate::context_runs::rules())
        .store(store.clone())
        .budget(total("team", 1_000_000))
        .build()
        .unwrap();
    let _ = tokio::time::timeout(Duration::from_millis(100), assistant.prompt("And now?")).await.unwrap_err();
    assert_eq!(model.requests().iter().map(is_summary).collect::<Vec<_>>(), [true]);
    assert_settled(&store, "team", 1_000..20_000).await;
    log.assert_sequence(&["compaction begins: size", "compaction fails"]);
    assert!(assistant.messages().view_changes().is_empty());
}

#[tokio::test]
async fn attempts_count_also_if_all_models_of_a_fallback_failed() {
    let fails = |kind: ModelErrorKind, status: u16| {
        let error = ModelError::new(kind, "broken").with_status(status);
        ScriptedModel::from_fn(move |_| error.clone().into()).with_info(info())
    };
    let mut spent = Vec::new();
    for (first, second) in [(429, 500), (500, 429), (500, 500), (429, 429)] {
        let store = MemoryStore::new();
        let kind = |status| if status == 429 { ModelErrorKind::RateLimit } else { ModelErrorKind::Server };
        let both = Fallback::new([fails(kind(first), first), fails(kind(second), second)]);
        let assistant = Assistant::builder(both).store(store.clone()).budget(total("team", 100_000)).build();
        let assistant = assistant.unwrap();
        assert_eq!(assistant.prompt("Hi").await.unwrap_err().code(), "model");
        // The record of the failed reply has the other attempt.
        let messages = assistant.messages();
        let attempts = ModelAttempt::before(messages.last().unwrap().as_assistant().unwrap());
        assert_eq!(attempts.iter().map(|attempt| attempt.status).collect::<Vec<_>>(), [Some(second)]);
        let used = store.budget(&key("team")).await.unwrap();
        assert_eq!(used.held, 0);
        spent.push(used.spent);
    }
    let one = spent[0];
    assert!((1..100).contains(&one) && spent == [one, one, 2 * one, 0], "{spent:?}");
}

#[tokio::test]
async fn a_budget_that_is_nearly_spent_is_announced_once_in_a_run() {
    let model = ScriptedModel::from_fn(|request| {
        let usage = Usage::new(60, 40);
        let count = request.messages.len();
        let reply = if count < 9 {
            reply().tool_call("count", format!(r#"{{"number": {count}}}"#))
        } else {
            reply().text("Done.")
        };
        reply.usage(usage)
    })
    .with_info(info());
    let (store, log) = (MemoryStore::new(), EventLog::new());
    let assistant = builder(&model, &store)
        .tools(tools![count])
        .budget(total("team", 500))
        .budget(Budget::tokens(100_000).named("large").in_total())
        .on_event(log.listener())
        .build()
        .unwrap();
    assistant.prompt("Add.").await.unwrap_err();
    let near = |log: &EventLog| -> Vec<(String, f64)> {
        let all = log.events().into_iter();
        all.filter_map(|event| match event.kind {
            EventKind::BudgetNear { budget, share, .. } => Some((budget, share)),
            _ => None,
        })
        .collect()
    };
    // Before the fifth request 400 of 500 are spent.
    assert_eq!(near(&log), [("team".to_owned(), 0.8)], "{}", log.outline());
    assert_eq!(store.budget(&key("team")).await.unwrap().spent, 400);
    // Another run says it again, and one with a larger budget does not.
    for (limit, expected) in [(700, None), (600, Some(("team".to_owned(), 500.0 / 600.0)))] {
        let log = EventLog::new();
        let other = builder(&answers(), &store).budget(total("team", limit)).on_event(log.listener());
        let ended = other.build().unwrap().prompt("Hi").await;
        assert_eq!(near(&log), Vec::from_iter(expected), "{limit}: {ended:?}");
    }
}

//! Amounts of budgets, reserved and settled many times by stores whose clocks differ: never above the limit, and exact at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent::message::Usage;
use agent::model::{Fallback, ModelError, ModelErrorKind, ModelInfo, reply};
use agent::provider::Prices;
use agent::run::Budget;
use agent::store::{BudgetHold, MemoryStore, SqlStore, Store};
use agent::{Assistant, ScriptedModel};

use crate::store_support::{Folder, postgres, unique};

const HOUR: i64 = 3_600_000;
/// The time by the clock of the first store.
const NOW: i64 = 1_800_000_000_000;
const WRITERS: u64 = 4;
const PAIRS: u64 = 500;
const LIMIT: u64 = 60_000;

/// Each writer reserves 100 and settles less, twice; its clock is the first or the second one, an hour later. Holds are open for two hours.
async fn assert_exact(stores: [Arc<dyn Store>; 2]) {
    let (budget, spent, first) = (unique("exact"), Arc::new(AtomicU64::new(0)), stores[0].clone());
    let writers = stores.into_iter().zip([NOW, NOW + HOUR]).cycle().zip(0..WRITERS);
    let writers = writers.map(|((store, now), writer)| {
        let (budget, spent) = (budget.clone(), spent.clone());
        tokio::spawn(async move {
            let mut refused = 0;
            for request in 0..PAIRS {
                let (id, actual) = (format!("{writer}/{request}"), (request * 7 + writer) % 100);
                let hold = vec![BudgetHold::new(&*budget, 100, LIMIT)];
                if let Some(used) = store.reserve(&id, hold, now, now + 2 * HOUR).await.unwrap() {
                    assert!(used.spent + used.held + 100 > LIMIT, "{used:?} admits it");
                    refused += 1;
                    continue;
                }
                // The others reserve meanwhile.
                tokio::task::yield_now().await;
                let used = store.budget(&budget).await.unwrap();
                assert!(used.spent + used.held <= LIMIT, "{used:?}");
                // One of ten is reserved again, one of ten is settled twice.
                if request % 10 == 3 {
                    let again = vec![BudgetHold::new(&*budget, 100, LIMIT)];
                    assert_eq!(store.reserve(&id, again, now, now + 2 * HOUR).await.unwrap(), None);
                }
                assert!(store.settle(&id, vec![(budget.clone(), actual)]).await.unwrap());
                if request % 10 == 7 {
                    assert!(!store.settle(&id, vec![(budget.clone(), 90)]).await.unwrap(), "settled already");
                }
                spent.fetch_add(actual, Ordering::Relaxed);
            }
            refused
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut refused = 0;
    for writer in writers {
        refused += writer.await.unwrap();
    }
    let used = first.budget(&budget).await.unwrap();
    assert_eq!((used.spent, used.held), (spent.load(Ordering::Relaxed), 0), "{refused} were refused");
    assert!(refused > 0 && used.spent > LIMIT - 200, "the limit is reached: {used:?}, {refused}");
}

#[tokio::test]
async fn amounts_are_exact_in_memory() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    assert_exact([store.clone(), store]).await;
}

#[tokio::test]
async fn amounts_are_exact_in_one_sqlite_file() {
    let folder = Folder::new();
    let path = folder.path("budgets.db");
    let open = || async { Arc::new(SqlStore::sqlite(&path).await.unwrap()) as Arc<dyn Store> };
    assert_exact([open().await, open().await]).await;
}

#[tokio::test]
#[ignore = "postgres: needs DATABASE_URL"]
async fn store_budgets_are_exact_in_postgres() {
    assert_exact([Arc::new(postgres().await), Arc::new(postgres().await)]).await;
}

#[tokio::test]
async fn a_reply_of_a_fallback_costs_what_its_own_model_costs() {
    let info = |model: &str| ModelInfo::new("acme", "acme-chat", model);
    let busy = ModelError::new(ModelErrorKind::RateLimit, "busy").with_status(429);
    let first = ScriptedModel::from_fn(move |_| busy.clone().into()).with_info(info("large-1"));
    let second = ScriptedModel::new([reply().text("Hello!").usage(Usage::new(60, 40))]);
    let both = Fallback::new([first, second.with_info(info("small-1"))]).on([ModelErrorKind::RateLimit]);
    let store = MemoryStore::new();
    let assistant = Assistant::builder(both)
        .store(store.clone())
        .prices([("acme/large-1", Prices::new(3.0, 15.0)), ("acme/small-1", Prices::new(1.0, 2.0))])
        .budget(Budget::dollars(10.0).named("money").in_total())
        .build()
        .unwrap();
    assistant.prompt("Hi").await.unwrap();
    let used = store.budget("11:nanodollars/5:money/0:/5:total").await.unwrap();
    // 60 tokens at 1,000 billionths and 40 at 2,000, rounded up.
    assert!((140_000..=140_001).contains(&used.spent), "{used:?}");
}

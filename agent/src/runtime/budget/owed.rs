//! Settlements that the store did not take, for the next request.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runtime::records::StoreAccess;

/// The most settlements that are kept. The holds of others count as spent once they expire.
const MAX_OWED: usize = 1_000;

/// The id of a hold, and the amount for each budget.
type Settlement = (String, Vec<(String, u64)>);

#[derive(Default)]
pub(super) struct OwedSettlements(Mutex<VecDeque<Settlement>>);

impl OwedSettlements {
    fn list(&self) -> MutexGuard<'_, VecDeque<Settlement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Settles a hold, now or before the next request.
    pub(super) async fn settle(&self, store: &StoreAccess, (id, amounts): Settlement) {
        if let Err(error) = store.settle(&id, amounts.clone()).await {
            tracing::warn!(%error, "a budget could not be settled; it is tried again before the next request");
            let mut list = self.list();
            if list.len() < MAX_OWED {
                list.push_back((id, amounts));
            }
        }
    }

    /// Settles what is owed, until the store fails. A settlement is removed once it was made, or can never be; a second one has no effect.
    pub(super) async fn catch_up(&self, store: &StoreAccess) {
        loop {
            let Some((id, amounts)) = self.list().front().cloned() else { return };
            if store.settle(&id, amounts).await.is_err_and(|error| error.is_transient()) {
                return;
            }
            self.list().retain(|(owed, _)| *owed != id);
        }
    }
}

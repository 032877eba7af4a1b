//! Settlements that failed in the store. A settlement replaces reserved amounts by used amounts. Failed settlements are tried again before
//! the next request.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::runtime::records::StoreAccess;

/// Maximum number of failed [`Settlement`]s that are kept. If a further settlement fails, its reservation expires and then counts as
/// spent.
const MAX_OWED: usize = 1_000;

/// The id of a reservation, and the key of each budget with the amount that was used.
type Settlement = (String, Vec<(String, u64)>);

#[derive(Default)]
pub(super) struct OwedSettlements(Mutex<VecDeque<Settlement>>);

impl OwedSettlements {
    fn list(&self) -> MutexGuard<'_, VecDeque<Settlement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces a reservation by the amounts that were used. If the store fails, [`catch_up`](Self::catch_up) tries again.
    pub(super) async fn settle(&self, store: &StoreAccess, (id, amounts): Settlement) {
        if let Err(error) = store.settle(&id, amounts.clone()).await {
            tracing::warn!(%error, "a budget could not be settled; it is tried again before the next request");
            let mut list = self.list();
            if list.len() < MAX_OWED {
                list.push_back((id, amounts));
            }
        }
    }

    /// Tries each kept [`Settlement`] in order, until one fails with a transient error. A settlement that fails with another error is
    /// dropped. The store ignores a second settlement of the same reservation, so concurrent calls are harmless.
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

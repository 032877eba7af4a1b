//! The functions of the `Store` trait. Each takes effect in one statement or in one transaction.

use super::SqlStore;
use crate::message::UserMessage;
use crate::step_key::StepKey;
use crate::store::{
    BudgetHold, BudgetUse, InvocationEnd, InvocationQuery, InvocationRecord, SessionEntry, SessionSummary,
    Store, StoreError,
};
use crate::tool::BoxFuture;

impl Store for SqlStore {
    fn begin(&self, new: InvocationRecord) -> BoxFuture<'_, Result<Option<InvocationRecord>, StoreError>> {
        Box::pin(self.do_begin(new))
    }

    fn finish<'a>(&'a self, key: &'a StepKey, end: InvocationEnd) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.do_finish(key, end))
    }

    fn defer<'a>(&'a self, key: &'a StepKey, handle: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.do_defer(key, handle))
    }

    fn get<'a>(&'a self, key: &'a StepKey) -> BoxFuture<'a, Result<Option<InvocationRecord>, StoreError>> {
        Box::pin(self.do_get(key))
    }

    fn list(&self, query: InvocationQuery) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        Box::pin(self.do_list(query))
    }

    fn pending_before(
        &self,
        at: i64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<InvocationRecord>, StoreError>> {
        Box::pin(self.do_pending(at, limit))
    }

    fn delete_finished_before(&self, at: i64) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.do_delete_finished(at))
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.do_append(session, expected, entries))
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(u64, SessionEntry)>, StoreError>> {
        Box::pin(self.do_load(session, after, limit))
    }

    fn list_sessions<'a>(
        &'a self,
        containing: &'a str,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(self.do_list_sessions(containing, after, limit))
    }

    fn push_steering<'a>(
        &'a self,
        session: &'a str,
        message: UserMessage,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.do_push(session, message))
    }

    fn take_steering<'a>(
        &'a self,
        session: &'a str,
        key: &'a StepKey,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<UserMessage>, StoreError>> {
        Box::pin(self.do_take(session, key, limit))
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.do_delete(session))
    }

    fn reserve<'a>(
        &'a self,
        id: &'a str,
        holds: Vec<BudgetHold>,
        now: i64,
        until: i64,
    ) -> BoxFuture<'a, Result<Option<BudgetUse>, StoreError>> {
        Box::pin(self.do_reserve(id, holds, now, until))
    }

    fn settle<'a>(
        &'a self,
        id: &'a str,
        amounts: Vec<(String, u64)>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.do_settle(id, amounts))
    }

    fn budget<'a>(&'a self, budget: &'a str) -> BoxFuture<'a, Result<BudgetUse, StoreError>> {
        Box::pin(self.do_budget(budget))
    }
}

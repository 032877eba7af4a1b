//! The calls that clients of the older protocol versions can cancel over HTTP, by a notification in a separate request.
//!
//! Clients choose the ids of their requests, so an id identifies a call only together with the session. A session is only a name, which
//! the server creates at `initialize` and does not store.

use super::caller::Caller;
use crate::tool::cancel::CancelToken;
use http::HeaderMap;
use rmcp::model::RequestId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const SESSION: &str = "mcp-session-id";

/// The name of a session: a random UUID, which cannot be guessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionId(Arc<str>);

impl SessionId {
    pub(super) fn random() -> Self {
        Self(rmcp::transport::common::server_side_http::session_id())
    }

    /// Returns the session of a request. Returns `None` if the header is missing or repeated, or is not a UUID. Any UUID is accepted,
    /// because another process behind the same address may have created the session.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(SESSION).iter();
        let id = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
        let is_uuid = id.len() == 36
            && id.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        is_uuid.then(|| Self(id.into()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct RunningCallKey {
    /// The authenticated caller, if there is one, so that no other caller can cancel calls in the session.
    caller: Option<Arc<str>>,
    session: SessionId,
    request: RequestId,
}

/// The calls in sessions, including calls that wait for a permit of a quota.
#[derive(Default)]
pub(super) struct RunningCalls {
    calls: Mutex<HashMap<RunningCallKey, CancelToken>>,
}

impl RunningCalls {
    /// Makes a call cancellable until the guard is dropped. If several calls of the session have one id, which the protocol forbids, only
    /// the first can be cancelled.
    pub(super) fn enter(
        self: &Arc<Self>,
        caller: &Caller,
        session: &SessionId,
        request: &RequestId,
    ) -> RunningCall {
        let (key, token) = (key(caller, session, request), CancelToken::new());
        let key = match self.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                let key = free.key().clone();
                free.insert(token.clone());
                Some(key)
            }
        };
        RunningCall { calls: self.clone(), key, token }
    }

    /// Cancels a call. Returns whether the call was running.
    pub(super) fn cancel(&self, caller: &Caller, session: &SessionId, request: &RequestId) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let token = calls.get(&key(caller, session, request)).cloned();
        drop(calls);
        token.inspect(|token| token.cancel("the client cancelled the call")).is_some()
    }
}

fn key(caller: &Caller, session: &SessionId, request: &RequestId) -> RunningCallKey {
    let caller = caller.quota_key().cloned();
    RunningCallKey { caller, session: session.clone(), request: request.clone() }
}

/// A guard of a running call. The client can cancel the call until the guard is dropped.
pub(super) struct RunningCall {
    calls: Arc<RunningCalls>,
    key: Option<RunningCallKey>,
    token: CancelToken,
}

impl RunningCall {
    pub(super) async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.calls.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_session_and_the_caller_of_a_call_cancel_it() {
        let calls = Arc::new(RunningCalls::default());
        let (ann, bob) = (Caller::new("ann"), Caller::new("bob"));
        let (one, other) = (SessionId::random(), SessionId::random());
        let (number, text) = (RequestId::Number(1), RequestId::String("1".into()));
        let call = calls.enter(&ann, &one, &number);
        for (caller, session, request) in [
            (&bob, &one, &number),
            (&ann, &other, &number),
            (&ann, &one, &text),
            (&Caller::anonymous(), &one, &number),
        ] {
            assert!(!calls.cancel(caller, session, request));
        }
        assert!(!call.token.is_cancelled());
        // A second call with the same id does not replace the first.
        drop(calls.enter(&ann, &one, &number));
        assert!(calls.cancel(&ann, &one, &number) && call.token.is_cancelled());
        drop(call);
        assert!(!calls.cancel(&ann, &one, &number));
        assert!(calls.calls.lock().unwrap().is_empty());
    }

    #[test]
    fn only_a_uuid_names_a_session() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(SESSION, value.parse().unwrap());
            }
            SessionId::of(&headers)
        };
        let id = SessionId::random();
        assert_eq!(of(&[id.as_str()]).as_ref(), Some(&id));
        assert_ne!(id, SessionId::random());
        for no_session in
            [&[][..], &["1"], &[id.as_str(), id.as_str()], &[&"x".repeat(36)], &[&"0".repeat(36)]]
        {
            assert_eq!(of(no_session), None, "{no_session:?}");
        }
    }
}

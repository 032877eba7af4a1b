//! The state that all requests of a studio share.

use std::sync::Arc;

use subtle::ConstantTimeEq as _;

use super::conversations::Conversations;
use super::observed::{ObservedModel, RequestLog};
use crate::runtime::Assistant;
use crate::serve::{HostPolicy, Lifecycle};
use crate::tool::secrets::SecretArguments;

pub(super) struct StudioShared {
    /// A fork of the application's assistant, whose requests are logged.
    pub(super) template: Assistant,
    pub(super) secrets: SecretArguments,
    pub(super) requests: Arc<RequestLog>,
    pub(super) conversations: Conversations,
    pub(super) hosts: HostPolicy,
    pub(super) token: String,
    pub(super) lifecycle: Lifecycle,
}

impl StudioShared {
    pub(super) fn new(assistant: &Assistant, hosts: HostPolicy, token: String) -> Self {
        let requests = Arc::new(RequestLog::default());
        let log = requests.clone();
        let template = assistant.fork_with_model(|model| Arc::new(ObservedModel { model, log }));
        let secrets = template.secret_arguments();
        let (conversations, lifecycle) = (Conversations::default(), Lifecycle::new());
        Self { template, secrets, requests, conversations, hosts, token, lifecycle }
    }

    /// Compares in constant time, so that a token cannot be found byte by byte.
    pub(super) fn has_token(&self, given: &str) -> bool {
        given.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    pub(super) fn cancel_runs(&self, reason: &str) {
        self.conversations.cancel_runs(reason);
    }
}

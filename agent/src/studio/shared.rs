//! The state that all requests of a studio share.

use std::sync::Arc;

use subtle::ConstantTimeEq as _;

use super::conversations::Conversations;
use super::observed::{ObservedModel, RequestLog};
use crate::model::Model;
use crate::runtime::{Assistant, new_id};
use crate::serve::{HostPolicy, Lifecycle};
use crate::tool::secrets::SecretArguments;

pub(super) struct StudioShared {
    /// A fork of the application's assistant. Its models log each request in `requests`.
    pub(super) template: Assistant,
    pub(super) secrets: Arc<SecretArguments>,
    pub(super) requests: Arc<RequestLog>,
    pub(super) conversations: Conversations,
    pub(super) hosts: HostPolicy,
    pub(super) token: String,
    pub(super) lifecycle: Lifecycle,
    /// A random id of this process. A browser that receives another id detects that the studio was restarted.
    pub(super) instance: Arc<str>,
}

impl StudioShared {
    pub(super) fn new(assistant: &Assistant, hosts: HostPolicy, token: String) -> Self {
        let requests = Arc::new(RequestLog::default());
        let log = requests.clone();
        let observed = move |model| -> Arc<dyn Model> { Arc::new(ObservedModel { model, log: log.clone() }) };
        let template = assistant.fork_with_models(Arc::new(observed));
        let secrets = template.secret_arguments();
        let (conversations, lifecycle) = (Conversations::default(), Lifecycle::new());
        let instance = new_id("studio").into();
        Self { template, secrets, requests, conversations, hosts, token, lifecycle, instance }
    }

    /// Compares the token in constant time, so that it cannot be guessed byte by byte.
    pub(super) fn has_token(&self, given: &str) -> bool {
        given.as_bytes().ct_eq(self.token.as_bytes()).into()
    }

    pub(super) fn cancel_runs(&self, reason: &str) {
        self.conversations.cancel_runs(reason);
    }
}

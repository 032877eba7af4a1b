//! The keys with which an assistant signs suspended runs.

use std::sync::Arc;

use super::Signer;
#[cfg(feature = "approvals-signed")]
use super::sign::SigningKey;
use crate::runtime::error::BuildError;

#[derive(Default)]
pub(in crate::runtime) struct ApprovalKeys {
    #[cfg(feature = "approvals-signed")]
    current: Option<SigningKey>,
    #[cfg(feature = "approvals-signed")]
    former: Vec<SigningKey>,
    /// The length of a key that is too short, in bytes, if there is one.
    #[cfg(feature = "approvals-signed")]
    short: Option<usize>,
}

#[cfg(feature = "approvals-signed")]
impl ApprovalKeys {
    pub(in crate::runtime) fn signer(self) -> Result<Option<Arc<Signer>>, BuildError> {
        if let Some(length) = self.short {
            return Err(BuildError::ShortApprovalKey { length });
        }
        match self.current {
            Some(current) => Ok(Some(Arc::new(Signer::new(current, self.former)))),
            None if self.former.is_empty() => Ok(None),
            None => Err(BuildError::NoApprovalKey),
        }
    }

    pub(in crate::runtime) fn set(&mut self, key: &[u8]) {
        self.current = self.parse(key);
    }

    /// Adds a key that only verifies.
    pub(in crate::runtime) fn add_former(&mut self, key: &[u8]) {
        let parsed = self.parse(key);
        self.former.extend(parsed);
    }

    fn parse(&mut self, key: &[u8]) -> Option<SigningKey> {
        let parsed = SigningKey::new(key);
        if parsed.is_none() {
            self.short = Some(key.len());
        }
        parsed
    }
}

#[cfg(not(feature = "approvals-signed"))]
impl ApprovalKeys {
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature is that with the feature"
    )]
    pub(in crate::runtime) fn signer(self) -> Result<Option<Arc<Signer>>, BuildError> {
        Ok(None)
    }
}

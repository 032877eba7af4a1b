//! The most frequent event of a Chat Completions stream, as a type that is parsed without building a JSON value.

use serde::Deserialize;

use crate::provider::frequent::{Nothing, Object, Text};

/// A chunk with one delta of text, thinking or arguments. Any other chunk fails to parse as this type and is read as a `Value`. Fields
/// that begin with `_` are unused: they mean nothing for the reply, or they must be null (`Nothing`).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatChunk<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) object: Option<Text<'a>>,
    #[serde(rename = "created")]
    pub(super) _created: Option<u64>,
    #[serde(borrow)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, rename = "service_tier")]
    pub(super) _service_tier: Option<Text<'a>>,
    #[serde(borrow, rename = "system_fingerprint")]
    pub(super) _system_fingerprint: Option<Text<'a>>,
    #[serde(borrow, rename = "obfuscation")]
    pub(super) _obfuscation: Option<Text<'a>>,
    #[serde(borrow, rename = "provider")]
    pub(super) _provider: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) choices: [Object<ChatChoice<'a>>; 1],
    #[serde(default, rename = "usage")]
    pub(super) _usage: Nothing,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatChoice<'a> {
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: Object<ChatDelta<'a>>,
    #[serde(default, rename = "logprobs")]
    pub(super) _logprobs: Nothing,
    #[serde(default, rename = "finish_reason")]
    pub(super) _finish_reason: Nothing,
    #[serde(default, rename = "native_finish_reason")]
    pub(super) _native_finish_reason: Nothing,
    #[serde(default, rename = "stop_reason")]
    pub(super) _stop_reason: Nothing,
    #[serde(default, rename = "matched_stop")]
    pub(super) _matched_stop: Nothing,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatDelta<'a> {
    #[serde(borrow, rename = "role")]
    pub(super) _role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(default, rename = "refusal")]
    pub(super) _refusal: Nothing,
    #[serde(borrow)]
    pub(super) tool_calls: Option<[Object<CallPiece<'a>>; 1]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallPiece<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) function: Object<PieceOfArguments<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PieceOfArguments<'a> {
    #[serde(borrow)]
    pub(super) arguments: Text<'a>,
}

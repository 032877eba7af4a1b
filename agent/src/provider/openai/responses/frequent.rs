//! The most frequent events of a Responses stream, as a type that is parsed without building a JSON value.

use serde::Deserialize;

use crate::provider::frequent::{Nothing, Text};

/// A delta of text, reasoning or arguments. Any other event fails to parse as this type and is read as a `Value`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ItemDelta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(rename = "sequence_number")]
    pub(super) _sequence_number: Option<u64>,
    #[serde(borrow, rename = "item_id")]
    pub(super) _item_id: Option<Text<'a>>,
    pub(super) output_index: u64,
    pub(super) content_index: Option<u64>,
    pub(super) summary_index: Option<u64>,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    #[serde(rename = "logprobs")]
    pub(super) _logprobs: Option<[Nothing; 0]>,
    #[serde(borrow, rename = "obfuscation")]
    pub(super) _obfuscation: Option<Text<'a>>,
}

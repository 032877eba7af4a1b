//! The frequent events of the Responses API.

use serde::Deserialize;

use crate::provider::frequent::{Nothing, Text};

/// A delta of an item's part: the most frequent event of a stream.
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

//! Corrects objects of tagged enums. The model may have sent the variant's name as a key, under another key, or as a text in place of the
//! object.

use super::Correction;
use crate::args::plan::{NodeId, NodeKind};
use crate::args::suggest::did_you_mean;
use serde_json::{Map, Value};

impl Correction<'_> {
    /// Moves a variant's tag to the key `tag`, for example from a misspelled key. Returns `None` if nothing changes.
    pub(super) fn with_tag(
        &self,
        tag: &str,
        variants: &[(String, NodeId)],
        mut value: Value,
    ) -> Option<Value> {
        let sent = value.clone();
        if let Value::String(text) = &value {
            if variants.iter().any(|(name, _)| name == text) {
                value = Value::Object(Map::from_iter([(tag.to_owned(), value.take())]));
            } else if let Ok(inner @ Value::Object(_)) = serde_json::from_str(text) {
                value = inner;
            }
        }
        if let Value::Object(map) = &mut value
            && !map.contains_key(tag)
        {
            self.variant_as_key(tag, variants, map);
        }
        if let Value::Object(map) = &mut value
            && !map.contains_key(tag)
        {
            let near =
                |key: &&String| !self.graph.has_key(variants, key) && !did_you_mean(key, [tag]).is_empty();
            let other = || {
                self.graph.other_tag(variants, map.iter().map(|(key, value)| (key.as_str(), value.as_str())))
            };
            let misspelled = map.keys().find(near).map(String::as_str).or_else(other);
            if let Some(misspelled) = misspelled.map(str::to_owned) {
                let renamed =
                    |(key, value)| if key == misspelled { (tag.to_owned(), value) } else { (key, value) };
                *map = std::mem::take(map).into_iter().map(renamed).collect();
            }
        }
        (value != sent).then_some(value)
    }

    /// Moves the name of a variant from the only key to the tag: `{"add": {…}}` becomes `{"kind": "add", …}`, and `{"add": 5}` becomes
    /// `{"kind": "add", "count": 5}` if `count` is the only required property besides the tag.
    fn variant_as_key(&self, tag: &str, variants: &[(String, NodeId)], map: &mut Map<String, Value>) {
        let mut entries = map.iter();
        let (Some((key, inner)), None) = (entries.next(), entries.next()) else { return };
        let Some((_, variant)) = variants.iter().find(|(name, _)| name == key) else { return };
        if self.graph.has_key(variants, key) {
            return;
        }
        let named = std::iter::once((tag.to_owned(), Value::from(key.as_str())));
        match inner {
            Value::Object(inner) if !inner.contains_key(tag) => {
                *map = named.chain(inner.iter().map(|(key, value)| (key.clone(), value.clone()))).collect();
            }
            Value::Object(_) => {}
            inner => {
                let NodeKind::Object(object) = self.graph.kind(self.graph.unchecked(*variant)) else {
                    return;
                };
                let mut required = object.props.iter().filter(|prop| prop.required && prop.name != tag);
                if let (Some(only), None) = (required.next(), required.next()) {
                    *map = named.chain([(only.name.clone(), inner.clone())]).collect();
                }
            }
        }
    }
}

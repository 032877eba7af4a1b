//! Finds out what a value of the wrong shape probably means, from the compiled schema alone.

use super::Graph;
use super::node::{Child, NodeId, NodeKind, ObjectSpec};

impl Graph {
    pub(crate) fn has_key(&self, variants: &[(String, NodeId)], key: &str) -> bool {
        variants.iter().any(|(_, variant)| match self.kind(self.unchecked(*variant)) {
            NodeKind::Object(object) => object.child(key, 0).is_some(),
            _ => true,
        })
    }

    /// Returns the key that is probably a misspelled tag: its value names a variant, and no variant accepts the key. Returns `None` unless
    /// there is exactly one such key.
    pub(crate) fn other_tag<'k>(
        &self,
        variants: &[(String, NodeId)],
        entries: impl Iterator<Item = (&'k str, Option<&'k str>)>,
    ) -> Option<&'k str> {
        let names = |value: &str| variants.iter().any(|(name, _)| name == value);
        let mut found = entries
            .filter(|(key, value)| value.is_some_and(names) && !self.has_key(variants, key))
            .map(|(key, _)| key);
        let first = found.next();
        first.filter(|_| found.next().is_none())
    }

    /// Guesses where an unknown key of an object belongs: the property (`None` for the object itself), and the key there. `args.path` and
    /// `args/path` mean the field `path` of the property `args`. If there is no property `args`, they mean the property `path`. Any other
    /// key must be a field of exactly one property.
    pub(crate) fn home<'g>(
        &'g self,
        object: &'g ObjectSpec,
        key: &'g str,
    ) -> Option<(Option<&'g str>, &'g str)> {
        if let Some((around, last)) = key.rsplit_once(['.', '/']) {
            if let Some(prop) = object.props.iter().find(|prop| prop.name == around) {
                return self.has_field(prop.node, last).then_some((Some(prop.name.as_str()), last));
            }
            return object.props.iter().any(|prop| prop.name == last).then_some((None, last));
        }
        let mut homes = object.props.iter().filter(|prop| self.has_field(prop.node, key));
        let first = homes.next().filter(|_| homes.next().is_none())?;
        Some((Some(first.name.as_str()), key))
    }

    fn has_field(&self, id: NodeId, key: &str) -> bool {
        match self.kind(self.non_null(id)) {
            NodeKind::Object(object) => object.props.iter().any(|prop| prop.name == key),
            NodeKind::Tagged { tag, variants, .. } => {
                key == tag || variants.iter().any(|(_, variant)| self.has_field(*variant, key))
            }
            _ => false,
        }
    }

    /// Returns whether `{key: …}` may be an unneeded wrapper around a value that the schema node accepts. The node itself must not accept
    /// the key.
    pub(crate) fn takes_alone(&self, id: NodeId, key: &str) -> bool {
        match self.kind(self.non_null(id)) {
            NodeKind::Any | NodeKind::Never | NodeKind::Null | NodeKind::External(_) => false,
            NodeKind::Array(array) => array.is_list(),
            NodeKind::Object(object) => object.child(key, 0).is_none(),
            NodeKind::Tagged { tag, variants, .. } => {
                tag != key && !self.has_key(variants, key) && variants.iter().all(|(name, _)| name != key)
            }
            kind => {
                let is_null = |id| matches!(self.kind(self.unchecked(id)), NodeKind::Null);
                kind.alternatives().all(|id| is_null(id) || self.takes_alone(id, key))
            }
        }
    }

    /// Returns whether a list such as `[5]` may be read as `5`, because the node accepts no list.
    pub(crate) fn takes_no_list(&self, id: NodeId) -> bool {
        match self.kind(id) {
            NodeKind::Any | NodeKind::Never | NodeKind::Null | NodeKind::Const(_) | NodeKind::Array(_) => {
                false
            }
            kind => kind.alternatives().all(|id| self.takes_no_list(id)),
        }
    }

    /// Returns the key if the schema node also accepts the key as a value: as a member of an `enum`, or as a unit variant.
    pub(crate) fn word<'k>(&self, id: NodeId, key: &'k str) -> Option<&'k str> {
        let is_word = match self.kind(self.unchecked(id)) {
            NodeKind::Enum(words) => words.names().any(|word| word == key),
            NodeKind::External(external) => external.units.names().any(|unit| unit == key),
            _ => false,
        };
        is_word.then_some(key)
    }

    /// Returns whether a key is a member of an `enum` or the name of a variant, as in `{"Newest": {}}`. For a list, the items decide.
    pub(crate) fn names_word(&self, id: NodeId, key: &str) -> bool {
        match self.kind(self.unchecked(id)) {
            NodeKind::Array(array) => array.items.is_some_and(|item| self.is_word(item, key)),
            _ => self.is_word(id, key),
        }
    }

    fn is_word(&self, id: NodeId, key: &str) -> bool {
        match self.kind(id) {
            NodeKind::Enum(words) => words.names().any(|word| word == key),
            NodeKind::External(external) => external.names().any(|name| name == key),
            NodeKind::Tagged { variants, .. } => {
                variants.iter().any(|(name, _)| name == key) && !self.has_key(variants, key)
            }
            kind => kind.alternatives().any(|id| self.is_word(id, key)),
        }
    }

    /// Returns the schema node for the value of a key. Returns `None` if the key is not accepted, or if `id` has several alternatives.
    pub(crate) fn below(&self, id: NodeId, key: &str) -> Option<NodeId> {
        match self.kind(self.non_null(id)) {
            NodeKind::Object(object) => object.child(key, 0).map(Child::node),
            NodeKind::External(external) => self.below(external.object, key),
            _ => None,
        }
    }

    pub(crate) fn item(&self, id: NodeId) -> Option<NodeId> {
        match self.kind(self.non_null(id)) {
            NodeKind::Array(array) => array.items,
            _ => None,
        }
    }
}

//! The shared rules about the keys of a JSON object: the property of a key, equal keys, the meaning of null, and missing keys.

use super::plan::{Child, Graph, NodeId, ObjectSpec, Prop, UnlistedKey};
use super::policy::Rules;
use crate::name_hash::NameHash;
use std::{borrow::Cow, collections::HashMap};

#[derive(Clone, Copy)]
pub(super) struct ObjectRules<'g> {
    graph: &'g Graph,
    pub(super) object: &'g ObjectSpec,
    is_root: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyRole {
    Property(usize),
    /// An entry of a map, or an unknown key that the option [`UnknownKeys::Keep`](crate::args::UnknownKeys::Keep) keeps.
    Entry(NodeId),
    Dropped,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NullMeaning {
    Value,
    Absent,
    /// An error: null would mean an absent key, but the coercion policy does not allow this.
    Refused,
}

impl<'g> ObjectRules<'g> {
    #[inline]
    pub(super) fn new(graph: &'g Graph, object: &'g ObjectSpec, is_root: bool) -> ObjectRules<'g> {
        ObjectRules { graph, object, is_root }
    }

    /// Returns the role of a key. `hint` is the index of the property that probably comes next. If the key is a property, `hint` is set to
    /// the index after that property.
    #[inline]
    pub(super) fn role(&self, key: &str, hint: &mut usize) -> KeyRole {
        match self.object.child(key, *hint) {
            Some(Child::Prop(index, _)) => {
                *hint = index + 1;
                KeyRole::Property(index)
            }
            Some(Child::Entry(node)) => KeyRole::Entry(node),
            None => match self.graph.unlisted(self.object, self.is_root) {
                UnlistedKey::Kept => KeyRole::Entry(self.graph.any),
                UnlistedKey::Dropped => KeyRole::Dropped,
                UnlistedKey::Refused => KeyRole::Unknown,
            },
        }
    }

    /// Returns the canonical spelling of a key that is not a property: `1` for `01` in a map with integer keys.
    pub(super) fn identity<'t>(&self, key: Cow<'t, str>) -> Cow<'t, str> {
        match self.graph.identity(self.object, &key) {
            same if same.len() == key.len() => key,
            other => Cow::Owned(other.into_owned()),
        }
    }

    /// Returns whether a key may occur twice. This is allowed only if the schema accepts any value in place of the object.
    pub(super) fn may_repeat(&self) -> bool {
        std::ptr::eq(self.object, &raw const self.graph.any_object)
    }
}

#[inline]
pub(super) fn null_meaning(graph: &Graph, prop: &Prop) -> NullMeaning {
    match prop.null_absent {
        false => NullMeaning::Value,
        true if graph.node(prop.node).rules.has(Rules::NULL_ABSENT) => NullMeaning::Absent,
        true => NullMeaning::Refused,
    }
}

/// The keys of an object that were read so far. `U` is additional data about keys that are not properties, for reporting issues.
pub(super) struct SeenKeys<'t, U = ()> {
    /// A bit set of the first 64 properties.
    first: u64,
    /// Bit sets of the properties after the first 64.
    more: Vec<u64>,
    others: EntryKeys<'t, U>,
    /// Number of keys that do not count toward the size of the object: dropped keys, and keys that a null makes absent.
    absent: u64,
}

enum EntryKeys<'t, U> {
    Few(Vec<(Cow<'t, str>, U)>),
    Many(HashMap<Cow<'t, str>, U, NameHash>),
}

/// Maximum number of keys that are compared one by one; more keys are hashed.
const FEW_KEYS: usize = 8;

impl<U> Default for SeenKeys<'_, U> {
    #[inline]
    fn default() -> Self {
        SeenKeys { first: 0, more: Vec::new(), others: EntryKeys::Few(Vec::new()), absent: 0 }
    }
}

impl<'t, U> EntryKeys<'t, U> {
    fn get(&self, key: &str) -> Option<&U> {
        match self {
            EntryKeys::Few(few) => few.iter().find(|(own, _)| own == key).map(|(_, usage)| usage),
            EntryKeys::Many(many) => many.get(key),
        }
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut U> {
        match self {
            EntryKeys::Few(few) => few.iter_mut().find(|(own, _)| own == key).map(|(_, usage)| usage),
            EntryKeys::Many(many) => many.get_mut(key),
        }
    }

    /// Returns `false` if the key was added before. For such a key, `Few` keeps the first usage, and `Many` the last.
    fn add(&mut self, key: Cow<'t, str>, usage: U) -> bool {
        if let EntryKeys::Few(few) = self
            && few.len() == FEW_KEYS
        {
            *self = EntryKeys::Many(std::mem::take(few).into_iter().collect());
        }
        match self {
            EntryKeys::Few(few) if few.iter().any(|(own, _)| *own == key) => false,
            EntryKeys::Few(few) => {
                few.push((key, usage));
                true
            }
            EntryKeys::Many(many) => {
                // Quadruples the capacity, because all keys are hashed anew each time the map grows.
                if many.len() == many.capacity() {
                    many.reserve(3 * many.len());
                }
                many.insert(key, usage).is_none()
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            EntryKeys::Few(few) => few.len(),
            EntryKeys::Many(many) => many.len(),
        }
    }
}

impl<'t, U> SeenKeys<'t, U> {
    /// Creates the keys from a bit set: bit `i` of `first` stands for the property with index `i`.
    pub(super) fn of_first(first: u64) -> Self {
        SeenKeys { first, ..SeenKeys::default() }
    }

    /// Returns `false` if the property was added before.
    #[inline]
    pub(super) fn add(&mut self, index: usize) -> bool {
        if index >= 64 {
            return self.add_more(index);
        }
        let bit = 1 << index;
        let new = self.first & bit == 0;
        self.first |= bit;
        new
    }

    #[cold]
    fn add_more(&mut self, index: usize) -> bool {
        let (words, at) = (&mut self.more, index / 64 - 1);
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        let (word, bit) = (&mut words[at], 1 << (index % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds a key that is not a property, by its canonical spelling. Returns `false` if the key was added before.
    pub(super) fn add_other(&mut self, identity: Cow<'t, str>, usage: U) -> bool {
        self.others.add(identity, usage)
    }

    /// Excludes the last key from the size of the object, because the key is dropped, or because a null makes it absent.
    pub(super) fn add_absent(&mut self) {
        self.absent += 1;
    }

    fn has(&self, index: usize) -> bool {
        let word = match index / 64 {
            0 => Some(&self.first),
            at => self.more.get(at - 1),
        };
        word.is_some_and(|word| word & 1 << (index % 64) != 0)
    }

    fn count(&self) -> u64 {
        let more: u64 = self.more.iter().map(|word| u64::from(word.count_ones())).sum();
        u64::from(self.first.count_ones()) + more + self.others.len() as u64 - self.absent
    }

    #[inline]
    pub(super) fn are_complete(&self, object: &ObjectSpec) -> bool {
        object.is_complete_with(self.first) || self.are_all(object)
    }

    fn are_all(&self, object: &ObjectSpec) -> bool {
        self.missing(object).next().is_none() && object.takes_length(self.count())
    }

    pub(super) fn missing<'o>(&self, object: &'o ObjectSpec) -> impl Iterator<Item = &'o Prop> {
        let props = object.props.iter().enumerate();
        props.filter(|(index, prop)| prop.required && !self.has(*index)).map(|(_, prop)| prop)
    }
}

/// The keys of an object, each with its first two uses. `G` describes one use.
pub(super) struct KeyUses<'t, G> {
    seen: SeenKeys<'t, KeyUse<G>>,
    props: Vec<Option<KeyUse<G>>>,
    hint: usize,
}

pub(super) struct KeyUse<G> {
    pub(super) first: G,
    pub(super) again: Option<G>,
}

pub(super) enum KeyTurn<'k, G> {
    First,
    /// The second use; contains the data of the first.
    Second(&'k G),
    Later,
}

impl<'t, G> KeyUses<'t, G> {
    pub(super) fn new(object: &ObjectSpec) -> KeyUses<'t, G> {
        let props = std::iter::repeat_with(|| None).take(object.props.len()).collect();
        KeyUses { seen: SeenKeys::default(), props, hint: 0 }
    }

    pub(super) fn add(
        &mut self,
        rules: &ObjectRules<'_>,
        key: Cow<'t, str>,
        given: G,
    ) -> (KeyRole, KeyTurn<'_, G>)
    where
        G: Clone,
    {
        let role = rules.role(&key, &mut self.hint);
        let usage = KeyUse { first: given.clone(), again: None };
        let before = if let KeyRole::Property(index) = role {
            match self.props.get_mut(index) {
                Some(slot) if self.seen.add(index) => {
                    *slot = Some(usage);
                    None
                }
                slot => slot.and_then(Option::as_mut),
            }
        } else {
            let identity = rules.identity(key);
            if self.seen.others.get(&identity).is_none() {
                self.seen.add_other(identity, usage);
                None
            } else {
                self.seen.others.get_mut(&identity)
            }
        };
        let turn = match before {
            None => KeyTurn::First,
            Some(KeyUse { again: Some(_), .. }) => KeyTurn::Later,
            Some(before) => {
                before.again = Some(given);
                KeyTurn::Second(&before.first)
            }
        };
        (role, turn)
    }

    pub(super) fn has(&self, index: usize) -> bool {
        self.seen.has(index)
    }

    pub(super) fn missing<'o>(&self, object: &'o ObjectSpec) -> impl Iterator<Item = &'o Prop> {
        self.seen.missing(object)
    }

    pub(super) fn property(&self, index: usize) -> Option<&KeyUse<G>> {
        self.props.get(index)?.as_ref()
    }

    pub(super) fn other(&self, rules: &ObjectRules<'_>, key: &'t str) -> Option<&KeyUse<G>> {
        self.seen.others.get(&rules.identity(Cow::Borrowed(key)))
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{ArgumentStream, Issue, Plan, PlanOptions};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Booking {
        #[serde(alias = "place")]
        #[schemars(extend("x-aliases" = ["place"]))]
        hotel: String,
    }

    #[test]
    fn keys_given_several_times_are_one_issue_everywhere() {
        let plan = Plan::for_type::<Booking>("book", PlanOptions::default()).unwrap();
        for (text, path) in [
            (r#"{"hotel":"a","place":"b","hotel":"c"}"#, "/place"),
            (r#"{"place":"a","hotel":"b","place":"c","hotel":"d"}"#, "/hotel"),
        ] {
            let refused = plan.parse::<Booking>(text).map(|parsed| parsed.value.hotel).unwrap_err();
            let mut stream = ArgumentStream::new(&plan);
            stream.push(text, &mut |_| {}).unwrap();
            let told = |issues: &[Issue]| -> Vec<(String, String)> {
                issues.iter().map(|issue| (issue.path.clone(), issue.problem.clone())).collect()
            };
            assert_eq!(told(refused.issues()), told(stream.issues()), "{text}");
            assert_eq!((refused.count(), refused.issues()[0].path.as_str()), (1, path), "{text}");
        }
    }
}

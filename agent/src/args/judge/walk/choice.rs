//! Compares a value with the alternatives of tagged, externally tagged and untagged enums.

use super::{Walk, WalkSegment, WalkSummary};
use crate::args::document::{Doc, Shape};
use crate::args::issue::IssueCode;
use crate::args::judge::outcome::Choice;
use crate::args::plan::{ExternalSpec, NodeId, VariantNames};
use crate::args::policy::{Rules, UnknownKeys};
use crate::args::suggest::did_you_mean;
use crate::args::text::{MAX_VALUE, cut};
use serde_json::Value;

impl<'w> Walk<'w, '_> {
    pub(super) fn tagged(
        &mut self,
        rules: Rules,
        tag: &'w str,
        variants: &'w [(String, NodeId)],
        known: &'w VariantNames,
        doc: &'w Doc<'_>,
    ) {
        let names = variants.iter().map(|v| v.0.as_str());
        let Some(sent) = doc.entry(tag) else {
            self.misspelled_tag(tag, variants, doc);
            return self.below(WalkSegment::Key(tag), |walk| {
                walk.add(IssueCode::Missing, |_, issue| {
                    issue.problem = "required, but missing".into();
                    issue.allowed = names.map(Value::from).collect();
                });
            });
        };
        let text = match &sent.shape {
            Shape::Text(text) => Some(text.as_ref()),
            _ => None,
        };
        match text.and_then(|text| known.pick(variants, text, rules)) {
            Some((name, variant)) => {
                if name.is_coerced {
                    self.note_coercion_beyond(true);
                }
                self.check(variant, doc);
            }
            None => self.below(WalkSegment::Key(tag), |walk| walk.not_a_word(None, names, text, sent)),
        }
    }

    /// Reports the key that was probably sent in place of the tag. The other keys are not checked, because the variant is unknown. Does
    /// nothing if unknown keys are accepted.
    fn misspelled_tag(&mut self, tag: &'w str, variants: &[(String, NodeId)], doc: &'w Doc<'_>) {
        let Shape::Object(entries) = &doc.shape else { return };
        let unknown = self.graph.options.unknown_keys();
        if unknown == UnknownKeys::Keep || unknown == UnknownKeys::Strip && self.shared.is_root(doc.raw) {
            return;
        }
        if let [(key, _)] = entries.as_slice()
            && variants.iter().any(|(name, _)| name == key)
            && !self.graph.has_key(variants, key)
        {
            return self.below(WalkSegment::Key(key), |walk| {
                walk.add(IssueCode::Unknown, |_, issue| {
                    let shown = cut(key, MAX_VALUE);
                    issue.problem =
                        format!("unknown parameter; `{shown}` is a value of `{}`", cut(tag, MAX_VALUE));
                });
            });
        }
        if let [(key, inner)] = entries.as_slice()
            && inner.entry(tag).is_some()
            && !self.graph.has_key(variants, key)
        {
            return self.below(WalkSegment::Key(key), |walk| {
                walk.add(IssueCode::Unknown, |_, issue| {
                    issue.problem =
                        "unknown parameter: send what is inside, without anything around it".into();
                    issue.is_mendable = true;
                });
            });
        }
        let nearest = entries.iter().map(|(key, _)| key.as_ref()).find(|key| {
            !self.graph.has_key(variants, key)
                && self.shared.may_suggest(1, key)
                && !did_you_mean(key, [tag]).is_empty()
        });
        if let Some(key) = nearest {
            return self.below(WalkSegment::Key(key), |walk| {
                walk.add(IssueCode::Unknown, |_, issue| {
                    issue.problem = "unknown parameter".into();
                    issue.suggestions = vec![tag.to_owned()];
                });
            });
        }
        if let Some(key) =
            self.graph.other_tag(variants, entries.iter().map(|(key, doc)| (key.as_ref(), doc.text())))
        {
            self.below(WalkSegment::Key(key), |walk| {
                walk.add(IssueCode::Unknown, |_, issue| {
                    issue.problem =
                        format!("unknown parameter; its value belongs under `{}`", cut(tag, MAX_VALUE));
                    issue.is_mendable = true;
                });
            });
        }
    }

    pub(super) fn external(&mut self, id: NodeId, external: &'w ExternalSpec, doc: &'w Doc<'_>) {
        match &doc.shape {
            Shape::Text(text) => {
                if let Some(unit) = external.units.pick(text, self.graph.node(id).rules) {
                    if unit.is_coerced {
                        self.note_coercion_beyond(true);
                    }
                } else {
                    self.not_a_word(Some(id), external.names(), Some(text), doc);
                }
            }
            Shape::Object(entries) => {
                let Some((key, _)) = entries.first() else { return self.wrong(id, doc) };
                if entries.iter().any(|(other, _)| other != key) {
                    return self.fault(IssueCode::Type, "send exactly one of these", id, doc);
                }
                if external.variant(key).is_some() {
                    return self.check(external.object, doc);
                }
                let as_key = self.word_as_key(id, doc);
                let known = self.kept();
                self.not_a_word(Some(id), external.names(), Some(key), doc);
                self.advise(known, as_key);
            }
            _ => self.wrong(id, doc),
        }
    }

    pub(super) fn union(&mut self, id: NodeId, branches: &[NodeId], exclusive: bool, doc: &'w Doc<'_>) {
        let choice = self.shared.choose(self.graph.node(id), branches, exclusive, doc);
        let WalkSummary { count: counted, unrepresentable, .. } = self.found;
        match choice {
            Choice::Fits { coerced, non_schema_coercion, beyond_strict, .. } => {
                self.found.coerced |= coerced;
                self.found.non_schema_coercion |= non_schema_coercion;
                self.found.beyond_strict |= beyond_strict;
            }
            Choice::Closest { root_type_mismatch: true, .. } | Choice::Nothing => self.wrong(id, doc),
            Choice::Closest { .. } if matches!(&doc.shape, Shape::Object(entries) if self.stands_alone(id, entries).is_some()) =>
            {
                self.wrong(id, doc);
            }
            Choice::Closest { branch, .. } if self.out.is_some() => self.check(branch, doc),
            Choice::Closest { count, .. } => self.found.count += count,
            Choice::Doubled => self.repeated(doc),
            Choice::Ambiguous => self.fault(IssueCode::Value, "fits more than one alternative", id, doc),
        }
        if let Choice::Closest { but_for_width: true, .. } = choice {
            self.found.unrepresentable = unrepresentable + (self.found.count - counted);
        }
    }
}

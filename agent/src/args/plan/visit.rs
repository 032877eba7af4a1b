//! The schema nodes below a schema node: its children, its alternatives, and the alternative that describes a given value.

use super::frequent::FrequentValues;
use super::node::{AdditionalProperties, NodeCheck, NodeId, NodeKind, PlanNode};
use std::borrow::Cow;

/// Defines a method that visits the nodes directly below a node or a check. With `mut`, the method can replace them.
macro_rules! child_visitor {
    ($name:ident, $iter:ident $(, $mutable:tt)?) => {
        impl NodeKind {
            pub(super) fn $name(&$($mutable)? self, mut visit: impl FnMut(&$($mutable)? NodeId)) {
                match self {
                    NodeKind::Array(array) => array.prefix.$iter().chain(array.items.$iter()).for_each(visit),
                    NodeKind::Object(object) => {
                        object.props.$iter().for_each(|prop| visit(&$($mutable)? prop.node));
                        object.patterns.$iter().for_each(|(_, node)| visit(node));
                        if let AdditionalProperties::Schema(node) = &$($mutable)? object.rest {
                            visit(node);
                        }
                    }
                    NodeKind::Nullable(node) => visit(node),
                    NodeKind::Tagged { variants, names, .. } => {
                        variants.$iter().map(|(_, node)| node).chain(names.other.$iter()).for_each(visit);
                    }
                    NodeKind::External(external) => {
                        external.variants.$iter().for_each(|variant| visit(&$($mutable)? variant.node));
                        visit(&$($mutable)? external.object);
                    }
                    NodeKind::Union { branches, .. } => branches.$iter().for_each(visit),
                    NodeKind::Checked(checked) => {
                        visit(&$($mutable)? checked.base);
                        checked.checks.$iter().for_each(|check| check.$name(&mut visit));
                    }
                    _ => {}
                }
            }
        }

        impl NodeCheck {
            fn $name(&$($mutable)? self, visit: &mut impl FnMut(&$($mutable)? NodeId)) {
                match self {
                    NodeCheck::Also(node)
                    | NodeCheck::Not { node, .. }
                    | NodeCheck::Contains { node, .. }
                    | NodeCheck::Names(node)
                    | NodeCheck::Depends(_, node) => visit(node),
                    NodeCheck::If { condition, then, otherwise, .. } => {
                        visit(condition);
                        then.$iter().chain(otherwise).for_each(visit);
                    }
                    NodeCheck::Requires(..) => {}
                }
            }
        }
    };
}

child_visitor!(each_child, iter);
child_visitor!(each_child_mut, iter_mut, mut);

impl NodeKind {
    pub(crate) fn frequent(&self) -> FrequentValues {
        match self {
            NodeKind::Str(spec) if spec.is_plain => FrequentValues::Texts,
            NodeKind::Int(spec) => FrequentValues::Integers(spec.range),
            NodeKind::Num(spec) if spec.is_open => FrequentValues::Numbers,
            NodeKind::Bool => FrequentValues::Bools,
            _ => FrequentValues::Nothing,
        }
    }

    pub(crate) fn children(&self) -> Vec<NodeId> {
        let mut out = Vec::new();
        self.each_child(|node| out.push(*node));
        out
    }

    #[inline]
    pub(crate) fn alternatives(&self) -> impl Iterator<Item = NodeId> {
        let (branches, variants, one): (&[NodeId], &[(String, NodeId)], _) = match self {
            NodeKind::Nullable(inner) => (&[], &[], Some(*inner)),
            NodeKind::Checked(checked) => (&[], &[], Some(checked.base)),
            NodeKind::External(external) => (&[], &[], Some(external.object)),
            NodeKind::Union { branches, .. } => (branches, &[], None),
            NodeKind::Tagged { variants, names, .. } => (&[], variants, names.other),
            _ => (&[], &[], None),
        };
        branches.iter().copied().chain(variants.iter().map(|(_, node)| *node)).chain(one)
    }

    /// Returns the child nodes that describe the same value as this node.
    pub(super) fn beside(&self) -> Vec<NodeId> {
        let mut out: Vec<NodeId> = self.alternatives().collect();
        if let NodeKind::Checked(checked) = self {
            let same = checked.checks.iter().filter(|check| check.looks_at_the_same());
            same.for_each(|check| check.each_child(&mut |node| out.push(*node)));
        }
        out
    }

    #[inline]
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(
            self,
            NodeKind::Null
                | NodeKind::Bool
                | NodeKind::Int(_)
                | NodeKind::Num(_)
                | NodeKind::Str(_)
                | NodeKind::Enum(_)
        )
    }
}

impl PlanNode {
    /// Returns the node inside this node that describes a value. For a tagged enum, this is the variant that the value's tag names.
    /// `text_of` returns the text under a key of the value. Returns `None` for a union, or if there is no such node.
    pub(crate) fn referred<'v>(&self, text_of: impl FnOnce(&str) -> Option<Cow<'v, str>>) -> Option<NodeId> {
        match &self.kind {
            NodeKind::Tagged { tag, variants, names } => {
                names.pick(variants, &text_of(tag)?, self.rules).map(|(_, variant)| variant)
            }
            NodeKind::Union { .. } => None,
            kind => kind.alternatives().next(),
        }
    }
}

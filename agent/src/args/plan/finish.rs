//! The last steps once every schema is a node: closes recursive references, and finds what cannot work.

use super::node::{AdditionalProperties, ArraySpec, NodeCheck, NodeId, NodeKind, PlanNode};
use std::collections::HashMap;

/// Maximum length of chains of references, or of alternatives within alternatives.
const MAX_CHAIN: usize = 64;

pub(super) fn takes_objects(nodes: &[PlanNode], id: NodeId, depth: usize) -> bool {
    match &nodes[id.0 as usize].kind {
        NodeKind::Object(_) | NodeKind::Tagged { .. } => true,
        NodeKind::External(external) => external.units.is_empty(),
        NodeKind::Checked(checked) if depth < MAX_CHAIN => takes_objects(nodes, checked.base, depth + 1),
        NodeKind::Const(members) => members.iter().all(serde_json::Value::is_object),
        NodeKind::Union { branches, .. } if depth < MAX_CHAIN => {
            branches.iter().all(|b| takes_objects(nodes, *b, depth + 1))
        }
        _ => false,
    }
}

pub(super) fn settle(mut id: NodeId, slots: &HashMap<NodeId, NodeId>) -> NodeId {
    // A slot leads to a node compiled later, so this ends; the bound is for a reference to itself.
    for _ in 0..MAX_CHAIN {
        match slots.get(&id) {
            Some(next) if *next != id => id = *next,
            _ => break,
        }
    }
    id
}

/// Replaces the placeholders for recursive references.
pub(super) fn redirect(kind: &mut NodeKind, settle: &impl Fn(NodeId) -> NodeId) {
    let fix = |id: &mut NodeId| *id = settle(*id);
    match kind {
        NodeKind::Array(ArraySpec { prefix, items, .. }) => prefix.iter_mut().chain(items).for_each(fix),
        NodeKind::Object(object) => {
            object.props.iter_mut().for_each(|p| fix(&mut p.node));
            object.patterns.iter_mut().for_each(|p| fix(&mut p.1));
            if let AdditionalProperties::Schema(id) = &mut object.rest {
                fix(id);
            }
        }
        NodeKind::Nullable(id) => fix(id),
        NodeKind::Tagged { variants, names, .. } => {
            variants.iter_mut().map(|v| &mut v.1).chain(&mut names.other).for_each(fix);
        }
        NodeKind::External(external) => {
            external.variants.iter_mut().for_each(|v| fix(&mut v.node));
            fix(&mut external.object);
        }
        NodeKind::Union { branches, .. } => branches.iter_mut().for_each(fix),
        NodeKind::Checked(checked) => {
            fix(&mut checked.base);
            checked.checks.iter_mut().flat_map(NodeCheck::nodes_mut).for_each(fix);
        }
        _ => {}
    }
}

/// Why alternatives within alternatives cannot be checked.
pub(super) enum Chain {
    /// One leads back to itself for the same value: checking would not end.
    Circle,
    TooLong,
}

/// Whether each node accepts null. Alternatives within alternatives must end soon.
pub(super) fn takers_of_null(nodes: &[PlanNode]) -> Result<Vec<bool>, Chain> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done { length: usize, null: bool },
    }
    let mut states = vec![VisitState::New; nodes.len()];
    for start in 0..nodes.len() {
        let mut stack = vec![(start, false)];
        while let Some((i, leave)) = stack.pop() {
            let kind = &nodes[i].kind;
            let next = kind.beside();
            if leave {
                let mut length = 0;
                let mut null = matches!(kind, NodeKind::Any | NodeKind::Null | NodeKind::Nullable(_));
                for id in next {
                    if let VisitState::Done { length: below, null: takes } = states[id.0 as usize] {
                        length = length.max(below + 1);
                        null |= takes
                            && match kind {
                                NodeKind::Union { .. } => true,
                                NodeKind::Checked(checked) => checked.base == id,
                                _ => false,
                            };
                    }
                }
                if length > MAX_CHAIN {
                    return Err(Chain::TooLong);
                }
                states[i] = VisitState::Done { length, null };
                continue;
            }
            match states[i] {
                VisitState::Open => return Err(Chain::Circle),
                VisitState::Done { .. } => continue,
                VisitState::New => {}
            }
            states[i] = VisitState::Open;
            stack.push((i, true));
            // Siblings wait on the stack unmarked, so only a node on the way to itself is a circle.
            let waiting = next.into_iter().map(|id| (id.0 as usize, false));
            stack.extend(waiting.filter(|(i, _)| !matches!(states[*i], VisitState::Done { .. })));
        }
    }
    Ok(states.into_iter().map(|state| matches!(state, VisitState::Done { null: true, .. })).collect())
}

/// In a foreign schema null is absent only where it is not a value, at any depth of the alternatives.
pub(super) fn keep_nulls(nodes: &mut [PlanNode], takes_null: &[bool]) {
    for node in nodes {
        if let NodeKind::Object(object) = &mut node.kind {
            for prop in &mut object.props {
                prop.null_absent &= !takes_null[prop.node.0 as usize];
            }
        }
    }
}

/// Whether there is a 128-bit integer in something that serde buffers: alternatives, and what is `flattened`.
pub(super) fn carries_wide(nodes: &[PlanNode], flattened: impl Iterator<Item = NodeId>) -> bool {
    let alternatives = nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Union { .. } | NodeKind::Tagged { .. }))
        .flat_map(|node| node.kind.children());
    let mut open: Vec<NodeId> = alternatives.chain(flattened).collect();
    let mut seen = vec![false; nodes.len()];
    while let Some(id) = open.pop() {
        let index = id.0 as usize;
        if !std::mem::replace(&mut seen[index], true) {
            match &nodes[index].kind {
                NodeKind::Int(spec) if spec.wide => return true,
                kind => open.extend(kind.children()),
            }
        }
    }
    false
}

/// Marks every node from which a secret parameter can be reached.
pub(super) fn mark_secrets(nodes: &mut [PlanNode]) {
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut open: Vec<usize> = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        for child in node.kind.children() {
            parents[child.0 as usize].push(i);
        }
        if matches!(&node.kind, NodeKind::Object(o) if o.props.iter().any(|p| p.secret)) {
            open.push(i);
        }
    }
    while let Some(i) = open.pop() {
        if !std::mem::replace(&mut nodes[i].holds_secret, true) {
            open.extend(&parents[i]);
        }
    }
}

//! The last steps of compiling a schema, after all nodes exist: the placeholders of recursive references are replaced, nodes get their
//! flags, and schemas that cannot be used are refused.

use super::frequent::FrequentValues;
use super::node::{NodeId, NodeKind, PlanNode};
use std::collections::HashMap;

/// Maximum number of references in a row, and of nested alternatives.
const MAX_CHAIN: usize = 64;

pub(super) fn takes_objects(nodes: &[PlanNode], id: NodeId, depth: usize) -> bool {
    match &nodes[id.0 as usize].kind {
        NodeKind::Object(_) | NodeKind::Tagged { .. } => true,
        NodeKind::External(external) => external.units.is_empty(),
        NodeKind::Const(members) => members.iter().all(serde_json::Value::is_object),
        NodeKind::Nullable(_) => false,
        kind => {
            let mut alternatives = kind.alternatives().peekable();
            depth < MAX_CHAIN
                && alternatives.peek().is_some()
                && alternatives.all(|node| takes_objects(nodes, node, depth + 1))
        }
    }
}

pub(super) fn settle(mut id: NodeId, slots: &HashMap<NodeId, NodeId>) -> NodeId {
    // The placeholder of a reference may lead to another placeholder. `MAX_CHAIN` ends a cycle.
    for _ in 0..MAX_CHAIN {
        match slots.get(&id) {
            Some(next) if *next != id => id = *next,
            _ => break,
        }
    }
    id
}

pub(super) enum Chain {
    /// An alternative leads back to itself for the same value, so checking would not end.
    Circle,
    TooLong,
}

/// Marks every schema node that accepts null. Fails if nodes that describe the same value, such as a union and its alternatives, form a
/// circle or nest too deeply.
pub(super) fn mark_nulls(nodes: &mut [PlanNode]) -> Result<(), Chain> {
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
            // Only the current node and the nodes that lead to it are `Open`, so reaching an `Open` node again means a cycle.
            let waiting = next.into_iter().map(|id| (id.0 as usize, false));
            stack.extend(waiting.filter(|(i, _)| !matches!(states[*i], VisitState::Done { .. })));
        }
    }
    for (node, state) in nodes.iter_mut().zip(states) {
        node.takes_null = matches!(state, VisitState::Done { null: true, .. });
    }
    Ok(())
}

/// Clears `null_absent` of each property whose schema, or an alternative in it, accepts null.
pub(super) fn keep_nulls(nodes: &mut [PlanNode]) {
    let takes_null: Vec<bool> = nodes.iter().map(|node| node.takes_null).collect();
    for node in nodes {
        if let NodeKind::Object(object) = &mut node.kind {
            for prop in &mut object.props {
                prop.null_absent &= !takes_null[prop.node.0 as usize];
            }
        }
    }
}

/// Returns whether a buffered value may contain a 128-bit integer. Serde buffers the values of tagged and untagged enums, and of
/// `flattened` nodes.
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

pub(super) fn mark_frequent(nodes: &mut [PlanNode]) {
    let frequent: Vec<FrequentValues> = nodes.iter().map(|node| node.kind.frequent()).collect();
    for node in nodes {
        if let NodeKind::Object(object) = &mut node.kind {
            for prop in &mut object.props {
                prop.frequent = frequent[prop.node.at()];
            }
        }
    }
}

/// Marks every schema node whose values may contain a secret parameter.
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

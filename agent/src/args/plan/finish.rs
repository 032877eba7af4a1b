//! What is left to do once every schema is a node: close recursive references, find what cannot work.

use super::node::{ArraySpec, Kind, Node, NodeId, Rest};
use std::collections::HashMap;

/// References to references, alternatives of alternatives.
const MAX_CHAIN: usize = 64;

pub(super) fn takes_objects(nodes: &[Node], id: NodeId, depth: usize) -> bool {
    match &nodes[id.0 as usize].kind {
        Kind::Object(_) | Kind::Tagged { .. } => true,
        Kind::External(external) => external.units.is_empty(),
        Kind::Union { branches, .. } if depth < MAX_CHAIN => {
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

/// Replaces the places that were kept free for recursive references.
pub(super) fn redirect(kind: &mut Kind, settle: &impl Fn(NodeId) -> NodeId) {
    let fix = |id: &mut NodeId| *id = settle(*id);
    match kind {
        Kind::Array(ArraySpec { prefix, items, .. }) => prefix.iter_mut().chain(items).for_each(fix),
        Kind::Object(object) => {
            object.props.iter_mut().for_each(|p| fix(&mut p.node));
            object.patterns.iter_mut().for_each(|p| fix(&mut p.1));
            if let Rest::Accepted(id) = &mut object.rest {
                fix(id);
            }
        }
        Kind::Nullable(id) => fix(id),
        Kind::Tagged { variants, .. } => variants.iter_mut().for_each(|v| fix(&mut v.1)),
        Kind::External(external) => {
            external.variants.iter_mut().for_each(|v| fix(&mut v.node));
            fix(&mut external.object);
        }
        Kind::Union { branches, .. } => branches.iter_mut().for_each(fix),
        _ => {}
    }
}

/// Is there an alternative of alternatives that leads back to itself for the same value? Checking would not end.
pub(super) fn turns_in_place(nodes: &[Node]) -> bool {
    // 0: not seen, 1: on the way, 2: done.
    let mut state = vec![0u8; nodes.len()];
    for start in 0..nodes.len() {
        let mut stack = vec![(start, false)];
        while let Some((i, leave)) = stack.pop() {
            if leave {
                state[i] = 2;
                continue;
            }
            match state[i] {
                1 => return true,
                2 => continue,
                _ => {}
            }
            state[i] = 1;
            stack.push((i, true));
            let next = match &nodes[i].kind {
                Kind::Nullable(_) | Kind::Union { .. } | Kind::Tagged { .. } => nodes[i].kind.children(),
                _ => Vec::new(),
            };
            // Siblings wait on the stack unmarked, so only a node on the way to itself is a cycle.
            stack.extend(next.into_iter().map(|id| (id.0 as usize, false)).filter(|(i, _)| state[*i] != 2));
        }
    }
    false
}

/// Marks every node from which a secret parameter can be reached.
pub(super) fn mark_secrets(nodes: &mut [Node]) {
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut open: Vec<usize> = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        for child in node.kind.children() {
            parents[child.0 as usize].push(i);
        }
        if matches!(&node.kind, Kind::Object(o) if o.props.iter().any(|p| p.secret)) {
            open.push(i);
        }
    }
    while let Some(i) = open.pop() {
        if !std::mem::replace(&mut nodes[i].holds_secret, true) {
            open.extend(&parents[i]);
        }
    }
}

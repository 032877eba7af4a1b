//! Finds the nodes of a `Graph` that can contain themselves.

use crate::args::{Graph, NodeId, NodeKind};

fn rendered_children(graph: &Graph, id: NodeId) -> Vec<NodeId> {
    match graph.kind(id) {
        // The schemas in `not`, `if` and the like are not rendered as schemas, so only `base` counts.
        NodeKind::Checked(checked) => vec![checked.base],
        _ => graph.children(id),
    }
}

/// The strongly connected components of a `Graph`: two nodes are in one group if each can be reached from the other.
pub(super) struct Cycles {
    group: Vec<u32>,
    /// For each group, whether the group is a cycle: several nodes, or one node that contains itself.
    closed: Vec<bool>,
}

impl Cycles {
    pub(super) fn of(graph: &Graph) -> Cycles {
        Cycles::along(graph, rendered_children)
    }

    pub(super) fn without_properties(graph: &Graph) -> Cycles {
        Cycles::along(graph, |graph, id| match graph.kind(id) {
            NodeKind::Object(object) => {
                let named: Vec<NodeId> = object.props.iter().map(|p| p.node).collect();
                graph.children(id).split_off(named.len())
            }
            _ => rendered_children(graph, id),
        })
    }

    /// Finds strongly connected components by Tarjan's algorithm, without recursion.
    fn along(graph: &Graph, children: impl Fn(&Graph, NodeId) -> Vec<NodeId>) -> Cycles {
        const NEW: u32 = u32::MAX;
        let count = graph.nodes.len();
        let mut order = vec![NEW; count];
        let mut low = vec![0; count];
        let mut group = vec![NEW; count];
        let mut closed = Vec::new();
        let (mut next, mut path) = (0, Vec::new());
        let mut visits: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        for start in graph.ids() {
            if order[start.at()] != NEW {
                continue;
            }
            visits.push((start, children(graph, start)));
            order[start.at()] = next;
            low[start.at()] = next;
            next += 1;
            path.push(start);
            while let Some((id, open)) = visits.last_mut() {
                let id = *id;
                if let Some(child) = open.pop() {
                    if order[child.at()] == NEW {
                        order[child.at()] = next;
                        low[child.at()] = next;
                        next += 1;
                        path.push(child);
                        visits.push((child, children(graph, child)));
                    } else if group[child.at()] == NEW {
                        low[id.at()] = low[id.at()].min(order[child.at()]);
                    }
                    continue;
                }
                visits.pop();
                if let Some((up, _)) = visits.last() {
                    low[up.at()] = low[up.at()].min(low[id.at()]);
                }
                if low[id.at()] == order[id.at()] {
                    let number = u32::try_from(closed.len()).unwrap_or(NEW);
                    let mut size = 0;
                    while let Some(member) = path.pop() {
                        group[member.at()] = number;
                        size += 1;
                        if member == id {
                            break;
                        }
                    }
                    closed.push(size > 1 || children(graph, id).contains(&id));
                }
            }
        }
        Cycles { group, closed }
    }

    pub(super) fn is_recursive(&self, id: NodeId) -> bool {
        self.closed[self.group[id.at()] as usize]
    }

    pub(super) fn share_one(&self, a: NodeId, b: NodeId) -> bool {
        self.group[a.at()] == self.group[b.at()] && self.is_recursive(a)
    }

    pub(super) fn has_any(&self) -> bool {
        self.closed.contains(&true)
    }
}

//! Scans of values whose schema has alternatives (tagged enums and unions) or checks (such as `not` and `if`).

use super::{Scan, ScanStep, ScanStop, UNDECIDED, byte, delimiter, misfit, skip_blank};
use crate::args::plan::{CheckedSpec, NodeCheck, NodeId, NodeKind, PlanNode, VariantNames};

impl<'s> Scan<'s> {
    pub(super) fn tagged(&mut self, node: &'s PlanNode, start: usize) -> ScanStep {
        let NodeKind::Tagged { tag, variants, names } = &node.kind else { return Err(UNDECIDED) };
        let text = self.bytes;
        let first = skip_blank(text, start + 1);
        let begin = names.first(tag, variants, self.graph);
        // Usually the tag is the first key, as in the schema.
        if let Some(value) = begin.key.end(text, first)
            && let value = skip_blank(text, value)
            && let mut known = begin.variants.iter()
            && let Some((end, variant, index)) =
                known.find_map(|(name, variant, index)| Some((name.end(text, value)?, *variant, *index)))
            && let NodeKind::Object(object) = self.graph.kind(variant)
        {
            let (found, at) = delimiter(text, end);
            match found {
                b',' if index < 64 => {
                    let at = skip_blank(text, at);
                    self.choices += 1;
                    let step = self.entries(object, 1 << index, index + 1, at);
                    self.choices -= 1;
                    return step;
                }
                b'}' | b',' => {}
                _ => return Err(UNDECIDED),
            }
        }
        self.tagged_anywhere(tag, variants, names, node, start)
    }

    #[inline(never)]
    fn tagged_anywhere(
        &mut self,
        tag: &str,
        variants: &'s [(String, NodeId)],
        names: &VariantNames,
        node: &PlanNode,
        start: usize,
    ) -> ScanStep {
        let (end, name) = self.tag(tag, skip_blank(self.bytes, start + 1))?;
        let variant = match variants.iter().find(|(known, _)| known == name) {
            Some((_, variant)) => *variant,
            None => match names.pick(variants, name, node.rules) {
                Some((picked, variant)) if !picked.is_coerced && picked.word == name => variant,
                Some((picked, _)) if !picked.is_coerced => return Err(UNDECIDED),
                _ => return Err(misfit(end)),
            },
        };
        self.spend(end - start)?;
        self.choices += 1;
        let step = self.value(variant, start);
        self.choices -= 1;
        step
    }

    /// Searches an object for the tag. Returns the position after the value of the tag, and the value.
    fn tag(&self, tag: &str, mut at: usize) -> Result<(usize, &'s str), ScanStop> {
        loop {
            if byte(self.bytes, at) == b'}' {
                return Err(misfit(at));
            }
            let (value, key) = self.key(at)?;
            if key == tag {
                return if byte(self.bytes, value) == b'"' { self.plain(value) } else { Err(misfit(value)) };
            }
            let end = self.anything(value)?;
            at = skip_blank(self.bytes, end);
            if byte(self.bytes, at) == b',' {
                at = skip_blank(self.bytes, at + 1);
            }
        }
    }

    /// Tries the alternatives in order, until the value fits one exactly.
    pub(super) fn union(&mut self, branches: &[NodeId], start: usize) -> ScanStep {
        let (depth, choices) = (self.depth, self.choices);
        let mut last = misfit(start);
        for branch in branches {
            (self.depth, self.choices) = (depth, choices + 1);
            let tried = self.value(*branch, start);
            (self.depth, self.choices) = (depth, choices);
            match tried {
                Err(stop) if stop.misfit_at > 0 => {
                    self.spend(stop.misfit_at - start)?;
                    last = stop;
                }
                decided => return decided,
            }
        }
        Err(last)
    }

    pub(super) fn checked(&mut self, spec: &'s CheckedSpec, start: usize) -> ScanStep {
        let (depth, choices) = (self.depth, self.choices);
        self.checked += 1;
        let step = self.value(spec.base, start).and_then(|end| {
            // A misfit within a check must not refuse the arguments, because a value that does not fit the schema in a `not` is correct.
            self.choices += 1;
            for check in &spec.checks {
                self.spend(end - start)?;
                if !self.passes(check, start)? {
                    return Err(misfit(end));
                }
            }
            Ok(end)
        });
        (self.depth, self.choices) = (depth, choices);
        self.checked -= 1;
        step
    }

    fn passes(&mut self, check: &'s NodeCheck, at: usize) -> Result<bool, ScanStop> {
        match check {
            NodeCheck::Also(node) => self.is_fit(*node, at),
            NodeCheck::Not { node, .. } => Ok(!self.is_fit(*node, at)?),
            NodeCheck::If { condition, then, otherwise, .. } => {
                let node = if self.is_fit(*condition, at)? { then } else { otherwise };
                node.map_or(Ok(true), |node| self.is_fit(node, at))
            }
            NodeCheck::Contains { .. }
            | NodeCheck::Names(_)
            | NodeCheck::Requires(..)
            | NodeCheck::Depends(..) => Err(UNDECIDED),
        }
    }

    /// Returns whether a value fits the node of a check such as `not`, without coercion.
    fn is_fit(&mut self, node: NodeId, at: usize) -> Result<bool, ScanStop> {
        match self.value(node, at) {
            Ok(_) => Ok(true),
            Err(stop) if stop.misfit_at > 0 => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// Counts bytes that are scanned again. Ends the scan after too many, because nested alternatives multiply the work.
    fn spend(&mut self, bytes: usize) -> Result<(), ScanStop> {
        self.again += bytes + 1;
        if self.again > 256 + 4 * self.text.len() { Err(UNDECIDED) } else { Ok(()) }
    }
}

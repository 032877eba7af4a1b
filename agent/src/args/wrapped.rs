//! Values that a coercion put into a list.

use super::coercion::{Coercion, CoercionRule};
use super::issue::Issue;

/// The paths of single values that a coercion put into a list. Issues use the path of the sent value, without the `/0` of the list.
#[derive(Default)]
pub(crate) struct WrappedValues {
    places: Vec<String>,
}

impl WrappedValues {
    pub(crate) fn of(coercions: &[Coercion]) -> WrappedValues {
        let wrapped = coercions.iter().filter(|coercion| coercion.rule == CoercionRule::OneValueWrapped);
        WrappedValues { places: wrapped.map(|coercion| coercion.path.clone()).collect() }
    }

    pub(crate) fn move_back(&self, issues: &mut [Issue]) {
        for issue in issues {
            self.move_pointer_back(&mut issue.path);
        }
    }

    pub(crate) fn move_pointer_back(&self, pointer: &mut String) {
        let is_in = |place: &&String| {
            let item = pointer.strip_prefix(place.as_str()).and_then(|below| below.strip_prefix("/0"));
            item.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        if let Some(place) = self.places.iter().find(is_in) {
            pointer.replace_range(place.len()..place.len() + "/0".len(), "");
        }
    }
}

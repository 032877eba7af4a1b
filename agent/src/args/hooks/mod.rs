//! Checks of tool authors that run on typed values: `#[arg(validate = …)]`.
//!
//! A check is part of the type's `Deserialize`, so every serde format runs it, and to serde a refusal is an error like
//! any other: the first one ends the reading. Only the engine wants all of them. After a refusal it reads the text
//! once more inside of [`collect`], where a refused value is kept and what was found is put aside; the value so made
//! is dropped. Nothing is accepted that way.

mod findings;
mod locate;
mod violations;

#[cfg(feature = "macros")]
pub use findings::{Checked, Findings, Step, checked};
pub use violations::Violations;

pub(crate) use locate::report;

use crate::args::plan::Node;
use findings::Found;
use std::cell::{Cell, RefCell};

/// The name under which a checked type asks for itself; the engine sees it pass.
pub(crate) const CHECKED: &str = "agent::Checked";

/// More than this is not kept.
const MAX_FOUND: usize = 10_000;

/// None where nobody collects.
type Aside = Option<Vec<Found>>;

thread_local! {
    /// What was found in this thread's scope, which lives as long as one synchronous reading.
    static ASIDE: RefCell<Aside> = const { RefCell::new(None) };
    /// Inside of alternatives that serde tries one after the other: there a refusal must be one.
    static SUSPENDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `reading` in a scope of its own, in which checks put aside what they find.
pub(crate) fn collect<R>(reading: impl FnOnce() -> R) -> R {
    let _before =
        Before { aside: Some(ASIDE.replace(Some(Vec::new()))), suspended: SUSPENDED.replace(false) };
    reading()
}

/// Until it is dropped, only what the engine itself hands its values to puts anything aside.
pub(crate) fn suspend() -> Before {
    Before { aside: None, suspended: SUSPENDED.replace(true) }
}

/// What was before, restored also when a check panics.
pub(crate) struct Before {
    aside: Option<Aside>,
    suspended: bool,
}

impl Drop for Before {
    fn drop(&mut self) {
        SUSPENDED.set(self.suspended);
        if let Some(aside) = self.aside.take() {
            ASIDE.set(aside);
        }
    }
}

/// Puts it aside, or gives it back where nobody collects. `certain`: what is read is no attempt.
fn put_aside(found: Vec<Found>, certain: bool) -> Result<(), Vec<Found>> {
    ASIDE.with_borrow_mut(|aside| match aside {
        Some(aside) if certain || !SUSPENDED.get() => {
            let room = MAX_FOUND.saturating_sub(aside.len());
            aside.extend(found.into_iter().take(room));
            Ok(())
        }
        _ => Err(found),
    })
}

/// The same for a type that reads itself from text; false where nobody collects.
pub(crate) fn put_aside_refusal(problem: &impl std::fmt::Display, certain: bool) -> bool {
    put_aside(vec![Found::named("", &problem.to_string())], certain).is_ok()
}

/// What was put aside since it was last asked.
fn take() -> Vec<Found> {
    ASIDE.with_borrow_mut(|aside| aside.as_mut().map(std::mem::take).unwrap_or_default())
}

/// What the checks of one value found, and where that value stands.
pub(crate) struct Placed {
    path: String,
    /// Where the plan's node is in memory.
    node: usize,
    secret: bool,
    found: Found,
}

/// Takes what was found since the last time as something about the value at `path`.
#[cold]
pub(crate) fn place(path: impl Fn() -> String, node: &Node, secret: bool, placed: &mut Vec<Placed>) {
    let room = MAX_FOUND.saturating_sub(placed.len());
    let node = std::ptr::from_ref(node).addr();
    placed.extend(take().into_iter().take(room).map(|found| Placed { path: path(), node, secret, found }));
}

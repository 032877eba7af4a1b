//! Checks of tool authors that run on typed values: `#[arg(validate = …)]`.
//!
//! A check is part of the type's `Deserialize`, so every serde format runs it. To serde, a refusal is an error like any other, so the first
//! refusal ends the reading. Only the argument engine needs all refusals: after the first one, it reads the text once more within
//! [`collect`], where a refused value is kept and its findings are set aside. The resulting value is dropped, so no refused value is
//! accepted.

mod findings;
mod locate;
mod violations;

#[cfg(feature = "macros")]
pub use findings::{CheckedType, FindingList, FindingStep, checked};
pub use violations::Violations;

pub(crate) use locate::{is_within, report};

use crate::args::plan::NodeId;
use findings::CheckFinding;
use std::cell::{Cell, RefCell};

/// The name with which a checked type calls `deserialize_newtype_struct`; the argument engine recognizes it.
pub(crate) const CHECKED: &str = "agent::Checked";

/// Maximum number of findings that are kept.
const MAX_FOUND: usize = 10_000;

/// `None` outside of [`collect`].
type SetAside = Option<Vec<CheckFinding>>;

thread_local! {
    /// The findings in this thread's scope, which lasts for one synchronous read.
    static ASIDE: RefCell<SetAside> = const { RefCell::new(None) };
    /// Set while serde tries alternatives one after the other. Then a refusal must be an error, so that serde tries the next alternative.
    static SUSPENDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `reading` in a scope in which checks set their findings aside.
pub(crate) fn collect<R>(reading: impl FnOnce() -> R) -> R {
    let _before =
        CollectScope { aside: ASIDE.replace(Some(Vec::new())), suspended: SUSPENDED.replace(false) };
    reading()
}

/// Until `resume` is called, only values that the engine itself reads set findings aside; other findings are errors. Returns `false` if
/// this was already so. If the code panics, the scope of [`collect`] ends this state.
pub(crate) fn suspend() -> bool {
    !SUSPENDED.replace(true)
}

/// Ends the state that `suspend` began.
pub(crate) fn resume() {
    SUSPENDED.set(false);
}

/// Restores the earlier state, even if a check panics.
struct CollectScope {
    aside: SetAside,
    suspended: bool,
}

impl Drop for CollectScope {
    fn drop(&mut self) {
        SUSPENDED.set(self.suspended);
        ASIDE.set(self.aside.take());
    }
}

/// Sets the findings aside, or returns them outside of [`collect`]. `certain` means that the engine itself reads the value, not serde in an
/// attempt.
fn put_aside(found: Vec<CheckFinding>, certain: bool) -> Result<(), Vec<CheckFinding>> {
    ASIDE.with_borrow_mut(|aside| match aside {
        Some(aside) if certain || !SUSPENDED.get() => {
            let room = MAX_FOUND.saturating_sub(aside.len());
            aside.extend(found.into_iter().take(room));
            Ok(())
        }
        _ => Err(found),
    })
}

/// Sets aside the refusal of a type that parses text itself. Returns `false` if it must be an error, as outside of [`collect`].
pub(crate) fn put_aside_refusal(problem: &impl std::fmt::Display, certain: bool) -> bool {
    put_aside(vec![CheckFinding::named("", &problem.to_string())], certain).is_ok()
}

/// Takes the findings since the last call.
fn take() -> Vec<CheckFinding> {
    ASIDE.with_borrow_mut(|aside| aside.as_mut().map(std::mem::take).unwrap_or_default())
}

/// A finding of a check, with the path of the checked value.
pub(crate) struct LocatedFinding {
    pub(crate) path: String,
    node: NodeId,
    secret: bool,
    found: CheckFinding,
}

/// Assigns the findings since the last call to the value at `path`.
#[cold]
pub(crate) fn place(path: impl Fn() -> String, node: NodeId, secret: bool, placed: &mut Vec<LocatedFinding>) {
    let room = MAX_FOUND.saturating_sub(placed.len());
    placed.extend(take().into_iter().take(room).map(|found| LocatedFinding {
        path: path(),
        node,
        secret,
        found,
    }));
}

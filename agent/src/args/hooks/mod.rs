//! Checks that tool authors write for typed values: `#[arg(validate = …)]`. A check is part of the type's `Deserialize`, in which the
//! first refusal ends the reading. To report all refusals, the argument engine reads a refused text again within [`collect`], where
//! findings are kept instead of being errors; what is read there is dropped.

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

/// The name with which a checked type calls `deserialize_newtype_struct`, and by which the argument engine recognizes the type.
pub(crate) const CHECKED: &str = "agent::Checked";

/// Maximum number of findings that are kept; further findings are dropped.
const MAX_FOUND: usize = 10_000;

/// The findings so far, or `None` outside of [`collect`].
type SetAside = Option<Vec<CheckFinding>>;

thread_local! {
    /// The findings of the current call of [`collect`], which is synchronous.
    static ASIDE: RefCell<SetAside> = const { RefCell::new(None) };
    /// Whether serde is trying alternatives one after the other. A refusal must then be an error, so that serde tries the next alternative.
    static SUSPENDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `reading`. Meanwhile, findings of checks are kept in `ASIDE` instead of becoming errors.
pub(crate) fn collect<R>(reading: impl FnOnce() -> R) -> R {
    let _before =
        CollectScope { aside: ASIDE.replace(Some(Vec::new())), suspended: SUSPENDED.replace(false) };
    reading()
}

/// Suspends [`collect`] until `resume` is called: findings become errors again, unless their value comes from the argument text itself,
/// and not from a buffer of serde. Returns `false` if `collect` was already suspended. After a panic, [`collect`] restores the state.
pub(crate) fn suspend() -> bool {
    !SUSPENDED.replace(true)
}

pub(crate) fn resume() {
    SUSPENDED.set(false);
}

/// The state from before [`collect`], which dropping this value restores, even after a panic.
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

/// Keeps the findings in `ASIDE` within [`collect`], and returns them as the error elsewhere. While serde tries alternatives, only
/// `certain` findings are kept: those about values that come from the argument text, and not from a buffer of serde.
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

/// Keeps the refusal of a type that parses its text itself, as `put_aside` does. Returns `false` if the refusal must be an error.
pub(crate) fn put_aside_refusal(problem: &impl std::fmt::Display, certain: bool) -> bool {
    put_aside(vec![CheckFinding::named("", &problem.to_string())], certain).is_ok()
}

fn take() -> Vec<CheckFinding> {
    ASIDE.with_borrow_mut(|aside| aside.as_mut().map(std::mem::take).unwrap_or_default())
}

pub(crate) struct LocatedFinding {
    pub(crate) path: String,
    node: NodeId,
    secret: bool,
    found: CheckFinding,
}

/// Moves the findings in `ASIDE` to `placed`, as findings about the value at `path`.
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

//! Checks that tool authors write: `#[arg(validate = …)]`. The type's `Deserialize` runs the checks, and stops at the first refusal. To
//! report all refusals, the arguments are then deserialized again within [`collect`], which keeps the refusals instead of failing. The
//! value of this second run is dropped.

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

/// The name that a type with `#[arg(validate = …)]` passes to `deserialize_newtype_struct`. `PlanDe` recognizes the type by this name.
pub(crate) const CHECKED: &str = "agent::Checked";

/// Maximum number of findings that are kept; further findings are dropped.
const MAX_FOUND: usize = 10_000;

/// The findings so far, or `None` outside of [`collect`].
type SetAside = Option<Vec<CheckFinding>>;

thread_local! {
    static ASIDE: RefCell<SetAside> = const { RefCell::new(None) };
    /// Whether serde tries the alternatives of an enum. A finding must then be an error, so that serde tries the next one.
    static SUSPENDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `reading`. A finding of a validation function is stored in `ASIDE` instead of failing `reading`.
pub(crate) fn collect<R>(reading: impl FnOnce() -> R) -> R {
    let _before =
        CollectScope { aside: ASIDE.replace(Some(Vec::new())), suspended: SUSPENDED.replace(false) };
    reading()
}

/// Suspends [`collect`] until `resume` is called: a finding about a value that serde may have buffered is an error again. Returns `false`
/// if [`collect`] was already suspended.
pub(crate) fn suspend() -> bool {
    !SUSPENDED.replace(true)
}

pub(crate) fn resume() {
    SUSPENDED.set(false);
}

/// Restores the state from before [`collect`] when dropped, even after a panic.
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

/// Keeps the findings for [`collect`] if it is active, or else returns them as the error. While serde tries alternatives, only `certain`
/// findings are kept.
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

/// Keeps the refusal of a `ParsedText` type for [`collect`]. Returns `false` if the refusal must be an error.
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

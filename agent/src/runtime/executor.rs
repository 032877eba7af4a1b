//! Blocking work and waiting, on tokio.

use std::panic::catch_unwind;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::{BoxFuture, Executor};

/// The executor of the tokio runtime that polls it. Outside of one, work runs inline and there is no clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokioExecutor;

impl Executor for TokioExecutor {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match Handle::try_current() {
                Ok(runtime) => {
                    // An error means that the runtime shuts down before the work began; whoever waits for its
                    // result sees that there is none.
                    let _ = runtime.spawn_blocking(work).await;
                }
                Err(_) => work(),
            }
        })
    }

    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
        Handle::try_current().ok()?;
        // Panics where the runtime was built without its clock, and there is no way to ask.
        let sleep = catch_unwind(|| tokio::time::sleep(duration)).ok()?;
        Some(Box::pin(sleep))
    }
}

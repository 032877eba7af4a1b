//! Blocking work and waiting, on tokio.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::panics::catch;
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
        let sleep = catch(|| tokio::time::sleep(duration)).ok()?;
        Some(Box::pin(sleep))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};

    use tokio::runtime::Builder;

    use super::*;

    /// Runs blocking work and tells on which thread.
    fn work() -> (BoxFuture<'static, ()>, mpsc::Receiver<std::thread::ThreadId>) {
        let (tell, told) = mpsc::channel();
        let work = move || tell.send(std::thread::current().id()).expect("somebody listens");
        (TokioExecutor.run_blocking(Box::new(work)), told)
    }

    #[test]
    fn in_a_runtime_work_goes_to_the_blocking_pool() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let (done, told) = work();
        runtime.block_on(done);
        assert_ne!(told.try_recv().unwrap(), std::thread::current().id());
        let sleep = || TokioExecutor.sleep(Duration::ZERO);
        runtime.block_on(async { sleep().unwrap().await });
    }

    #[test]
    fn outside_of_a_runtime_work_runs_inline_and_there_is_no_clock() {
        let (mut done, told) = work();
        assert_eq!(done.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
        assert_eq!(told.try_recv().unwrap(), std::thread::current().id());
        assert!(TokioExecutor.sleep(Duration::ZERO).is_none());
    }

    #[test]
    fn a_runtime_without_a_clock_has_no_clock() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { assert!(TokioExecutor.sleep(Duration::ZERO).is_none()) });
    }
}

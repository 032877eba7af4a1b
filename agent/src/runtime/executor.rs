//! The executor on tokio: blocking work and sleeping.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::panics::catch;
use crate::tool::BoxFuture;
use crate::tool::executor::Executor;

/// An executor on the current tokio runtime. Outside of a runtime, work runs inline and there is no clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokioExecutor;

impl Executor for TokioExecutor {
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match Handle::try_current() {
                Ok(runtime) => {
                    // The work does not panic, so an error means that the runtime shut down before the work began. The
                    // caller detects this, because the work has left no result.
                    let _ = runtime.spawn_blocking(work).await;
                }
                Err(_) => work(),
            }
        })
    }

    fn sleep(&self, duration: Duration) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(timer(duration)?))
    }

    fn has_clock(&self) -> bool {
        timer(Duration::ZERO).is_some()
    }
}

/// Returns a timer, or `None` if there is no runtime or the runtime has no timer.
fn timer(duration: Duration) -> Option<tokio::time::Sleep> {
    Handle::try_current().ok()?;
    // `sleep` panics if the runtime was built without its timer, and tokio has no function that checks for one.
    catch(|| tokio::time::sleep(duration)).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};

    use tokio::runtime::Builder;

    use super::*;

    fn work() -> (BoxFuture<'static, ()>, mpsc::Receiver<std::thread::ThreadId>) {
        let (sender, thread) = mpsc::channel();
        let work = move || sender.send(std::thread::current().id()).expect("the receiver exists");
        (TokioExecutor.run_blocking(Box::new(work)), thread)
    }

    #[test]
    fn in_a_runtime_work_runs_on_the_blocking_pool() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let (done, thread) = work();
        runtime.block_on(done);
        assert_ne!(thread.try_recv().unwrap(), std::thread::current().id());
        let sleep = || TokioExecutor.sleep(Duration::ZERO);
        runtime.block_on(async { sleep().unwrap().await });
    }

    #[test]
    fn outside_of_a_runtime_work_runs_inline_and_there_is_no_clock() {
        let (mut done, thread) = work();
        assert_eq!(done.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
        assert_eq!(thread.try_recv().unwrap(), std::thread::current().id());
        assert!(TokioExecutor.sleep(Duration::ZERO).is_none());
    }

    #[test]
    fn a_runtime_without_a_clock_has_no_clock() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { assert!(TokioExecutor.sleep(Duration::ZERO).is_none()) });
    }
}

//! Signals of the operating system. Each is delivered to every part of the program, and kept until it is handled.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT: Ctrl-C in a terminal that turns the key into a signal, or a signal of another process.
    Interrupt,
    /// SIGTERM or SIGHUP: the program has to end.
    End,
}

/// The signals that arrived since the start.
#[derive(Debug, Default)]
struct Told {
    interrupts: u64,
    ends: bool,
}

static TOLD: LazyLock<watch::Sender<Told>> = LazyLock::new(watch::Sender::default);

/// The number of interrupts that [`next`] has returned.
static HEARD: AtomicU64 = AtomicU64::new(0);

/// Handles signals from now on. A signal that cannot be handled keeps its default action, which ends the process.
#[cfg(unix)]
pub(crate) fn listen() {
    use tokio::signal::unix::{SignalKind, signal};
    let one = |kind, tell: fn(&mut Told)| {
        let Ok(mut signals) = signal(kind) else { return };
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                TOLD.send_modify(tell);
            }
        });
    };
    one(SignalKind::interrupt(), |told| told.interrupts += 1);
    one(SignalKind::terminate(), |told| told.ends = true);
    one(SignalKind::hangup(), |told| told.ends = true);
}

#[cfg(not(unix))]
pub(crate) fn listen() {
    tokio::spawn(async {
        while tokio::signal::ctrl_c().await.is_ok() {
            TOLD.send_modify(|told| told.interrupts += 1);
        }
    });
}

/// Waits for the next signal, and returns each interrupt once. After an end signal, every call returns [`Signal::End`]. Cancel-safe.
pub(crate) async fn next() -> Signal {
    unheard(TOLD.subscribe(), &HEARD).await
}

async fn unheard(mut told: watch::Receiver<Told>, heard: &AtomicU64) -> Signal {
    loop {
        {
            let told = told.borrow_and_update();
            if told.ends {
                return Signal::End;
            }
            let is_new = |heard| (heard < told.interrupts).then_some(heard + 1);
            if heard.fetch_update(Ordering::AcqRel, Ordering::Acquire, is_new).is_ok() {
                return Signal::Interrupt;
            }
        }
        if told.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Duration, timeout};

    #[tokio::test(start_paused = true)]
    async fn each_interrupt_is_heard_once_and_an_end_by_all() {
        let (said, told) = watch::channel(Told::default());
        let heard = AtomicU64::new(0);
        let next = || timeout(Duration::from_secs(1), unheard(told.clone(), &heard));
        assert!(next().await.is_err());
        // Two interrupts arrive while no call waits.
        said.send_modify(|told| told.interrupts += 2);
        assert_eq!(next().await, Ok(Signal::Interrupt));
        assert_eq!(next().await, Ok(Signal::Interrupt));
        assert!(next().await.is_err());
        // One interrupt arrives while a call waits.
        let (signal, ()) = tokio::join!(next(), async { said.send_modify(|told| told.interrupts += 1) });
        assert_eq!(signal, Ok(Signal::Interrupt));
        said.send_modify(|told| told.ends = true);
        assert_eq!((next().await, next().await), (Ok(Signal::End), Ok(Signal::End)));
    }
}

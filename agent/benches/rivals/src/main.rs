//! One prompt is two scripted replies and one call of a tool with `{a: i64, b: i64}`, on a current-thread runtime with one
//! shared assistant.
//!
//! ```sh
//! rivals prompts    ours|rig N      # one after the other: allocations of each; instructions by valgrind, see runtime.sh
//! rivals concurrent ours|rig N      # all at once, all waiting in their tools: time and memory of each
//! rivals sizes      ours     N      # the same: what is allocated while they wait, by size
//! rivals turns      ours     N      # one run of N turns: allocations and time of each turn
//! ```
//!
//! Memory is what is allocated and not freed, counted by the allocator, so that neither what a process began with nor what an
//! allocator keeps for later is in it. Time is that of the processor. What is asked is the steady state: scripts are written and one round is played
//! before anything is counted.

mod count;
mod ours;
mod rig;

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// What came of it: how much time, how many runs or turns, and how much memory at most.
pub struct Measured {
    pub time: Duration,
    pub count: usize,
    pub live: usize,
    pub allocations: usize,
    pub bytes: usize,
}

/// Measures a part of a bench.
pub struct Meter {
    begun: Duration,
    live: usize,
    allocations: usize,
    bytes: usize,
}

impl Meter {
    pub fn start() -> Self {
        count::forget_peak();
        Self {
            begun: processor_time(),
            live: count::live(),
            allocations: count::allocations(),
            bytes: count::bytes(),
        }
    }

    pub fn stop(self, count: usize) -> Measured {
        Measured {
            time: processor_time().saturating_sub(self.begun),
            count,
            live: count::peak().saturating_sub(self.live),
            allocations: count::allocations() - self.allocations,
            bytes: count::bytes() - self.bytes,
        }
    }
}

/// The processor time of this thread: other work of the machine counts only by what it leaves of the caches.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.try_into().expect("less than a second"))
}

/// How many runs a round of concurrent ones is repeated to, so that few at a time are measured as long as many; the variable
/// `RUNS` says otherwise.
const RUNS: usize = 20_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, who, n] = args.as_slice() else {
        panic!("usage: rivals prompts|concurrent|sizes|turns ours|rig N")
    };
    let n: usize = n.parse().expect("a number");
    let runs = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let rounds = (runs / n).max(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let Measured { time, count, live, allocations, bytes } = match (mode.as_str(), who.as_str()) {
        ("prompts", "ours") => runtime.block_on(ours::prompts(n)),
        ("prompts", "rig") => runtime.block_on(rig::prompts(n)),
        ("concurrent", "ours") => runtime.block_on(ours::concurrent(n, rounds)),
        ("concurrent", "rig") => runtime.block_on(rig::concurrent(n, rounds)),
        ("sizes", "ours") => runtime.block_on(ours::sizes(n)),
        ("turns", "ours") => runtime.block_on(ours::turns(n)),
        _ => panic!("no such mode"),
    };
    let each = |total: usize| total as f64 / count as f64;
    let micros = time.as_secs_f64() * 1e6 / count as f64;
    let kb = live as f64 / n as f64 / 1000.0;
    println!(
        "{mode} {who} {n}: {micros:.1} us, {:.1} allocations of {:.0} bytes together, {kb:.1} KB held at most, each",
        each(allocations),
        each(bytes),
    );
}

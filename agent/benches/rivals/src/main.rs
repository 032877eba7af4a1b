//! One prompt is two scripted replies and one call of a tool with `{a: i64, b: i64}`, on a current-thread runtime with one
//! shared assistant.
//!
//! ```sh
//! rivals prompts    ours|rig N      # one after the other: for valgrind, see runtime.sh
//! rivals concurrent ours|rig N      # all at once: microseconds and KB of peak memory for each run
//! rivals turns      ours     N      # one run of N turns: microseconds for each turn
//! ```

mod ours;
mod rig;

use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, who, n] = args.as_slice() else { panic!("usage: rivals prompts|concurrent|turns ours|rig N") };
    let n: usize = n.parse().expect("a number");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (before, begun) = (peak_kb(), Instant::now());
    match (mode.as_str(), who.as_str()) {
        ("prompts", "ours") => runtime.block_on(ours::prompts(n)),
        ("prompts", "rig") => runtime.block_on(rig::prompts(n)),
        ("concurrent", "ours") => runtime.block_on(ours::concurrent(n)),
        ("concurrent", "rig") => runtime.block_on(rig::concurrent(n)),
        ("turns", "ours") => runtime.block_on(ours::turns(n)),
        _ => panic!("no such mode"),
    }
    let micros = begun.elapsed().as_secs_f64() * 1e6 / n as f64;
    let kb = (peak_kb() - before) as f64 / n as f64;
    println!("{mode} {who} {n}: {micros:.1} us each, {kb:.1} KB of peak memory each");
}

/// The most memory that was resident so far.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or_default()
}

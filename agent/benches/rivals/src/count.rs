//! An allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
/// Allocations that are alive, by size.
static SIZES: [AtomicUsize; MAX] = [const { AtomicUsize::new(0) }; MAX];
const MAX: usize = 8192;

fn add(size: usize) {
    ALLOCATIONS.fetch_add(1, Relaxed);
    BYTES.fetch_add(size, Relaxed);
    SIZES[size.min(MAX - 1)].fetch_add(1, Relaxed);
    let live = LIVE.fetch_add(size, Relaxed) + size;
    // One thread: nobody comes in between.
    if live > PEAK.load(Relaxed) {
        PEAK.store(live, Relaxed);
    }
}

fn remove(size: usize) {
    SIZES[size.min(MAX - 1)].fetch_sub(1, Relaxed);
    LIVE.fetch_sub(size, Relaxed);
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        remove(layout.size());
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        remove(layout.size());
        add(size);
        unsafe { System.realloc(at, layout, size) }
    }
}

pub fn live() -> usize {
    LIVE.load(Relaxed)
}

pub fn peak() -> usize {
    PEAK.load(Relaxed)
}

pub fn forget_peak() {
    PEAK.store(live(), Relaxed);
}

pub fn allocations() -> usize {
    ALLOCATIONS.load(Relaxed)
}

pub fn bytes() -> usize {
    BYTES.load(Relaxed)
}

/// How many allocations of each size are alive; the last is all that are larger.
pub fn sizes() -> Vec<usize> {
    SIZES.iter().map(|count| count.load(Relaxed)).collect()
}

//! Encoded messages that are kept for the next request of their conversation.
//!
//! The next request begins with the same messages, so encoders reuse the kept text and write only the new messages. Messages are compared
//! by address, so a kept text keeps its messages in memory: no new message can get one of these addresses.
#![allow(dead_code, reason = "only the protocols of providers keep texts, and only an assistant forks them")]

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::by_role::Message;

/// The maximum number of bytes that are kept in the whole process. The least recently used texts are dropped first.
const MAX_KEPT: usize = 256 << 20;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TextSegment {
    text: Arc<str>,
    length: usize,
}

impl TextSegment {
    pub(crate) fn as_str(&self) -> &str {
        self.text.get(..self.length).unwrap_or_default()
    }

    /// Cuts the text to at most this length, which must be the end of an encoded item.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl From<String> for TextSegment {
    fn from(text: String) -> Self {
        Self { length: text.len(), text: text.into() }
    }
}

impl From<Arc<str>> for TextSegment {
    fn from(text: Arc<str>) -> Self {
        Self { length: text.len(), text }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResumePoint {
    /// The number of messages before the position.
    pub(crate) messages: usize,
    /// The length of the text of the messages before the position, in bytes.
    pub(crate) length: usize,
    /// The number of encoded items in the text before the position.
    pub(crate) items: usize,
    /// The number of cache marks before the position.
    pub(crate) marks: usize,
    /// The number of cache marks before the position that are not in the text.
    pub(crate) skipped_marks: usize,
    /// Whether a tool result comes directly before the position.
    pub(crate) follows_result: bool,
}

/// The encoded beginning of a list of messages.
#[derive(Clone)]
pub(crate) struct KeptText {
    /// Everything on which the text depends, except the messages.
    pub(crate) key: Arc<dyn Any + Send + Sync>,
    /// The [number](super::MessageList::number) of the list. Every list with this number begins with `messages`.
    pub(crate) list: u64,
    pub(crate) messages: Vec<Arc<Message>>,
    /// The positions at which encoding can continue, in order. The last position is the end of the text.
    pub(crate) points: Vec<ResumePoint>,
    pub(crate) segments: Vec<TextSegment>,
    pub(crate) has_own_ids: bool,
}

impl KeptText {
    fn size(&self) -> usize {
        let texts: usize = self.segments.iter().map(|segment| segment.text.len()).sum();
        texts + self.messages.len() * size_of::<usize>() + self.points.len() * size_of::<ResumePoint>()
    }
}

/// The encoded text that is kept for the conversation of a [`MessageList`](super::MessageList). Clones of the slot share the text.
#[derive(Clone, Default)]
pub(crate) struct KeptSlot(Option<Arc<TextSlot>>);

impl KeptSlot {
    /// Creates an empty slot that can keep a text.
    pub(crate) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    pub(crate) fn fork(&self) -> Self {
        let fork = Self::new();
        if let Some(kept) = self.0.as_ref().and_then(|slot| slot.lock().kept.clone()) {
            fork.put(kept);
        }
        fork
    }

    /// Takes the text. Until a text is put back, other requests of the conversation find none.
    pub(crate) fn take(&self) -> Option<KeptText> {
        let slot = self.0.as_ref()?;
        let mut pool = lock_pool();
        let mut content = slot.lock();
        pool.remove(std::mem::take(&mut content.used));
        content.kept.take()
    }

    pub(crate) fn put(&self, kept: KeptText) {
        let Some(slot) = &self.0 else { return };
        let size = kept.size();
        if size > MAX_KEPT {
            return;
        }
        // The texts are dropped after both locks are released, because dropping an evicted slot may lock the pool.
        let (replaced, evicted) = {
            let mut pool = lock_pool();
            let mut content = slot.lock();
            pool.remove(content.used);
            content.used = pool.add(size, slot);
            let replaced = content.kept.replace(kept);
            drop(content);
            (replaced, pool.evict(MAX_KEPT))
        };
        drop((replaced, evicted));
    }

    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for KeptSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptSlot")
    }
}

#[derive(Default)]
struct TextSlot(Mutex<TextSlotContent>);

#[derive(Default)]
struct TextSlotContent {
    /// The key of this slot in `Pool::slots`, or 0 if the slot has no text.
    used: u64,
    kept: Option<KeptText>,
}

impl TextSlot {
    /// Locks the content. A thread that holds this lock must not wait for the lock of the pool.
    fn lock(&self) -> MutexGuard<'_, TextSlotContent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TextSlot {
    fn drop(&mut self) {
        let used = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).used;
        if used > 0 {
            lock_pool().remove(used);
        }
    }
}

/// The slots that have a text. Each use of a slot gets a new number as its key, so the first slot is the least recently used one.
struct Pool {
    bytes: usize,
    uses: u64,
    slots: BTreeMap<u64, (usize, Weak<TextSlot>)>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool::new());

fn lock_pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    const fn new() -> Self {
        Self { bytes: 0, uses: 0, slots: BTreeMap::new() }
    }

    fn add(&mut self, size: usize, slot: &Arc<TextSlot>) -> u64 {
        self.uses += 1;
        self.bytes += size;
        self.slots.insert(self.uses, (size, Arc::downgrade(slot)));
        self.uses
    }

    fn remove(&mut self, used: u64) {
        if let Some((size, _)) = self.slots.remove(&used) {
            self.bytes -= size;
        }
    }

    /// Removes and returns the least recently used texts, until at most `max` bytes remain. The caller must unlock the pool before it
    /// drops the texts and slots, because dropping a slot may lock the pool.
    fn evict(&mut self, max: usize) -> Vec<(Option<KeptText>, Arc<TextSlot>)> {
        let mut evicted = Vec::new();
        while self.bytes > max
            && let Some((_, (size, slot))) = self.slots.pop_first()
        {
            self.bytes -= size;
            if let Some(slot) = slot.upgrade() {
                let mut content = slot.lock();
                content.used = 0;
                let kept = content.kept.take();
                drop(content);
                evicted.push((kept, slot));
            }
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> KeptText {
        let segments = vec![TextSegment::from("x".repeat(length))];
        KeptText {
            key: Arc::new(()),
            list: 0,
            messages: Vec::new(),
            points: Vec::new(),
            segments,
            has_own_ids: true,
        }
    }

    #[test]
    fn the_texts_that_were_not_used_for_longest_are_evicted() {
        let mut pool = Pool::new();
        let slots: Vec<Arc<TextSlot>> = (0..4).map(|_| Arc::default()).collect();
        for (slot, size) in slots.iter().zip([30, 30, 40, 5]) {
            slot.lock().kept = Some(text(size));
            slot.lock().used = pool.add(size, slot);
        }
        assert_eq!(pool.bytes, 105);
        let evicted = pool.evict(50);
        assert_eq!((evicted.len(), pool.bytes), (2, 45));
        let kept: Vec<bool> = slots.iter().map(|slot| slot.lock().kept.is_some()).collect();
        assert_eq!(kept, [false, false, true, true]);
        pool.remove(slots[2].lock().used);
        assert_eq!((pool.bytes, pool.slots.len()), (5, 1));
        for slot in &slots {
            slot.lock().used = 0;
        }
    }

    #[test]
    fn a_slot_counts_what_it_holds_until_it_is_dropped() {
        let size = |slot: &KeptSlot| {
            let used = slot.0.as_ref().map_or(0, |slot| slot.lock().used);
            lock_pool().slots.get(&used).map(|(size, _)| *size)
        };
        let slot = KeptSlot::new();
        assert_eq!(size(&slot), None);
        slot.put(text(1000));
        slot.put(text(2000));
        let fork = slot.fork();
        assert_eq!((size(&slot), size(&fork)), (Some(2000), Some(2000)));
        assert!(slot.take().is_some() && slot.take().is_none());
        assert_eq!((size(&slot), size(&fork)), (None, Some(2000)));
        let used = fork.0.as_ref().unwrap().lock().used;
        drop(fork);
        assert!(!lock_pool().slots.contains_key(&used));
        assert!(KeptSlot::default().take().is_none());
    }
}

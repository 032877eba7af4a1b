//! The sizes of messages, cached from one estimate to the next, because only a few messages of a long conversation are new in each
//! estimate.
//!
//! A message is identified by its address. While the table has a weak reference to the message, no other message can get this address. The
//! message cannot be edited at this address either, because `Arc::make_mut` moves it to another address first.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::media::ImageRule;
use super::{MESSAGE, SizeCounter};
use crate::message::{Content, Message};

/// Maximum number of message sizes that the process keeps.
const MAX_SIZES: usize = 1 << 16;
/// The number of entries at which the table is first cleaned of dropped messages. It is cleaned again whenever the number of entries has
/// doubled.
const MIN_SIZES: usize = 1 << 10;

/// The size of a message: the number of tokens and the number of parts, each for thinking, for media, and for all other parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageSize {
    pub(super) thinking: (u64, usize),
    pub(super) media: (u64, usize),
    pub(super) others: (u64, usize),
}

impl MessageSize {
    pub(super) fn tokens(&self) -> u64 {
        let parts = [self.thinking, self.media, self.others];
        parts.iter().fold(MESSAGE, |sum, (tokens, _)| sum.saturating_add(*tokens))
    }
}

impl SizeCounter<'_> {
    pub(super) fn sizes<'m>(
        self,
        messages: impl IntoIterator<Item = &'m Arc<Message>>,
        mut each: impl FnMut(&'m Message, MessageSize),
    ) {
        let Some(counter) = self.counter.id() else {
            return messages.into_iter().for_each(|message| each(message, self.count(message)));
        };
        let rule = ImageRule::of(self.api);
        let mut table = lock_table();
        for message in messages {
            let key = SizeKey { message: Arc::as_ptr(message).addr(), counter, rule };
            let size = if let Some((_, size)) = table.sizes.get(&key) {
                *size
            } else {
                // A counter may be code of the application, so it is called without the lock.
                drop(table);
                let size = self.count(message);
                table = lock_table();
                table.put(key, message, size);
                size
            };
            each(message, size);
        }
    }

    fn count(self, message: &Message) -> MessageSize {
        let mut size = MessageSize::default();
        for part in message.content() {
            let (tokens, parts) = match &part.content {
                Content::Thinking { .. } => &mut size.thinking,
                Content::Image(_) | Content::Document(_) | Content::Audio(_) => &mut size.media,
                _ => &mut size.others,
            };
            *tokens = tokens.saturating_add(self.part(part));
            *parts += 1;
        }
        size
    }
}

/// The key of a size: the address of the message, the counter, and the rule for images.
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
struct SizeKey {
    message: usize,
    counter: u64,
    rule: ImageRule,
}

struct SizeTable {
    sizes: HashMap<SizeKey, (Weak<Message>, MessageSize), BuildHasherDefault<SizeHasher>>,
    sweep_at: usize,
}

static TABLE: Mutex<SizeTable> = Mutex::new(SizeTable::new());

fn lock_table() -> MutexGuard<'static, SizeTable> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SizeTable {
    const fn new() -> Self {
        Self { sizes: HashMap::with_hasher(BuildHasherDefault::new()), sweep_at: MIN_SIZES }
    }

    fn put(&mut self, key: SizeKey, message: &Arc<Message>, size: MessageSize) {
        if self.sizes.len() >= self.sweep_at {
            self.sizes.retain(|_, (message, _)| message.strong_count() > 0);
            if self.sizes.len() >= MAX_SIZES {
                self.sizes.clear();
            }
            self.sweep_at = (self.sizes.len() * 2).clamp(MIN_SIZES, MAX_SIZES);
        }
        self.sizes.insert(key, (Arc::downgrade(message), size));
    }
}

/// A fast hash of the numbers of a [`SizeKey`]. No input from outside determines these numbers, so collisions cannot be provoked.
#[derive(Default)]
struct SizeHasher(u64);

impl Hasher for SizeHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.unsigned_abs() as u64);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::{CountWith, TokenCounter, TokenEstimator};
    use super::*;
    use crate::message::Part;

    fn size(message: &Arc<Message>) -> u64 {
        SizeCounter { counter: &TokenEstimator, api: "acme-chat" }.message(message)
    }

    #[test]
    fn a_message_is_counted_once_for_each_counter_and_rule_of_images() {
        let counted = AtomicU64::new(0);
        let count = |text: &str| {
            // The counter runs without the lock of the table, so it may itself ask for a size.
            assert_eq!(size(&Arc::new(Message::user("abcd"))), 5);
            counted.fetch_add(1, Ordering::Relaxed);
            text.len() as u64
        };
        let (kept, other, once) = (CountWith::kept(count), CountWith::kept(count), CountWith::once(count));
        let message = Arc::new(Message::assistant([Part::thinking("abc"), Part::text("ab")]));
        let expected = MessageSize { thinking: (3, 1), media: (0, 0), others: (2, 1) };
        let mut calls = Vec::new();
        let cases: [(&dyn TokenCounter, &str); 7] = [
            (&kept, "openai-chat"),
            (&kept, "openai-responses"),
            (&kept, "gemini"),
            (&kept, "openai-chat"),
            (&other, "openai-chat"),
            (&once, "openai-chat"),
            (&once, "openai-chat"),
        ];
        for (counter, api) in cases {
            SizeCounter { counter, api }.sizes([&message], |_, size| assert_eq!(size, expected));
            calls.push(counted.swap(0, Ordering::Relaxed));
        }
        assert_eq!(calls, [2, 0, 2, 0, 2, 2, 2]);
    }

    #[test]
    fn an_edited_message_is_counted_again() {
        let mut message = Arc::new(Message::user("abc ".repeat(10)));
        for tokens in 10..1_000 {
            assert_eq!(size(&message), 4 + tokens);
            let Message::User(user) = Arc::make_mut(&mut message) else { unreachable!() };
            user.content = vec![Part::text("abc ".repeat(usize::try_from(tokens).unwrap() + 1))];
        }
        // Each message is dropped before the next one is created, perhaps at the same address. The old size must not be used again.
        for tokens in 1..1_000 {
            assert_eq!(size(&Arc::new(Message::user("abc ".repeat(tokens)))), 4 + tokens as u64);
        }
    }

    #[test]
    fn sizes_of_dropped_messages_are_removed_and_their_number_is_bounded() {
        let mut table = SizeTable::new();
        let put = |table: &mut SizeTable, message: &Arc<Message>, counter| {
            let key = SizeKey { message: Arc::as_ptr(message).addr(), counter, rule: ImageRule::Unknown };
            table.put(key, message, MessageSize::default());
        };
        let kept = Arc::new(Message::user("kept"));
        put(&mut table, &kept, 0);
        for _ in 0..10 * MIN_SIZES {
            put(&mut table, &Arc::new(Message::user("dropped")), 0);
            assert!(table.sizes.len() <= MIN_SIZES);
        }
        assert!(table.sizes.values().any(|(message, _)| message.strong_count() > 0));
        for counter in 0..2 * MAX_SIZES as u64 {
            put(&mut table, &kept, counter);
            assert!(table.sizes.len() <= MAX_SIZES);
        }
    }
}

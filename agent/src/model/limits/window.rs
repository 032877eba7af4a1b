//! A limit per minute. It has no clock: the time is an argument of its methods.

use std::collections::VecDeque;
use std::time::Duration;

const MINUTE: u64 = 60_000;
/// Length of a time slot, in milliseconds. Amounts are summed by slot, so that a minute needs only about 600 slots of memory.
const SLOT: u64 = 100;

/// The amounts of the last minute. An amount is admitted only if, with this amount, no period of 60 seconds exceeds the limit.
#[derive(Debug)]
pub(super) struct MinuteWindow {
    limit: u64,
    /// The number and the amount of each slot, oldest first. The number is the time divided by [`SLOT`].
    slots: VecDeque<(u64, u64)>,
    sum: u64,
}

impl MinuteWindow {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, slots: VecDeque::new(), sum: 0 }
    }

    /// Returns the time from which this amount is admitted. An amount above the limit is admitted alone.
    pub(super) fn ready_at(&mut self, now: Duration, amount: u64) -> Duration {
        self.expire(now);
        let amount = amount.min(self.limit);
        let mut sum = self.sum;
        let mut ready = Duration::ZERO;
        for (slot, part) in &self.slots {
            if sum.saturating_add(amount) <= self.limit {
                break;
            }
            sum = sum.saturating_sub(*part);
            ready = expires_at(*slot);
        }
        ready
    }

    pub(super) fn add(&mut self, now: Duration, amount: u64) -> u64 {
        let slot = millis(now) / SLOT;
        self.sum = self.sum.saturating_add(amount);
        match self.slots.back_mut() {
            Some((last, sum)) if *last >= slot => {
                *sum = sum.saturating_add(amount);
                *last
            }
            _ => {
                self.slots.push_back((slot, amount));
                slot
            }
        }
    }

    /// Replaces an estimated amount of a time slot by the real amount. If the slot has expired, the surplus of the real amount counts now,
    /// because no slot has counted it.
    pub(super) fn correct(&mut self, now: Duration, slot: u64, from: u64, to: u64) {
        self.expire(now);
        let Some((_, amount)) = self.slots.iter_mut().find(|(known, _)| *known == slot) else {
            self.add(now, to.saturating_sub(from));
            return;
        };
        *amount = amount.saturating_sub(from).saturating_add(to);
        self.sum = self.slots.iter().map(|(_, amount)| *amount).fold(0, u64::saturating_add);
    }

    fn expire(&mut self, now: Duration) {
        while self.slots.front().is_some_and(|(slot, _)| expires_at(*slot) <= now) {
            if let Some((_, amount)) = self.slots.pop_front() {
                self.sum = self.sum.saturating_sub(amount);
            }
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn expires_at(slot: u64) -> Duration {
    Duration::from_millis(slot.saturating_add(1).saturating_mul(SLOT).saturating_add(MINUTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sixty_seconds_have_more_than_the_limit() {
        let (limit, mut random) = (1_000, 7_u64);
        let mut window = MinuteWindow::new(limit);
        let (mut now, mut log) = (Duration::ZERO, Vec::<(Duration, u64)>::new());
        for _ in 0..3_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let amount = random >> 33 & 0xff;
            now = window.ready_at(now, amount).max(now + Duration::from_millis(random >> 50 & 0x1ff));
            assert!(window.ready_at(now, amount) <= now);
            let slot = window.add(now, amount);
            let real = amount * (random >> 40 & 3) / 3;
            window.correct(now, slot, amount, real);
            log.push((now, real));
            let minute =
                log.iter().rev().take_while(|(at, _)| now.saturating_sub(*at) < Duration::from_secs(60));
            assert!(minute.map(|(_, amount)| amount).sum::<u64>() <= limit);
            assert!(window.slots.len() <= 601);
        }
        assert!(
            now < Duration::from_secs(60 * 3_000 * 128 / 1_000 * 2),
            "it admits what the limit allows: {now:?}"
        );
    }

    #[test]
    fn what_a_long_reply_used_beyond_its_estimate_counts_when_it_ends() {
        let mut window = MinuteWindow::new(100);
        let (slot, end) = (window.add(Duration::ZERO, 10), Duration::from_secs(90));
        window.correct(end, slot, 10, 95);
        assert!(window.ready_at(end, 15) <= end);
        assert_eq!(window.ready_at(end, 16), Duration::from_millis(150_100));
    }

    #[test]
    fn an_amount_above_the_limit_is_admitted_alone() {
        let mut window = MinuteWindow::new(10);
        assert_eq!(window.ready_at(Duration::ZERO, 50), Duration::ZERO);
        window.add(Duration::ZERO, 50);
        assert_eq!(window.ready_at(Duration::ZERO, 1), Duration::from_millis(60_100));
        let later = Duration::from_secs(61);
        assert!(window.ready_at(later, 50) <= later);
        window.add(later, 1);
        assert!(window.ready_at(later, 50) > later, "only when nothing else was sent");
    }
}

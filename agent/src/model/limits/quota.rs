//! The remaining amounts of a provider's own limits, as the provider's responses report them. A report can delay requests that the limits
//! of this program admit. A report never admits requests that the limits of this program delay.

#![cfg_attr(not(feature = "http"), allow(dead_code, reason = "only responses over HTTP report a quota"))]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The amounts of a request, in this order: requests (always 1), all tokens, input tokens, reply tokens.
pub(super) type Need = [u64; 4];

/// The remaining amounts that a response reports, in the order of [`Need`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProviderQuota {
    pub(crate) left: [Option<QuotaLeft>; 4],
    /// The pause that the provider asks for before the next request.
    pub(crate) pause: Option<Duration>,
}

/// The remaining amount of one limit, and the time until the limit is completely refilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaLeft {
    pub(crate) limit: Option<u64>,
    pub(crate) left: u64,
    pub(crate) refill: Duration,
}

#[derive(Clone)]
pub(crate) struct QuotaListener(Arc<dyn Fn(ProviderQuota) + Send + Sync>);

impl QuotaListener {
    pub(super) fn new(listener: impl Fn(ProviderQuota) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(crate) fn notify(&self, quota: ProviderQuota) {
        (self.0)(quota);
    }
}

impl fmt::Debug for QuotaListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuotaListener")
    }
}

/// The newest report of each limit, and the requests that have no response yet.
#[derive(Debug, Default)]
pub(super) struct ReportedQuota {
    reports: [Option<QuotaReport>; 4],
    unreported: BTreeMap<u64, Need>,
    /// The end of the longest pause that the provider has asked for.
    paused_until: Duration,
}

#[derive(Clone, Copy, Debug)]
struct QuotaReport {
    request: u64,
    at: Duration,
    quota: QuotaLeft,
    /// The sum of the needs of requests that the provider perhaps had not counted in the report. These are later requests, and requests
    /// without a response when the report arrived.
    taken: u64,
}

impl ReportedQuota {
    pub(super) fn limits_tokens(&self) -> bool {
        self.reports.iter().skip(1).any(Option::is_some)
    }

    /// Returns the time from which a request with this need is admitted, or zero if no report delays it.
    pub(super) fn ready_at(&mut self, now: Duration, need: Need) -> Duration {
        let mut ready = if self.paused_until > now { self.paused_until } else { Duration::ZERO };
        for (slot, need) in self.reports.iter_mut().zip(need) {
            if let Some(report) = slot {
                if report.full_at() <= now {
                    *slot = None;
                } else {
                    ready = ready.max(report.ready_at(need));
                }
            }
        }
        ready
    }

    pub(super) fn take(&mut self, request: u64, need: Need) {
        for (report, need) in self.reports.iter_mut().zip(need) {
            if let Some(report) = report {
                report.taken = report.taken.saturating_add(need);
            }
        }
        self.unreported.insert(request, need);
    }

    /// Records that a request has ended, so that the request is not subtracted from later reports.
    pub(super) fn end(&mut self, request: u64) {
        self.unreported.remove(&request);
    }

    /// Records the quota that a response reports. Requests without a response are subtracted, because the provider may not have counted
    /// them. A late response to an earlier request cannot raise the quota.
    pub(super) fn record(&mut self, now: Duration, request: u64, quota: ProviderQuota) {
        self.unreported.remove(&request);
        let pause = quota.pause.unwrap_or_default();
        self.paused_until = self.paused_until.max(now.saturating_add(pause));
        for (kind, (slot, quota)) in self.reports.iter_mut().zip(quota.left).enumerate() {
            let Some(quota) = quota else { continue };
            let taken = self
                .unreported
                .values()
                .filter_map(|need| need.get(kind))
                .fold(0, |sum: u64, need| sum.saturating_add(*need));
            let report = QuotaReport { request, at: now, quota, taken };
            let is_older = slot.is_some_and(|known| {
                known.request > request && known.full_at() > now && known.left() < report.left()
            });
            if !is_older {
                *slot = Some(report);
            }
        }
    }
}

impl QuotaReport {
    fn left(&self) -> u64 {
        self.quota.left.saturating_sub(self.taken)
    }

    fn full_at(&self) -> Duration {
        self.at.saturating_add(self.quota.refill)
    }

    /// Returns the time at which `need` is available, or zero if it is available now. A limit of reported size is assumed to refill evenly
    /// until `full_at`, and any other limit only at `full_at`.
    fn ready_at(&self, need: u64) -> Duration {
        let missing = need.saturating_add(self.taken).saturating_sub(self.quota.left);
        if missing == 0 {
            return Duration::ZERO;
        }
        let refilled = self.quota.limit.map_or(0, |limit| limit.saturating_sub(self.quota.left));
        if missing >= refilled {
            return self.full_at();
        }
        let refill = self.quota.refill.as_nanos().saturating_mul(missing.into()).div_ceil(refilled.into());
        self.at.saturating_add(Duration::from_nanos(u64::try_from(refill).unwrap_or(u64::MAX)))
    }
}

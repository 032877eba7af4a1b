//! The period in which the amount of a budget may be spent.

/// The period of a [`Budget`](super::Budget). In each period, the whole amount is available again. Days and months are in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum BudgetWindow {
    #[default]
    Run,
    Session,
    Day,
    Month,
    Total,
}

impl BudgetWindow {
    /// Returns the part of a budget's key that names the current window. Returns `None` if the window is a session and the run has no
    /// session.
    pub(super) fn bucket(self, at: i64, run: &str, session: Option<&str>) -> Option<String> {
        let (year, month, day) = date(at);
        Some(match self {
            Self::Run => format!("run {run}"),
            Self::Session => format!("session {}", session?),
            Self::Day => format!("{year:04}-{month:02}-{day:02}"),
            Self::Month => format!("{year:04}-{month:02}"),
            Self::Total => "total".to_owned(),
        })
    }
}

/// Returns the year, month and day, in UTC, of a time in milliseconds since 1970.
///
/// Source: the algorithm `civil_from_days` of <https://howardhinnant.github.io/date_algorithms.html>.
fn date(at: i64) -> (i64, i64, i64) {
    let days = at.div_euclid(86_400_000) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_months_are_those_of_utc() {
        for (at, expected) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (951_782_399_999, (2000, 2, 28)),
            (951_782_400_000, (2000, 2, 29)),
            (951_868_800_000, (2000, 3, 1)),
            (1_772_323_199_999, (2026, 2, 28)),
            (1_772_323_200_000, (2026, 3, 1)),
            (4_107_542_400_000, (2100, 3, 1)),
        ] {
            assert_eq!(date(at), expected, "{at}");
        }
        let bucket = |window: BudgetWindow, session| window.bucket(951_782_400_000, "r", session);
        assert_eq!(bucket(BudgetWindow::Day, None).as_deref(), Some("2000-02-29"));
        assert_eq!(bucket(BudgetWindow::Month, None).as_deref(), Some("2000-02"));
        assert_eq!(bucket(BudgetWindow::Session, Some("s")).as_deref(), Some("session s"));
        assert_eq!(bucket(BudgetWindow::Session, None), None);
        assert_eq!(bucket(BudgetWindow::Total, None), bucket(BudgetWindow::Total, Some("s")));
    }
}

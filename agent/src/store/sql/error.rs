//! Maps database errors to store errors.

use std::error::Error;
use std::fmt;
use std::io;

use crate::store::{StoreError, StoreErrorKind};

/// The message of a database error. The details of the error are left out, because they may quote the statement and its values.
#[derive(Debug)]
struct DatabaseMessage(String);

impl fmt::Display for DatabaseMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for DatabaseMessage {}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn from_sqlx(error: sqlx::Error) -> StoreError {
    use StoreErrorKind as Kind;
    let (kind, message) = match &error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            let kind = kind_of_code(&code, database.message());
            (kind, format!("{} (code {code})", database.message()))
        }
        sqlx::Error::Io(error) => (kind_of_io(error), format!("the connection failed: {}", error.kind())),
        sqlx::Error::Tls(_) => (Kind::Unavailable, "no secure connection could be made".to_owned()),
        sqlx::Error::PoolTimedOut => (Kind::Busy, "no connection became free in time".to_owned()),
        sqlx::Error::PoolClosed => (Kind::Unavailable, "the store was closed".to_owned()),
        sqlx::Error::WorkerCrashed => (Kind::Unavailable, "the database's thread has ended".to_owned()),
        sqlx::Error::BeginFailed => (Kind::Unavailable, "no transaction could be begun".to_owned()),
        sqlx::Error::Protocol(_) => (Kind::Unavailable, "the database violates its protocol".to_owned()),
        sqlx::Error::RowNotFound => (Kind::Corrupt, "a row is missing".to_owned()),
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::AnyDriverError(_) => {
            (Kind::Corrupt, "a row does not have the form that this version knows".to_owned())
        }
        // The text of the error is left out, because it may quote the address with its password.
        sqlx::Error::Configuration(_) => (Kind::Other, "the address of the database is wrong".to_owned()),
        _ => (Kind::Other, "the database's client failed".to_owned()),
    };
    StoreError::new(kind, message.clone()).with_source(DatabaseMessage(message))
}

pub(super) fn from_io(what: &str, error: io::Error) -> StoreError {
    StoreError::new(kind_of_io(&error), what).with_source(error)
}

fn kind_of_io(error: &io::Error) -> StoreErrorKind {
    match error.kind() {
        io::ErrorKind::TimedOut => StoreErrorKind::Timeout,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
        io::ErrorKind::ReadOnlyFilesystem => StoreErrorKind::ReadOnly,
        _ => StoreErrorKind::Unavailable,
    }
}

/// Returns the kind of an error by its code. SQLite codes are numbers, and extended codes have the primary code in their low byte:
/// <https://www.sqlite.org/rescode.html>. Postgres codes have five characters, of which the first two are the class:
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn kind_of_code(code: &str, message: &str) -> StoreErrorKind {
    use StoreErrorKind as Kind;
    if code.len() == 5 {
        return match (code, code.get(..2).unwrap_or_default()) {
            ("25006", _) => Kind::ReadOnly,
            ("53100" | "53200", _) => Kind::Full,
            ("57014", _) => Kind::Timeout,
            ("55P03" | "53300" | "40P01" | "40001" | "57P03", _) => Kind::Busy,
            ("57P01" | "57P02" | "57P04", _) | (_, "08" | "28" | "3D") => Kind::Unavailable,
            ("XX001" | "XX002", _) | (_, "42") => Kind::Corrupt,
            _ => Kind::Other,
        };
    }
    match code.parse::<u32>().map(|code| code & 0xff) {
        Ok(5 | 6) => Kind::Busy,
        Ok(8) => Kind::ReadOnly,
        Ok(13) => Kind::Full,
        Ok(11 | 26) => Kind::Corrupt,
        Ok(3 | 10 | 14) => Kind::Unavailable,
        // SQLite reports a missing table with this general code.
        Ok(1) if message.starts_with("no such") => Kind::Corrupt,
        _ => Kind::Other,
    }
}

pub(super) fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Creates the error for stored JSON that this version cannot read. The serde error quotes values, so only its position is reported.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(super) fn corrupt_json(what: &str, error: serde_json::Error) -> StoreError {
    let position = format!("{:?} error at line {} column {}", error.classify(), error.line(), error.column());
    StoreError::corrupt(what, DatabaseMessage(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_have_their_kind() {
        use StoreErrorKind as Kind;
        for (code, kind) in [
            ("5", Kind::Busy),
            ("261", Kind::Busy),
            ("8", Kind::ReadOnly),
            ("1032", Kind::ReadOnly),
            ("13", Kind::Full),
            ("26", Kind::Corrupt),
            ("14", Kind::Unavailable),
            ("2067", Kind::Other),
            ("25006", Kind::ReadOnly),
            ("53100", Kind::Full),
            ("57014", Kind::Timeout),
            ("55P03", Kind::Busy),
            ("57P01", Kind::Unavailable),
            ("08006", Kind::Unavailable),
            ("42P01", Kind::Corrupt),
            ("23505", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(kind_of_code(code, ""), kind, "{code}");
        }
    }

    #[test]
    fn an_address_is_in_no_error() {
        let error = from_sqlx(sqlx::Error::Configuration("postgres://ann:hunter2@db".into()));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}

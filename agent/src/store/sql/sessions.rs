//! Sessions and their queued messages, in a database.

use sqlx::Row as _;

use super::text::{decode, encode};
use super::{SqlStore, error, from_sql, to_limit, to_sql};
use crate::message::UserMessage;
use crate::step_key::StepKey;
use crate::store::memory::{MAX_INBOX, full_inbox, missing_id};
use crate::store::record::MAX_PAGE;
use crate::store::session::began;
use crate::store::{SessionEntry, SessionSummary, StoreError, StoreErrorKind};

/// Inserts an entry, if the last entry of the session still has the number that the writer expects.
const APPEND: &str =
    "insert into agent_session_entry (session_id, seq, entry, written_at) select $1, $2, $3, $4
    where (select coalesce(max(seq), 0) from agent_session_entry where session_id = $1) = $5";

const APPEND_MORE: &str =
    "insert into agent_session_entry (session_id, seq, entry, written_at) values ($1, $2, $3, $4)";

const PUSH: &str = "insert into agent_steering (session_id, seq, message_id, message, taken_by)
    select $1, (select coalesce(max(seq), 0) + 1 from agent_steering where session_id = $1), $2, $3, ''
    where (select count(*) from agent_steering where session_id = $1 and taken_by = '') < $4
    on conflict do nothing";

const COUNTS: &str = "select (select count(*) from agent_steering where session_id = $1 and message_id = $2),
    (select count(*) from agent_steering where session_id = $1 and taken_by = '')";

const TAKE: &str =
    "update agent_steering set taken_by = $1 where session_id = $2 and taken_by = '' and seq in
    (select seq from agent_steering where session_id = $2 and taken_by = '' order by seq limit $3)";

const FIRST_WAITING: &str = "select seq from agent_steering where session_id = $1 and taken_by = '' limit 1";

/// Selects the last entry of each session, the latest first. The database reads the index on `written_at` until the page is full. `NAME`
/// is a placeholder for `session_id`, on Postgres with the collation in which `lower` changes only ASCII letters.
const LIST: &str = "select session_id, seq, written_at from agent_session_entry entries
    where ($1 = 0 or written_at < $2 or (written_at = $2 and session_id > $3))
    and lower(NAME) like $4 escape '\\' and not exists (select 1 from agent_session_entry later
    where later.session_id = entries.session_id and later.seq > entries.seq)
    order by written_at desc, session_id limit $5";

fn containing_pattern(text: &str) -> String {
    let escaped = encode(text).replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%").to_ascii_lowercase()
}

/// Maximum number of attempts to add a message to an inbox, or to take messages from it, while other callers use the same inbox.
const MAX_ATTEMPTS: usize = 20;

/// Marks at most `limit` messages of a session's inbox as taken. Tries again if another caller takes some of them at the same time.
async fn mark_taken(
    connection: &mut sqlx::AnyConnection,
    session: &str,
    key: &str,
    limit: usize,
) -> Result<(), sqlx::Error> {
    let mut room = from_sql(to_limit(limit));
    for _ in 0..MAX_ATTEMPTS {
        let waiting =
            sqlx::query(FIRST_WAITING).bind(encode(session)).fetch_optional(&mut *connection).await?;
        if room == 0 || waiting.is_none() {
            break;
        }
        let taken = sqlx::query(TAKE)
            .bind(encode(key))
            .bind(encode(session))
            .bind(to_sql(room))
            .execute(&mut *connection)
            .await?;
        room = room.saturating_sub(taken.rows_affected());
    }
    Ok(())
}

impl SqlStore {
    pub(super) async fn do_append(
        &self,
        session: &str,
        expected: u64,
        entries: Vec<SessionEntry>,
    ) -> Result<u64, StoreError> {
        // No session has so many entries, and the numbers of the new ones would overflow.
        if expected > u64::MAX / 4 {
            return Err(StoreError::conflict(session, expected));
        }
        let write = |entry: &SessionEntry| {
            let text = serde_json::to_string(entry)
                .map_err(|error| error::corrupt_json("an entry that is not JSON", error))?;
            Ok((text, entry.at))
        };
        let texts = entries.iter().map(write).collect::<Result<Vec<_>, StoreError>>()?;
        let numbered: Vec<_> = (to_sql(expected) + 1..).zip(texts).collect();
        let last = numbered.last().map_or(expected, |(seq, _)| from_sql(*seq));
        let result = |done: Result<bool, sqlx::Error>| match done {
            Ok(true) => Ok(last),
            Ok(false) => Err(StoreError::conflict(session, expected)),
            Err(error) if error::is_unique_violation(&error) => Err(StoreError::conflict(session, expected)),
            Err(error) => Err(error::from_sqlx(error)),
        };
        match &numbered[..] {
            [] => {
                let found = sqlx::query(
                    "select coalesce(max(seq), 0) from agent_session_entry where session_id = $1",
                )
                .bind(encode(session))
                .fetch_one(&self.pool)
                .await;
                result(found.and_then(|row| row.try_get::<i64, _>(0)).map(|last| last == to_sql(expected)))
            }
            [(seq, (text, at))] => {
                let append = sqlx::query(APPEND)
                    .bind(encode(session))
                    .bind(*seq)
                    .bind(text.as_str())
                    .bind(*at)
                    .bind(to_sql(expected));
                result(append.execute(&self.pool).await.map(|done| done.rows_affected() == 1))
            }
            [(seq, (text, at)), more @ ..] => {
                let mut transaction = self.begin_transaction().await?;
                let append = sqlx::query(APPEND)
                    .bind(encode(session))
                    .bind(*seq)
                    .bind(text.as_str())
                    .bind(*at)
                    .bind(to_sql(expected));
                result(append.execute(&mut *transaction).await.map(|done| done.rows_affected() == 1))?;
                for (seq, (text, at)) in more {
                    let append = sqlx::query(APPEND_MORE)
                        .bind(encode(session))
                        .bind(*seq)
                        .bind(text.as_str())
                        .bind(*at);
                    result(append.execute(&mut *transaction).await.map(|_| true))?;
                }
                result(transaction.commit().await.map(|()| true))
            }
        }
    }

    pub(super) async fn do_load(
        &self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, SessionEntry)>, StoreError> {
        let rows = sqlx::query(
            "select seq, entry from agent_session_entry where session_id = $1 and seq > $2 order by seq limit $3",
        )
        .bind(encode(session))
        .bind(to_sql(after))
        .bind(to_limit(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(error::from_sqlx)?;
        let read = |row: &sqlx::any::AnyRow| {
            let seq = row.try_get::<i64, _>(0).map_err(error::from_sqlx)?;
            let text = row.try_get::<String, _>(1).map_err(error::from_sqlx)?;
            let entry = serde_json::from_str(&text)
                .map_err(|error| error::corrupt_json(&format!("entry {seq} of a session"), error))?;
            Ok((from_sql(seq), entry))
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn do_list_sessions(
        &self,
        containing: &str,
        after: Option<&SessionSummary>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let name = if self.is_postgres { "session_id collate \"C\"" } else { "session_id" };
        // The statement is safe, because it consists only of constants of this file.
        let rows = sqlx::query(sqlx::AssertSqlSafe(LIST.replace("NAME", name)))
            .bind(i64::from(after.is_some()))
            .bind(after.map_or(0, |after| after.at))
            .bind(encode(after.map_or("", |after| &after.session)))
            .bind(containing_pattern(containing))
            .bind(to_limit(limit.min(MAX_PAGE)))
            .fetch_all(&self.pool)
            .await
            .map_err(error::from_sqlx)?;
        let read = |row: &sqlx::any::AnyRow| {
            let name = decode(row.try_get::<String, _>(0).map_err(error::from_sqlx)?);
            let last = row.try_get::<i64, _>(1).map_err(error::from_sqlx)?;
            let at = row.try_get::<i64, _>(2).map_err(error::from_sqlx)?;
            Ok(SessionSummary::new(name, from_sql(last), at))
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn do_push(&self, session: &str, message: UserMessage) -> Result<bool, StoreError> {
        let Some(id) = &message.id else { return Err(missing_id()) };
        let text = serde_json::to_string(&message)
            .map_err(|error| error::corrupt_json("a message that is not JSON", error))?;
        for _ in 0..MAX_ATTEMPTS {
            let done = sqlx::query(PUSH)
                .bind(encode(session))
                .bind(encode(id))
                .bind(&*text)
                .bind(to_limit(MAX_INBOX))
                .execute(&self.pool)
                .await
                .map_err(error::from_sqlx)?;
            if done.rows_affected() == 1 {
                return Ok(true);
            }
            let counts = sqlx::query(COUNTS)
                .bind(encode(session))
                .bind(encode(id))
                .fetch_one(&self.pool)
                .await
                .map_err(error::from_sqlx)?;
            if counts.try_get::<i64, _>(0).map_err(error::from_sqlx)? > 0 {
                return Ok(false);
            }
            if counts.try_get::<i64, _>(1).map_err(error::from_sqlx)? >= to_limit(MAX_INBOX) {
                return Err(full_inbox());
            }
        }
        Err(StoreError::new(StoreErrorKind::Busy, "others add messages to the inbox at the same time"))
    }

    pub(super) async fn do_take(
        &self,
        session: &str,
        key: &StepKey,
        limit: usize,
    ) -> Result<Vec<UserMessage>, StoreError> {
        let key = key.to_string();
        let mut transaction = self.begin_transaction().await?;
        let is_new = sqlx::query(
            "insert into agent_steering_taken (session_id, taken_by) values ($1, $2) on conflict do nothing",
        )
        .bind(encode(session))
        .bind(encode(&key))
        .execute(&mut *transaction)
        .await
        .map_err(error::from_sqlx)?;
        if is_new.rows_affected() == 1 {
            mark_taken(&mut transaction, session, &key, limit).await.map_err(error::from_sqlx)?;
        }
        let rows = sqlx::query(
            "select message from agent_steering where session_id = $1 and taken_by = $2 order by seq",
        )
        .bind(encode(session))
        .bind(encode(&key))
        .fetch_all(&mut *transaction)
        .await
        .map_err(error::from_sqlx)?;
        transaction.commit().await.map_err(error::from_sqlx)?;
        let read = |row: &sqlx::any::AnyRow| {
            let text = row.try_get::<String, _>(0).map_err(error::from_sqlx)?;
            serde_json::from_str(&text).map_err(|error| error::corrupt_json("a message of an inbox", error))
        };
        rows.iter().map(read).collect()
    }

    pub(super) async fn do_delete(&self, session: &str) -> Result<u64, StoreError> {
        let mut transaction = self.begin_transaction().await?;
        let rows = sqlx::query(
            "select entry from agent_session_entry where session_id = $1 and entry like '%\"run_begin\"%'",
        )
        .bind(encode(session))
        .fetch_all(&mut *transaction)
        .await
        .map_err(error::from_sqlx)?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            let entry: String = row.try_get(0).map_err(error::from_sqlx)?;
            entries.extend(serde_json::from_str::<SessionEntry>(&entry));
        }
        let mut deleted = delete_where(&mut transaction, "session_id = $1", &encode(session)).await?;
        for run in began(&entries) {
            // The prefix of the name is compared, because a range of names would depend on the collation.
            let is_within = "substr(session_id, 1, length($1)) = $1";
            deleted += delete_where(&mut transaction, is_within, &encode(&format!("{run}/"))).await?;
        }
        transaction.commit().await.map_err(error::from_sqlx)?;
        Ok(deleted)
    }
}

/// Deletes sessions and their inboxes. Returns the number of deleted session entries.
async fn delete_where(
    connection: &mut sqlx::AnyConnection,
    condition: &'static str,
    name: &str,
) -> Result<u64, StoreError> {
    let mut deleted = 0;
    for table in ["agent_steering", "agent_steering_taken", "agent_session_entry"] {
        // The statement is safe, because it consists only of constants of this file.
        let statement = sqlx::AssertSqlSafe(format!("delete from {table} where {condition}"));
        let done = sqlx::query(statement).bind(name.to_owned()).execute(&mut *connection).await;
        deleted = done.map_err(error::from_sqlx)?.rows_affected();
    }
    Ok(deleted)
}

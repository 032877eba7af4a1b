//! Records of calls in a database.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::text::{decode, decode_optional, encode, encode_optional};
use super::{SqlStore, error, to_limit};
use crate::step_key::StepKey;
use crate::store::record::MAX_PAGE;
use crate::store::{
    InvocationEnd, InvocationQuery, InvocationRecord, InvocationStatus, StoreError, StoreErrorKind,
};
use crate::tool::outcome::ToolOutcome;
use crate::tool::output::Control;

#[derive(Serialize, Deserialize)]
struct StoredEnd {
    outcome: ToolOutcome,
    #[serde(default)]
    control: Control,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select id, status, attempt, handle, call, outcome, created_at, ended_at from agent_invocation ",
            $rest
        )
    };
}

const INSERT: &str = "insert into agent_invocation
    (id, run_id, turn, ord, session_id, tool, status, attempt, handle, call, outcome, created_at, ended_at)
    values ($1, $2, $3, $4, $5, $6, 'pending', 1, '', $7, '', $8, 0) on conflict (id) do nothing";

const LIST: &str = select!(
    "where ($1 = 0 or run_id = $2) and ($3 = 0 or session_id = $4) and ($5 = 0 or tool = $6)
    and ($7 = 0 or status = $8) and created_at >= $9 and created_at < $10
    and (created_at > $11 or (created_at = $11 and (turn > $12 or (turn = $12 and (ord > $13 or (ord = $13 and id > $14))))))
    order by created_at, turn, ord, id limit $15"
);

const PENDING: &str = select!(
    "where status = 'pending' and handle = '' and created_at < $1 order by created_at, turn, ord, id limit $2"
);

/// The fields of a record that the column `call` does not contain. They are stored in the other columns.
const COLUMNS: [&str; 6] = ["key", "created_at", "status", "attempt", "handle", "end"];

fn call_text(record: &InvocationRecord) -> Result<String, StoreError> {
    let not_json = |error| error::corrupt_json("a value that is not JSON", error);
    let mut call = serde_json::to_value(record).map_err(not_json)?;
    if let Some(call) = call.as_object_mut() {
        for column in COLUMNS {
            call.shift_remove(column);
        }
    }
    to_json(&call)
}

fn read_record(row: &AnyRow) -> Result<InvocationRecord, StoreError> {
    let column = |at: usize| row.try_get::<String, _>(at).map_err(error::from_sqlx);
    let number = |at: usize| row.try_get::<i64, _>(at).map_err(error::from_sqlx);
    let (id, status, outcome) = (decode(column(0)?), column(1)?, column(5)?);
    let key: StepKey = id.parse().map_err(|error| StoreError::corrupt("the key of a record", error))?;
    let Some(status) = InvocationStatus::parse(&status) else {
        return Err(StoreError::new(StoreErrorKind::Corrupt, "a record has an unknown status"));
    };
    let unreadable = |error| error::corrupt_json("the record of a call", error);
    let mut call: Map<String, Value> = serde_json::from_str(&column(4)?).map_err(unreadable)?;
    for column in COLUMNS {
        call.shift_remove(column);
    }
    call.insert("key".to_owned(), key.to_string().into());
    call.insert("status".to_owned(), status.as_str().into());
    let mut record = InvocationRecord::deserialize(Value::Object(call)).map_err(unreadable)?;
    record.created_at = number(6)?;
    record.attempt = u32::try_from(number(2)?).unwrap_or(u32::MAX);
    record.handle = decode_optional(column(3)?);
    if status != InvocationStatus::Pending {
        let end: StoredEnd = serde_json::from_str(&outcome)
            .map_err(|error| error::corrupt_json("the end of a call", error))?;
        let mut read = InvocationEnd::new(end.outcome, number(7)?);
        read.control = end.control;
        record.end = Some(read);
    }
    Ok(record)
}

fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| error::corrupt_json("a value that is not JSON", error))
}

async fn fetch_record(
    connection: &mut sqlx::AnyConnection,
    id: &str,
) -> Result<Option<InvocationRecord>, StoreError> {
    let row = sqlx::query(select!("where id = $1")).bind(encode(id)).fetch_optional(connection).await;
    row.map_err(error::from_sqlx)?.as_ref().map(read_record).transpose()
}

impl SqlStore {
    async fn insert(&self, new: &InvocationRecord, id: &str) -> Result<bool, StoreError> {
        let (key, call) = (&new.key, call_text(new)?);
        let done = sqlx::query(INSERT)
            .bind(encode(id))
            .bind(encode(&key.run))
            .bind(i64::from(key.turn))
            .bind(i64::from(key.ord))
            .bind(encode_optional(new.session.as_deref()))
            .bind(encode(&new.tool))
            .bind(call)
            .bind(new.created_at)
            .execute(&self.pool)
            .await;
        done.map(|done| done.rows_affected() == 1).map_err(error::from_sqlx)
    }

    pub(super) async fn do_begin(
        &self,
        new: InvocationRecord,
    ) -> Result<Option<InvocationRecord>, StoreError> {
        let id = new.key.to_string();
        if self.insert(&new, &id).await? {
            return Ok(None);
        }
        // The record is updated and read in one transaction, so that two callers that begin at the same time count as two attempts.
        let mut transaction = self.begin_transaction().await?;
        // Several callers may try to continue the record. Only the caller whose update removes the handle continues it.
        let waiting = fetch_record(&mut transaction, &id).await?.filter(InvocationRecord::continues);
        let continued = match waiting {
            None => None,
            Some(record) => {
                let removed = sqlx::query(
                    "update agent_invocation set handle = $1 where id = $2 and status = 'pending' and handle = $3",
                )
                .bind(encode_optional(None))
                .bind(encode(&id))
                .bind(encode_optional(record.handle.as_deref()))
                .execute(&mut *transaction)
                .await
                .map_err(error::from_sqlx)?;
                (removed.rows_affected() == 1).then_some(record)
            }
        };
        let found = if continued.is_some() {
            continued
        } else {
            sqlx::query(
                "update agent_invocation set attempt = attempt + 1 where id = $1 and status = 'pending'",
            )
            .bind(encode(&id))
            .execute(&mut *transaction)
            .await
            .map_err(error::from_sqlx)?;
            fetch_record(&mut transaction, &id).await?
        };
        transaction.commit().await.map_err(error::from_sqlx)?;
        if found.is_none() {
            let text = "the record was deleted while it was begun";
            return Err(StoreError::new(StoreErrorKind::Conflict, text));
        }
        Ok(found)
    }

    pub(super) async fn do_finish(&self, key: &StepKey, end: InvocationEnd) -> Result<bool, StoreError> {
        let (status, at) = (end.status().as_str(), end.at);
        let stored = to_json(&StoredEnd { outcome: end.outcome, control: end.control, extra: Map::new() })?;
        let done = sqlx::query(
            "update agent_invocation set status = $1, outcome = $2, ended_at = $3 where id = $4 and status = 'pending'",
        )
        .bind(status)
        .bind(stored)
        .bind(at)
        .bind(encode(&key.to_string()))
        .execute(&self.pool)
        .await;
        done.map(|done| done.rows_affected() == 1).map_err(error::from_sqlx)
    }

    pub(super) async fn do_list(&self, query: InvocationQuery) -> Result<Vec<InvocationRecord>, StoreError> {
        let (at, turn, ord, id) = match query.position() {
            Some(after) => (after.created_at, i64::from(after.turn), i64::from(after.ord), after.id),
            None => (i64::MIN, -1, -1, String::new()),
        };
        let rows = sqlx::query(LIST)
            .bind(i64::from(query.run.is_some()))
            .bind(encode(query.run.as_deref().unwrap_or_default()))
            .bind(i64::from(query.session.is_some()))
            .bind(encode_optional(query.session.as_deref()))
            .bind(i64::from(query.tool.is_some()))
            .bind(encode(query.tool.as_deref().unwrap_or_default()))
            .bind(i64::from(query.status.is_some()))
            .bind(query.status.map_or("", InvocationStatus::as_str))
            .bind(query.from.unwrap_or(i64::MIN))
            .bind(query.until.unwrap_or(i64::MAX))
            .bind(at)
            .bind(turn)
            .bind(ord)
            .bind(encode(&id))
            .bind(to_limit(query.page_size()))
            .fetch_all(&self.pool)
            .await
            .map_err(error::from_sqlx)?;
        rows.iter().map(read_record).collect()
    }

    pub(super) async fn do_defer(&self, key: &StepKey, handle: &str) -> Result<bool, StoreError> {
        let done =
            sqlx::query("update agent_invocation set handle = $1 where id = $2 and status = 'pending'")
                .bind(encode_optional(Some(handle)))
                .bind(encode(&key.to_string()))
                .execute(&self.pool)
                .await;
        done.map(|done| done.rows_affected() == 1).map_err(error::from_sqlx)
    }

    pub(super) async fn do_get(&self, key: &StepKey) -> Result<Option<InvocationRecord>, StoreError> {
        fetch_record(&mut *self.connection().await?, &key.to_string()).await
    }

    pub(super) async fn do_pending(
        &self,
        at: i64,
        limit: usize,
    ) -> Result<Vec<InvocationRecord>, StoreError> {
        let limit = to_limit(limit.min(MAX_PAGE));
        let rows = sqlx::query(PENDING).bind(at).bind(limit).fetch_all(&self.pool).await;
        rows.map_err(error::from_sqlx)?.iter().map(read_record).collect()
    }

    pub(super) async fn do_delete_finished(&self, at: i64) -> Result<u64, StoreError> {
        let done = sqlx::query("delete from agent_invocation where status <> 'pending' and ended_at < $1")
            .bind(at)
            .execute(&self.pool)
            .await;
        done.map(|done| done.rows_affected()).map_err(error::from_sqlx)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_column_of_a_call_has_what_other_columns_have_not() {
        let key = StepKey::new("run", 1, crate::step_key::StepKind::Tool, 0);
        let mut record = InvocationRecord::new(key, "c1", "add", json!({"a": 1})).at(5);
        (record.fingerprint, record.text) = (7, "I add.".to_owned());
        record.handle = Some("job".to_owned());
        record.extra.insert("later".to_owned(), 2.into());
        record.end = Some(InvocationEnd::new(ToolOutcome::lost(), 9));
        let text = call_text(&record).unwrap();
        assert_eq!(
            text,
            r#"{"call_id":"c1","tool":"add","fingerprint":"7","args":{"a":1},"text":"I add.","later":2}"#
        );
    }
}

//! The tools that the slips call. Each returns its arguments as it received them.

#![expect(clippy::too_many_arguments, reason = "a parameter for each kind of value")]

use agent::args::HumanDuration;
use agent::{Json, ToolArgs, ToolSet, Value, tool, tools};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use url::Url;
use uuid::Uuid;

#[derive(ToolArgs, Serialize)]
struct Guest {
    name: String,
    age: Option<u8>,
    address: Option<Address>,
}

#[derive(ToolArgs, Serialize)]
struct Address {
    street: String,
    city: String,
}

#[derive(ToolArgs, Serialize)]
struct Contact {
    #[arg(format = "email")]
    email: String,
    phone: Option<String>,
}

#[derive(ToolArgs, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Payment {
    Card { number: String, holder: Option<String> },
    Invoice { days: u8 },
    Voucher { code: String },
}

#[derive(ToolArgs, Serialize)]
#[serde(rename_all = "snake_case")]
enum RoomClass {
    Single,
    Double,
    JuniorSuite,
}

/// Books a room.
#[tool]
fn book_room(
    hotel: String,
    #[arg(range(1..=30))] nights: u32,
    check_in: Option<NaiveDate>,
    guests: Option<Vec<Guest>>,
    payment: Option<Payment>,
    contact: Option<Contact>,
    wishes: Option<Vec<String>>,
    max_price: Option<f64>,
    breakfast: Option<bool>,
    room_class: Option<RoomClass>,
) -> Json<Value> {
    Json(json!({
        "hotel": hotel, "nights": nights, "check_in": check_in, "guests": guests, "payment": payment,
        "contact": contact, "wishes": wishes, "max_price": max_price, "breakfast": breakfast,
        "room_class": room_class,
    }))
}

#[derive(ToolArgs, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Open,
    InProgress,
    Done,
    Cancelled,
}

/// Searches the notes.
#[tool]
fn search_notes(
    query: String,
    #[arg(range(1..=50), default = 10)] max_results: u32,
    offset: Option<u64>,
    tags: Option<Vec<String>>,
    status: Option<Status>,
    since: Option<NaiveDate>,
    archived: Option<bool>,
    min_score: Option<f64>,
    author: Option<Uuid>,
) -> Json<Value> {
    Json(json!({
        "query": query, "max_results": max_results, "offset": offset, "tags": tags, "status": status,
        "since": since, "archived": archived, "min_score": min_score, "author": author,
    }))
}

#[derive(ToolArgs, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Repeat {
    Every { minutes: u32 },
    Cron { expr: String },
    Once,
}

/// Adds an event to a calendar.
#[tool]
fn schedule(
    title: String,
    at: DateTime<Utc>,
    day: Option<NaiveDate>,
    remind: Option<NaiveTime>,
    lasts: Option<HumanDuration>,
    server: Option<SocketAddr>,
    calendar: Option<Uuid>,
    price: Option<Decimal>,
    link: Option<Url>,
    seats: Option<BTreeMap<u32, String>>,
    repeat: Option<Repeat>,
) -> Json<Value> {
    Json(json!({
        "title": title, "at": at, "day": day, "remind": remind, "lasts": lasts, "server": server,
        "calendar": calendar, "price": price, "link": link, "seats": seats, "repeat": repeat,
    }))
}

#[derive(ToolArgs, Serialize)]
struct Edit {
    old_text: String,
    new_text: String,
    replace_all: Option<bool>,
}

/// Edits a file.
#[tool]
fn edit_file(
    file_path: String,
    edits: Vec<Edit>,
    start_line: Option<u32>,
    dry_run: Option<bool>,
) -> Json<Value> {
    Json(json!({"file_path": file_path, "edits": edits, "start_line": start_line, "dry_run": dry_run}))
}

#[derive(ToolArgs, Serialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Click { index: u32 },
    Scroll { down: bool, pages: f64 },
    InputText { index: u32, text: String },
    GoBack,
}

#[derive(ToolArgs, Serialize)]
#[serde(untagged)]
enum Target {
    Index(u32),
    Path(Vec<String>),
    Element { role: String, name: Option<String> },
}

/// Acts on a page.
#[tool]
fn act(action: Action, target: Option<Target>) -> Json<Value> {
    Json(json!({"action": action, "target": target}))
}

#[derive(ToolArgs, Serialize)]
struct Row {
    id: u32,
    name: String,
    score: Option<f64>,
}

#[derive(ToolArgs, Serialize)]
#[serde(tag = "op", content = "args", rename_all = "snake_case")]
enum Filter {
    Equals { field: String, value: String },
    OneOf { field: String, values: Vec<String> },
}

/// Writes rows to a table.
#[tool]
fn write_rows(
    table: String,
    rows: Vec<Row>,
    filter: Option<Filter>,
    labels: Option<BTreeMap<String, String>>,
) -> Json<Value> {
    Json(json!({"table": table, "rows": rows, "filter": filter, "labels": labels}))
}

/// Runs a command.
#[tool]
fn run_command(
    command: String,
    cwd: Option<String>,
    timeout: Option<HumanDuration>,
    background: Option<bool>,
    env: Option<BTreeMap<String, String>>,
) -> Json<Value> {
    Json(json!({
        "command": command, "cwd": cwd, "timeout": timeout, "background": background, "env": env,
    }))
}

/// Lists all users.
#[tool]
fn list_users() -> &'static str {
    "{}"
}

pub(super) fn all() -> ToolSet {
    tools![book_room, search_notes, schedule, edit_file, act, write_rows, run_command, list_users]
}

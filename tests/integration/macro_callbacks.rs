//! The options of `#[tool]` that take a function: `prepare`, `parameters_for`, `examples_for`, `format_result`, `triggers_follow_up`.

#![expect(clippy::unnecessary_wraps, reason = "tools as people write them")]

use crate::macro_support::{failure, text};
use agent::message::{OutcomeKind, Part, ToolArguments, ToolCall, ToolResultMessage};
use agent::model::reply;
use agent::tool::ArgumentMap;
use agent::{
    Assistant, Parameters, Registry, RunTool, ScriptedModel, ToolContext, ToolError, ToolSet, Value, json,
    tool, tool::Source, tools,
};

struct Admin;
struct Language(&'static str);

/// An older prompt calls the table `table_name`.
fn old_names(arguments: &mut ArgumentMap) -> Result<(), ToolError> {
    assert!(!arguments.contains_key("panic"), "a test of panics");
    if arguments.contains_key("tables") {
        return Err(ToolError::new("one table for each call"));
    }
    if let Some(table) = arguments.remove("table_name") {
        arguments.insert("table".into(), table);
    }
    Ok(())
}

/// Exports a table.
#[tool(prepare = old_names)]
fn export(table: String, rows: u8) -> String {
    format!("{rows} of {table}")
}

#[tokio::test]
async fn prepare_changes_arguments_before_they_are_checked() {
    let got = text(tools![export], "export", r#"{"table_name": "orders", "rows": "3"}"#).await;
    assert_eq!(got, "3 of orders");
    assert_eq!(text(tools![export], "export", r#"{"table": "orders", "rows": 3}"#).await, "3 of orders");
    let (code, words) = failure(tools![export], "export", r#"{"table_name": "orders", "rows": 300}"#).await;
    assert!(code == "invalid_arguments" && words.contains("rows"), "{code}: {words}");
}

#[tokio::test]
async fn an_error_or_panic_of_prepare_ends_the_call() {
    let (code, words) = failure(tools![export], "export", r#"{"tables": [], "rows": 3}"#).await;
    assert_eq!((&*code, &*words), ("prepare_error", "one table for each call"));
    let (code, words) = failure(tools![export], "export", r#"{"panic": 1}"#).await;
    assert_eq!((&*code, &*words), ("prepare_error", "The tool could not prepare the arguments."));
}

/// A counter with tools.
struct Counter {
    start: u64,
}

#[tool]
impl Counter {
    const OLD: &str = "by";

    fn renamed(arguments: &mut ArgumentMap) -> Result<(), ToolError> {
        if let Some(step) = arguments.remove(Self::OLD) {
            arguments.insert("step".into(), step);
        }
        Ok(())
    }

    /// Adds.
    #[tool(prepare = Self::renamed)]
    fn add(&self, step: u64) -> u64 {
        self.start + step
    }

    /// Subtracts.
    #[tool(prepare = |arguments| Self::renamed(arguments))]
    fn subtract(&self, step: u64) -> u64 {
        self.start - step
    }
}

#[tokio::test]
async fn methods_name_functions_and_write_closures_of_their_block() {
    let counter = || tools![Counter { start: 10 }];
    assert_eq!(text(counter(), "add", r#"{"by": 4}"#).await, "14");
    assert_eq!(text(counter(), "subtract", r#"{"by": 4}"#).await, "6");
}

/// Opens or closes the account of a user.
#[tool(prepare = Self::renamed, triggers_follow_up = |_, result| result.is_error)]
enum Account {
    /// Opens it.
    Open {
        /// Of whom.
        user: String,
    },
    /// Closes it.
    Close {
        /// Of whom.
        user: String,
    },
}

impl Account {
    fn renamed(arguments: &mut ArgumentMap) -> Result<(), ToolError> {
        if let Some(name) = arguments.remove("name") {
            arguments.insert("user".into(), name);
        }
        Ok(())
    }
}

impl RunTool for Account {
    type Output = String;
    async fn run(self, _: &ToolContext) -> String {
        match self {
            Self::Open { user } => format!("opened {user}"),
            Self::Close { user } => format!("closed {user}"),
        }
    }
}

#[tokio::test]
async fn types_name_their_own_functions() {
    assert_eq!(text(tools![Account], "account", r#"{"action": "open", "name": "Ann"}"#).await, "opened Ann");
    assert_eq!(text(tools![Account], "account", r#"{"action": "close", "user": "Bo"}"#).await, "closed Bo");
    let args = r#"{"action": "open", "user": "Ann"}"#;
    let ends = |kind, words| follows_up(tools![Account], "account", args, kind, words);
    assert!(ends(OutcomeKind::Failed, "no such user"));
    assert!(!ends(OutcomeKind::Completed, "opened Ann"));
}

fn for_admins(source: &Source) -> Option<Parameters> {
    source.get::<Admin>()?;
    let states = ["active", "deleted", "locked"];
    Some(
        Parameters::new()
            .required_enum("state", "Of the account.", states)
            .required_integer("page", "From 1."),
    )
}

/// Lists accounts.
#[tool(parameters_for = for_admins)]
fn list_accounts(
    #[arg(default = "active", pattern = "active|deleted|hidden|locked")] state: String,
    #[arg(default = 1)] page: u8,
) -> String {
    format!("{state} accounts, page {page}")
}

/// Calls the only tool of `set` on behalf of a source: the text, and the code of an error.
async fn call_for(set: ToolSet, source: Source, arguments: &str) -> (Option<String>, String) {
    let registry = Registry::new(set).expect("sound");
    let name = registry.names().next().expect("one tool").to_owned();
    let cx = ToolContext::new().with_source(source);
    let outcome = registry.call(&ToolCall::new("1", name, arguments), &cx).await.outcome;
    (outcome.code().map(str::to_owned), outcome.text().into_owned())
}

#[tokio::test]
async fn a_source_gets_parameters_of_its_own() {
    let registry = Registry::new(tools![list_accounts]).expect("sound");
    let shown = |source: Option<&Source>| {
        let definitions = registry.definitions_for(source).expect("sound");
        let parameters = definitions[0].parameters();
        (parameters["properties"]["state"]["enum"].clone(), parameters["required"].clone())
    };
    let of_admins = (json!(["active", "deleted", "locked"]), json!(["state", "page"]));
    assert_eq!(shown(Some(&Source::new(Admin))), of_admins);
    for other in [None, Some(&Source::new(Language("de")))] {
        assert_eq!(shown(other).0, Value::Null);
        assert_ne!(shown(other).1, of_admins.1);
    }

    let deleted = r#"{"state": "deleted", "page": "2"}"#;
    let (code, words) = call_for(tools![list_accounts], Source::new(Admin), deleted).await;
    assert_eq!((code, &*words), (None, "deleted accounts, page 2"));
    // A state that only the function knows: refused for a source that was not shown it, accepted for the others.
    let hidden = r#"{"state": "hidden", "page": 2}"#;
    let (code, words) = call_for(tools![list_accounts], Source::new(Admin), hidden).await;
    assert!(code.as_deref() == Some("invalid_arguments") && words.contains("state"), "{words}");
    let (code, words) = call_for(tools![list_accounts], Source::new(Language("de")), hidden).await;
    assert_eq!((code, &*words), (None, "hidden accounts, page 2"));
    // The parameters of the source are required, whatever the function has a default for.
    let (code, words) = call_for(tools![list_accounts], Source::new(Admin), r#"{"state": "locked"}"#).await;
    assert!(code.as_deref() == Some("invalid_arguments") && words.contains("page"), "{words}");
    // What the source was shown also has to fit the function, which takes a `u8`.
    let wide = r#"{"state": "locked", "page": 300}"#;
    let (code, words) = call_for(tools![list_accounts], Source::new(Admin), wide).await;
    assert!(code.as_deref() == Some("invalid_arguments") && words.contains("page"), "{words}");
}

/// Finds a word.
#[tool(
    examples({"word": "house"}),
    examples_for = |source| (source.get::<Language>()?.0 == "de").then(|| vec![json!({"word": "Haus"})])
)]
fn find(word: String) -> String {
    word
}

#[test]
fn a_source_gets_examples_of_its_own() {
    let registry = Registry::new(tools![find]).expect("sound");
    let shown = |source: Option<Source>| {
        registry.definitions_for(source.as_ref()).expect("sound")[0].examples().to_vec()
    };
    assert_eq!(shown(Some(Source::new(Language("de")))), [json!({"word": "Haus"})]);
    assert_eq!(shown(Some(Source::new(Language("en")))), [json!({"word": "house"})]);
    assert_eq!(shown(None), [json!({"word": "house"})]);
}

fn with_state(args: &ToolArguments, result: &ToolResultMessage) -> Option<Vec<Part>> {
    let table = args.value()?["table"].as_str()?.to_owned();
    (table != "empty").then(|| vec![Part::text(format!("{} of {table}: 40 %", result.text()))])
}

/// Records a call of `name` that ended with `words`, and returns whether the model is asked at once.
fn follows_up(set: ToolSet, name: &str, args: &str, kind: OutcomeKind, words: &str) -> bool {
    let registry = Registry::new(set).expect("sound");
    let result = ToolResultMessage::new("1", name, kind).with_content(words);
    registry.triggers_follow_up(&ToolCall::new("1", name, args), &result)
}

/// Calls a tool: the stored text, and what a model is shown of it.
async fn stored_and_shown(set: ToolSet, name: &str, table: &str) -> (String, String) {
    let registry = Registry::new(set).expect("sound");
    let call = ToolCall::new("1", name, json!({"table": table}).to_string());
    let stored = registry.call(&call, &ToolContext::new()).await.to_message().expect("an end");
    let shown = registry.shown_content(&call, &stored).into_owned();
    (stored.text(), shown.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn a_stored_result_is_shown_in_another_form() {
    /// Exports a table.
    #[tool(format_result = with_state)]
    fn plain(table: String) -> String {
        format!("began {table}")
    }
    /// Exports a table of strangers.
    #[tool(format_result = |_, _| Some(vec![Part::text("40 %")]), untrusted)]
    fn strange(table: String) -> String {
        table
    }
    let (stored, shown) = stored_and_shown(tools![plain], "plain", "orders").await;
    assert_eq!((&*stored, &*shown), ("began orders", "began orders of orders: 40 %"));
    let (stored, shown) = stored_and_shown(tools![plain], "plain", "empty").await;
    assert_eq!((&*stored, &*shown), ("began empty", "began empty"));
    // The other form of a result that is untrusted has the envelope, too.
    let (_, shown) = stored_and_shown(tools![strange], "strange", "orders").await;
    assert!(shown.starts_with("<untrusted id=") && shown.contains("\n40 %\n</untrusted id="), "{shown}");
}

#[test]
fn a_function_decides_about_following_up_instead_of_the_flag() {
    /// Reads the sensor.
    #[tool(triggers_follow_up = |_, result| result.text().contains("alarm"))]
    fn sensor() {}
    /// Reads the sensor.
    #[tool(follow_up, triggers_follow_up = |_, _| false)]
    fn quiet() {}
    /// Reads the sensor.
    #[tool(follow_up)]
    fn loud() {}
    let ends = |set, name, words| follows_up(set, name, "{}", OutcomeKind::Completed, words);
    assert!(ends(tools![sensor], "sensor", "alarm: 90 degrees"));
    assert!(!ends(tools![sensor], "sensor", "21 degrees"));
    assert!(!ends(tools![quiet], "quiet", "alarm: 90 degrees"));
    assert!(ends(tools![loud], "loud", "21 degrees"));
}

#[tokio::test]
async fn a_run_prepares_calls_and_shows_their_results_as_the_options_say() {
    /// Exports a table.
    #[tool(
        prepare = old_names,
        format_result = |_, result| Some(vec![Part::text(format!("{} (40 % so far)", result.text()))])
    )]
    fn export(table: String) -> String {
        format!("exporting {table}")
    }
    let call = reply().tool_call("export", r#"{"table_name": "orders"}"#);
    let model = ScriptedModel::new([call, reply().text("It runs.")]);
    let assistant = Assistant::builder(model.clone()).tools(tools![export]).build().expect("sound");
    assistant.prompt("Export the orders.").await.expect("a run");
    // The conversation keeps what the tool returned; the model is shown the other form.
    assert_eq!(assistant.messages().get(2).expect("a result").text(), "exporting orders");
    let second = &model.requests()[1];
    assert_eq!(second.messages.last().expect("a result").text(), "exporting orders (40 % so far)");
}

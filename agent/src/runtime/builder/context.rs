//! Builder options for the context window, the counting of tokens, budgets and additional models.

use std::sync::Arc;

use super::AssistantBuilder;
use crate::model::{ContextRules, CountWith, Model, TokenCounter as _, TokenEstimator};
use crate::panics::catch;
use crate::provider::Prices;
use crate::runtime::budget::Budget;

impl AssistantBuilder {
    /// Keeps requests with a long conversation within the window of the model, by these rules. Off by default.
    ///
    /// Before each request, old results are cleared first: a line replaces each result, and a tool `read_result` returns the whole result.
    /// If that is not enough, a model writes a summary that replaces the oldest messages; [pinned](crate::message::UserMessage::pinned)
    /// messages stay. The conversation itself stays complete, also in the [store](Self::store). [`messages`](crate::Assistant::messages)
    /// returns the whole conversation, and the [changes](crate::message::ViewChange) are recorded with it. If a provider refuses a request
    /// as too long, the conversation is compacted, and the request is sent once more.
    ///
    /// If nothing more can be replaced, or the summary fails, a run whose request does not fit ends with
    /// [`RunError::Context`](crate::RunError::Context), which contains the reason. Nothing is cut without an event.
    ///
    /// ```
    /// use agent::model::{ContextRules, reply};
    /// use agent::{Assistant, ScriptedModel, tool, tools};
    ///
    /// /// Reads a page of the book.
    /// #[tool(read_only)]
    /// fn read_page(number: u32) -> String {
    ///     format!("page {number}: {}", "word ".repeat(4_000))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pages = (1..=20).map(|page| reply().tool_call("read_page", format!(r#"{{"number": {page}}}"#)));
    /// let model = ScriptedModel::new(pages.chain([reply().text("I read them all.")]));
    /// let assistant = Assistant::builder(model.clone())
    ///     .tools(tools![read_page])
    ///     .manage_context(ContextRules::new().window(100_000))
    ///     .build()?;
    /// assistant.prompt("Read 20 pages.").await?;
    ///
    /// let last = &model.requests()[20].messages;
    /// assert!(last[2].text().starts_with("[the result of `read_page` was removed here"));
    /// assert!(last[40].text().starts_with("page 20"));                                 // the newest ones stay
    /// assert!(assistant.messages().get(2).unwrap().text().starts_with("page 1"));      // and so does the conversation
    /// # Ok(()) }
    /// ```
    pub fn manage_context(mut self, rules: ContextRules) -> Self {
        self.context = Some(Arc::new(rules));
        self
    }

    /// Sets the function that counts the tokens of a text, for example with the vocabulary of the model.
    /// [`Assistant::context`](crate::Assistant::context), [`manage_context`](Self::manage_context) and budgets use the function. The
    /// function must return the same number for the same text. If the function panics, the tokens of that text are estimated. By default
    /// all tokens are [estimated](crate::model::ContextReport::of).
    ///
    /// ```
    /// use agent::{Assistant, ScriptedModel};
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let assistant =
    ///     Assistant::builder(ScriptedModel::new(["Hi."])).system("Answer briefly.").token_counter(words).build()?;
    /// assert_eq!(assistant.context().used, 8 + 2);                 // a request, and two words
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn token_counter(mut self, counter: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        self.counter = Arc::new(CountWith::kept(move |text: &str| {
            catch(|| counter(text)).unwrap_or_else(|panic| {
                tracing::error!(%panic, "the function that counts tokens panicked");
                TokenEstimator.count_text(text)
            })
        }));
        self
    }

    /// Adds a budget for requests, including the requests for summaries. A request must fit into each budget that was added. Budgets of a
    /// session, a day, a month or all time need a [store](Self::store). See [`Budget`]; [`limits`](Self::limits) are for a single run.
    ///
    /// ```
    /// use agent::message::Usage;
    /// use agent::run::{Budget, Limit};
    /// use agent::store::MemoryStore;
    /// use agent::{Assistant, ScriptedModel, model::reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::from_fn(|_| reply().text("Hello!").usage(Usage::new(40, 10)));
    /// let assistant = Assistant::builder(model)
    ///     .request(|request| request.with_max_tokens(100))
    ///     .store(MemoryStore::new())
    ///     .budget(Budget::tokens(150).per_month())
    ///     .build()?;
    /// assistant.prompt("Hi").await?;                                          // 100 are left
    /// let error = assistant.fork().prompt("Hi").await.unwrap_err();           // a request, and a reply of 100
    /// assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::Budget));
    /// # Ok(()) }
    /// ```
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budgets.list.push(budget);
        self
    }

    /// Adds prices of models, each named `provider/model`, for budgets of [money](Budget::dollars). Models that are not listed have the
    /// built-in prices.
    ///
    /// ```
    /// use agent::provider::Prices;
    /// use agent::{Assistant, ScriptedModel, run::Budget};
    ///
    /// let prices = [("scripted/scripted", Prices::new(3.0, 15.0))];               // or `Prices::from_file`
    /// let assistant =
    ///     Assistant::builder(ScriptedModel::new(["Hello!"])).prices(prices).budget(Budget::dollars(0.5)).build()?;
    /// # Ok::<(), agent::run::BuildError>(())
    /// ```
    pub fn prices<N: Into<String>>(mut self, prices: impl IntoIterator<Item = (N, Prices)>) -> Self {
        self.budgets.prices.own.extend(prices.into_iter().map(|(model, prices)| (model.into(), prices)));
        self
    }

    /// Adds a model under a name, for [`select_model`](Self::select_model) and for
    /// [summaries](ContextRules::compact_with).
    pub fn named_model(mut self, name: impl Into<Arc<str>>, model: impl Model + 'static) -> Self {
        self.models.push((name.into(), Arc::new(model)));
        self
    }
}

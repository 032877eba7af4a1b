//! The ends of runs, and the limits that can cause them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The end of a run, with its reason.
///
/// ```
/// use agent::loop_core::End;
/// use agent::RunStop;
///
/// let end = End::aborted("the user left");
/// assert_eq!((end.stop(), end.detail()), (RunStop::Aborted, Some("the user left")));
/// assert_eq!(End::error("the key is not valid").stop(), RunStop::Error);
/// assert!(End::Completed.is_completed() && !end.is_completed());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stop", rename_all = "snake_case")]
#[non_exhaustive]
pub enum End {
    /// The model finished.
    Completed,
    /// A tool or a hook ended the run.
    Terminated,
    /// A limit was reached.
    Limit(LimitReached),
    /// The run was cancelled.
    #[non_exhaustive]
    Aborted {
        /// The reason of the cancellation.
        reason: String,
    },
    /// The model failed, or the run could not continue, for example because a hook or the store failed.
    #[non_exhaustive]
    Error {
        /// The error message.
        message: String,
    },
}

impl End {
    /// Returns an end by cancellation, with this reason.
    pub fn aborted(reason: impl Into<String>) -> Self {
        Self::Aborted { reason: reason.into() }
    }

    /// Returns an end by an error, with this message.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error { message: message.into() }
    }

    /// Returns whether the model finished.
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed)
    }

    /// Returns the kind of the end, without details.
    pub fn stop(&self) -> RunStop {
        match self {
            Self::Completed => RunStop::Completed,
            Self::Terminated => RunStop::Terminated,
            Self::Limit(_) => RunStop::Limit,
            Self::Aborted { .. } => RunStop::Aborted,
            Self::Error { .. } => RunStop::Error,
        }
    }

    /// Returns the name of the limit, the reason of the cancellation, or the error message. Returns `None` if the model finished, or if a
    /// tool or a hook ended the run.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Completed | Self::Terminated => None,
            Self::Limit(reached) => Some(reached.limit.as_str()),
            Self::Aborted { reason } => Some(reason),
            Self::Error { message } => Some(message),
        }
    }
}

/// The way in which a run stopped: the kind of its end, or its suspension.
///
/// ```
/// use agent::{Assistant, RunStop, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let output = Assistant::builder(ScriptedModel::new(["Hello!"])).build()?.prompt("Hi").await?;
/// assert_eq!(output.stop, RunStop::Completed);
/// assert_eq!(output.stop.as_str(), "completed");
/// assert_eq!(output.stop.to_string(), "completed");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStop {
    /// The model finished.
    Completed,
    /// A tool or a hook ended the run.
    Terminated,
    /// A limit was reached.
    Limit,
    /// The run was cancelled.
    Aborted,
    /// The model failed, or the run could not continue, for example because a hook or the store failed.
    Error,
    /// The run waits for decisions, inputs or results from outside, and can be resumed.
    Suspended,
}

impl RunStop {
    /// Returns the name, for example `completed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Terminated => "terminated",
            Self::Limit => "limit",
            Self::Aborted => "aborted",
            Self::Error => "error",
            Self::Suspended => "suspended",
        }
    }
}

impl fmt::Display for RunStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A limit that was reached, with the amount that was used.
///
/// ```
/// use agent::{Assistant, ScriptedModel, UsageLimits, run::Limit};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = UsageLimits { requests: Some(0), ..UsageLimits::default() };
/// let assistant = Assistant::builder(ScriptedModel::new(["Hello!"])).limits(limits).build()?;
/// let error = assistant.prompt("Hi").await.unwrap_err();
/// assert_eq!(error.as_limit().map(|reached| reached.limit), Some(Limit::Requests));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitReached {
    /// The limit.
    pub limit: Limit,
    /// The allowed amount, in seconds if the limit is a time.
    pub allowed: f64,
    /// The used amount, in the unit of `allowed`.
    pub used: f64,
    /// The name of the budget, if the limit is a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<str>>,
}

impl LimitReached {
    /// Creates a reached limit without the name of a budget.
    pub fn new(limit: Limit, allowed: f64, used: f64) -> Self {
        Self { limit, allowed, used, budget: None }
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, allowed, used, budget } = self;
        match budget {
            Some(budget) => {
                let units = if is_one(*allowed) { "unit" } else { "units" };
                write!(f, "the limit of {allowed} {units} of the budget `{budget}`")?;
            }
            None => write!(f, "the limit of {allowed} {}", limit.unit(*allowed))?,
        }
        write!(f, " is reached ({} used)", rounded(*used))
    }
}

fn is_one(amount: f64) -> bool {
    amount.total_cmp(&1.0).is_eq()
}

/// Rounds an amount for display: to four decimals, or to three significant digits below 0.001. Whole numbers, NaN and infinities stay
/// unchanged.
fn rounded(amount: f64) -> f64 {
    if !amount.is_finite() || amount.fract() == 0.0 {
        return amount;
    }
    let text = if amount.abs() < 0.001 { format!("{amount:.2e}") } else { format!("{amount:.4}") };
    text.parse().unwrap_or(amount)
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $one:literal, $many:literal;)*) => {
        /// A quantity that can be limited.
        ///
        /// ```
        /// use agent::run::{Limit, LimitReached};
        ///
        /// let reached = LimitReached::new(Limit::TotalTokens, 1_000.0, 1_200.0);
        /// assert_eq!(reached.limit.as_str(), "total_tokens");
        /// assert_eq!(reached.to_string(), "the limit of 1000 tokens is reached (1200 used)");
        /// let reached = LimitReached::new(Limit::Requests, 1.0, 1.0);
        /// assert_eq!(reached.to_string(), "the limit of 1 request is reached (1 used)");
        /// let reached = LimitReached::new(Limit::Cost, 0.3, 0.315_910_165);
        /// assert_eq!(reached.to_string(), "the limit of 0.3 units of money is reached (0.3159 used)");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Limit {
            $($(#[$doc])* $name,)*
        }

        impl Limit {
            /// Returns the name, as in the `detail` of `agent_end`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            fn unit(self, amount: f64) -> &'static str {
                match self {
                    $(Self::$name => if is_one(amount) { $one } else { $many },)*
                }
            }
        }

        impl fmt::Display for Limit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

limits! {
    /// The turns of the run.
    Turns = "turns", "turn", "turns";
    /// The requests to the model.
    Requests = "requests", "request", "requests";
    /// The calls that ran.
    ToolCalls = "tool_calls", "tool call", "tool calls";
    /// The input tokens of requests.
    InputTokens = "input_tokens", "input token", "input tokens";
    /// The output tokens of replies.
    OutputTokens = "output_tokens", "output token", "output tokens";
    /// The input and output tokens together.
    TotalTokens = "total_tokens", "token", "tokens";
    /// The wall-clock time in seconds.
    WallTime = "wall_time", "second", "seconds";
    /// The cost.
    Cost = "cost", "unit of money", "units of money";
    /// The number of equal calls.
    RepeatedCalls = "repeated_calls", "repeated call", "repeated calls";
    /// A budget that runs share. [`LimitReached::budget`] is its name.
    Budget = "budget", "unit of a budget", "units of a budget";
    /// The successive continuations of a reply that its provider paused.
    Continuations = "continuations", "continuation", "continuations";
}

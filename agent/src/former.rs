//! Hidden aliases for types that were once at the root of the crate. A use of an alias causes a warning with the new path.

macro_rules! moved {
    ($($name:ident = $module:ident::$new:ident, $note:literal;)*) => {$(
        #[deprecated(note = $note)]
        #[doc(hidden)]
        pub type $name = crate::$module::$new;
    )*};
}

moved! {
    ArgumentError = args::ArgumentError, "write `agent::args::ArgumentError`";
    Base64 = args::Base64, "write `agent::args::Base64`";
    HumanDuration = args::HumanDuration, "write `agent::args::HumanDuration`";
    Violations = args::Violations, "write `agent::args::Violations`";
    ParseError = args::ParseError, "write `agent::args::ParseError`";
    Lint = lint::Lint, "write `agent::lint::Lint`";
    LintFinding = lint::LintFinding, "write `agent::lint::LintFinding`";
    ToolManifest = lint::ToolManifest, "write `agent::lint::ToolManifest`";
    SteeringPolicy = run::SteeringPolicy, "write `agent::run::SteeringPolicy`";
    RecordedTurn = run::RecordedTurn, "write `agent::run::RecordedTurn`";
    StateError = run::StateError, "write `agent::run::StateError`";
    StepKey = steps::StepKey, "write `agent::steps::StepKey`";
    StepKind = steps::StepKind, "write `agent::steps::StepKind`";
    ToolOptions = tool::ToolOptions, "write `agent::tool::ToolOptions`";
    ToolPolicy = tool::ToolPolicy, "write `agent::tool::ToolPolicy`";
    Effect = tool::Effect, "write `agent::tool::Effect`";
    CallError = tool::CallError, "write `agent::tool::CallError`";
    DefinitionError = tool::DefinitionError, "write `agent::tool::DefinitionError`";
    RegistryError = tool::RegistryError, "write `agent::tool::RegistryError`";
    RegistryProblem = tool::RegistryProblem, "write `agent::tool::RegistryProblem`";
    StateKey = tool::StateKey, "write `agent::tool::StateKey`";
    Source = tool::Source, "write `agent::tool::Source`";
}

#[cfg(feature = "runtime")]
moved! {
    AfterCall = hooks::AfterCall, "write `agent::hooks::AfterCall`";
    ToolCallInfo = hooks::ToolCallInfo, "write `agent::hooks::ToolCallInfo`";
    TurnTools = hooks::TurnStart, "write `agent::hooks::TurnStart`";
    Prompt = run::Prompt, "write `agent::run::Prompt`";
    Run = run::Run, "write `agent::run::Run`";
    RunHandle = run::RunHandle, "write `agent::run::RunHandle`";
    Subscription = run::Subscription, "write `agent::run::Subscription`";
    Receipt = run::Receipt, "write `agent::run::Receipt`";
    Delivery = run::Delivery, "write `agent::run::Delivery`";
    BuildError = run::BuildError, "write `agent::run::BuildError`";
    ResumeError = run::ResumeError, "write `agent::run::ResumeError`";
    InvokeError = run::InvokeError, "write `agent::run::InvokeError`";
    Metric = run::Metric, "write `agent::run::Metric`";
    ResultCache = run::ResultCache, "write `agent::run::ResultCache`";
}

//! Compares the engine, serde and an independent validator on values that are generated from a schema.

mod formats;
mod report;

use formats::Schema;
pub use report::AgreementReport;

use super::call::{is_own, lines, verify_call};
use super::choices::Random;
use super::law::{Law, LawViolation};
use super::mutate::mutants;
use super::sample::samples;
use crate::args::{
    Coercion, CoercionPolicy, CoercionRule, InvalidArguments, IssueCode, Parsed, Plan, PlanOptions,
    SchemaError, UnknownKeys, proof,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A configurable proof that a type agrees with its schema.
///
/// [`assert_agrees`] runs it with the defaults.
///
/// ```
/// use agent::testing::Agreement;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Move { steps: i32, tags: Vec<String> }
///
/// let report = Agreement::new().samples(50).seed(7).check::<Move>()?;
/// assert!(report.holds(), "{report}");
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `check`"]
pub struct Agreement {
    samples: usize,
    mutants: usize,
    seed: u64,
}

impl Default for Agreement {
    fn default() -> Self {
        Self { samples: 200, mutants: 6, seed: 0 }
    }
}

impl Agreement {
    /// Creates a proof with 200 values and six faulty variants of each, the same in every run.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of values; 200 by default.
    pub fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    /// Sets the number of faulty variants of each value; 6 by default.
    ///
    /// ```
    /// use agent::testing::Agreement;
    ///
    /// let schema = agent::json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    /// let right_alone = Agreement::new().mutants(0).check_schema("count", &schema)?;
    /// assert_eq!(right_alone.faulty, 0);
    /// let three_each = Agreement::new().mutants(3).check_schema("count", &schema)?;
    /// assert!(three_each.holds() && three_each.faulty > 0, "{three_each}");
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    pub fn mutants(mut self, mutants: usize) -> Self {
        self.mutants = mutants;
        self
    }

    /// Sets the seed of the values; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks every [`Law`] for a type that is the arguments of a tool.
    ///
    /// # Errors
    /// Returns a [`SchemaError`] if the type cannot be the arguments of a tool.
    pub fn check<T: DeserializeOwned + JsonSchema>(&self) -> Result<AgreementReport, SchemaError> {
        let name = T::schema_name();
        let plans = Plans::new(UnknownKeys::Deny, |options| Plan::for_type::<T>(&name, options))?;
        let schema =
            schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
        // A field may have its own policy, so coercions are possible even if the tool allows none.
        let own_policies = schema.to_value().to_string().contains("\"x-coerce\"");
        Ok(Proof::<T>::new(self, plans, own_policies, true).run())
    }

    /// Checks every [`Law`] for a handwritten schema.
    ///
    /// ```
    /// use agent::testing::Agreement;
    /// let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}});
    /// let report = Agreement::new().check_schema("count", &schema)?;
    /// assert!(report.holds(), "{report}");
    /// # Ok::<(), agent::args::SchemaError>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`SchemaError`] if the schema cannot be that of a tool.
    pub fn check_schema(&self, name: &str, schema: &Value) -> Result<AgreementReport, SchemaError> {
        let plans = Plans::new(UnknownKeys::Keep, |options| Plan::compile(name, schema, options))?;
        // Without a type that parses it, a format does not refuse any text.
        Ok(Proof::<Value>::new(self, plans, false, false).run())
    }
}

/// Proves that the schema a model sees, the arguments that [`Plan::parse`](crate::args::Plan::parse) accepts, and the values that serde
/// parses agree for `T`, on a few hundred valid values and a thousand faulty ones.
///
/// Use it in tests of your own argument types. It is not random, so it always fails or always passes.
///
/// ```
/// use agent::ToolArgs;
/// use agent::testing::assert_agrees;
///
/// #[derive(ToolArgs)]
/// struct Search {
///     query: String,
///     #[arg(range(1..=50), default = 10)]
///     limit: u32,
///     tags: Option<Vec<String>>,
/// }
///
/// assert_agrees::<Search>();
/// ```
///
/// It detects, for example, a `JsonSchema` that differs from the `Deserialize` of the same type:
///
/// ```
/// use agent::testing::{Agreement, Law};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Tags {
///     #[schemars(with = "Vec<String>")]
///     tags: String,
/// }
///
/// let report = Agreement::new().check::<Tags>()?;
/// assert_eq!(report.violations()[0].law, Law::SamplesExist, "nothing that fits the schema is read");
/// # Ok::<(), agent::args::SchemaError>(())
/// ```
///
/// # Panics
/// Panics if a [`Law`] does not hold, with the type, the arguments, the policy and the verdicts, and if `T` cannot be the arguments of a
/// tool.
#[track_caller]
pub fn assert_agrees<T: DeserializeOwned + JsonSchema>() {
    match Agreement::new().check::<T>() {
        Ok(report) => assert!(report.holds(), "{report}"),
        Err(error) => panic!("`{}` cannot be the arguments of a tool: {error}", T::schema_name()),
    }
}

/// The plans of one type, from the narrowest policy to the widest, then those that treat unknown keys differently.
struct Plans {
    by_policy: [Plan; 3],
    others: [Plan; 2],
}

const POLICIES: [CoercionPolicy; 3] =
    [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()];

impl Plans {
    /// Compiles the plans. `unknown` is the treatment of unknown keys with which a plan agrees with its schema.
    fn new(
        unknown: UnknownKeys,
        plan: impl Fn(PlanOptions) -> Result<Plan, SchemaError>,
    ) -> Result<Plans, SchemaError> {
        let options = PlanOptions::default();
        let [exact, strict, lenient] = POLICIES.map(|policy| plan(options.coercion(policy).unknown(unknown)));
        let other = if unknown == UnknownKeys::Keep { UnknownKeys::Deny } else { UnknownKeys::Keep };
        let strip = plan(options.coercion(CoercionPolicy::lenient()).unknown(UnknownKeys::Strip))?;
        Ok(Plans { by_policy: [exact?, strict?, lenient?], others: [strip, plan(options.unknown(other))?] })
    }

    fn all(&self) -> impl Iterator<Item = &Plan> {
        self.by_policy.iter().chain(&self.others)
    }
}

struct Proof<'a, T> {
    settings: &'a Agreement,
    plans: Plans,
    own_policies: bool,
    /// The independent validator of the plan's schema, which denies unknown keys where the plan does.
    closed: Option<Schema>,
    report: AgreementReport,
    arguments: std::marker::PhantomData<fn() -> T>,
}

type ParseResult<T> = Result<Parsed<T>, InvalidArguments>;

impl<'a, T: DeserializeOwned> Proof<'a, T> {
    fn new(settings: &'a Agreement, plans: Plans, own_policies: bool, has_formats: bool) -> Self {
        let [exact, ..] = &plans.by_policy;
        let closed = Schema::new(exact.schema(), has_formats);
        let report = AgreementReport {
            name: exact.name().to_owned(),
            fitting: 0,
            faulty: 0,
            accepted: [0; 3],
            refused_by_type: 0,
            not_compared: 0,
            violations: Vec::new(),
            count: 0,
        };
        Self { settings, plans, own_policies, closed, report, arguments: std::marker::PhantomData }
    }

    fn run(mut self) -> AgreementReport {
        let schema = self.plans.by_policy[0].schema().clone();
        let values = samples(&schema, self.settings.samples, self.settings.seed);
        let mut random = Random(self.settings.seed);
        for value in &values {
            self.text(&value.to_string());
        }
        for value in &values {
            for text in mutants(value, self.settings.mutants, &mut random) {
                self.text(&text);
            }
        }
        if self.report.fitting == self.report.refused_by_type {
            let [exact, ..] = &self.plans.by_policy;
            let made = values.first().map(Value::to_string).unwrap_or_default();
            let serde = serde_json::from_str::<T>(&made).err().map(|error| format!("\nserde: {error}"));
            let verdicts = "no value was found that the schema and the type accept, so nothing is proved";
            let verdicts = verdicts.to_owned() + &serde.unwrap_or_default();
            self.report.add(LawViolation::new(Law::SamplesExist, exact, &made, verdicts));
        }
        self.report
    }

    /// Checks every law for one text.
    fn text(&mut self, text: &str) {
        let plans: Vec<Plan> = self.plans.all().cloned().collect();
        for plan in &plans {
            if let Err(found) = verify_call::<T>(plan, text) {
                self.report.add(*found);
            }
        }
        let read = self.plans.by_policy.each_ref().map(|plan| plan.parse::<T>(text));
        for (accepted, read) in self.report.accepted.iter_mut().zip(&read) {
            *accepted += usize::from(read.is_ok());
        }
        self.policies_widen(text, &read);
        let sent = serde_json::from_str::<Value>(text).ok();
        let sent = match proof::repeated_key(text) {
            // In a value of any type, repeated keys are not detected, and the last one counts. But if one of several alternatives must fit,
            // they are refused.
            Some(key) => {
                sent.filter(|sent| !is_refused_as_repeated(&read[0]) && self.takes_anything(sent, &key))
            }
            None => sent,
        };
        let fits = match (&sent, &self.closed) {
            (Some(sent), Some(closed)) => closed.is_valid(sent),
            _ => false,
        };
        if fits {
            self.report.fitting += 1;
            self.fitting(text, &read);
        } else {
            self.report.faulty += 1;
            self.faulty(text, sent.as_ref(), &read);
        }
        self.coerced(text, &read);
    }

    /// Returns whether the schema accepts any value in place of the object with this key.
    fn takes_anything(&self, sent: &Value, key: &str) -> bool {
        let Some(closed) = &self.closed else { return false };
        let object = key.rsplit_once('/').map_or("", |(object, _)| object);
        let others = [json!(null), json!(-0.5), json!("\u{1}"), json!([null]), json!({"\u{1}": null})];
        others.into_iter().all(|other| {
            let mut sent = sent.clone();
            match sent.pointer_mut(object) {
                Some(place) => *place = other,
                None => return false,
            }
            closed.is_valid(&sent)
        })
    }

    /// Returns whether the schema refuses the value only because of a format, of which the type accepts more spellings.
    fn is_own_spelling(&self, sent: &Value) -> bool {
        let reads = |value: &Value| serde_json::from_str::<T>(&value.to_string()).is_ok();
        self.closed.as_ref().is_some_and(|closed| closed.is_own_spelling(sent, reads))
    }

    /// Returns whether the type parses a text that the schema may refuse because of a word that it does not list. This holds for an enum
    /// with a variant for every other word.
    fn has_other_words(&self, text: &str) -> bool {
        self.plans.by_policy[0].takes_other_words() && serde_json::from_str::<T>(text).is_ok()
    }

    fn fail(&mut self, law: Law, policy: usize, text: &str, verdicts: impl Into<String>) {
        let plan = self.plans.by_policy[policy].clone();
        self.report.add(LawViolation::new(law, &plan, text, verdicts));
    }

    fn policies_widen(&mut self, text: &str, read: &[ParseResult<T>; 3]) {
        for wide in 1..read.len() {
            if let (Ok(_), Err(refusal)) = (&read[wide - 1], &read[wide]) {
                let verdicts =
                    format!("{}: accepts\nthis one: {}", POLICIES[wide - 1], lines(refusal.issues()));
                self.fail(Law::PoliciesWiden, wide, text, verdicts);
            }
        }
    }

    /// Checks a text that the schema accepts.
    fn fitting(&mut self, text: &str, read: &[ParseResult<T>; 3]) {
        let serde = serde_json::from_str::<T>(text);
        let mut by_type = false;
        for (policy, read) in read.iter().enumerate() {
            match read {
                Ok(parsed) => {
                    let change = parsed.coercions().iter().find(|change| !is_same_number(change));
                    if let Some(change) = change.filter(|_| policy == 0 && !self.own_policies) {
                        let verdicts =
                            format!("schema: accepts\nengine: changes {:?} by {}", change.path, change.rule);
                        self.fail(Law::FittingIsAccepted, policy, text, verdicts);
                    }
                }
                Err(refusal) if refusal.issues().iter().all(|i| is_own(i.code)) && serde.is_err() => {
                    by_type = true;
                }
                Err(_) if beyond_floats(text) => self.report.not_compared += 1,
                Err(refusal) => {
                    let verdicts = format!("schema: accepts\nengine: {}", lines(refusal.issues()));
                    self.fail(Law::FittingIsAccepted, policy, text, verdicts);
                }
            }
        }
        self.report.refused_by_type += usize::from(by_type);
        if let Err(error) = serde
            && !by_type
            && !has_whole_float(text)
            && !has_long_key(text)
            && !beyond_floats(text)
        {
            self.fail(Law::SerdeReads, 0, text, format!("schema: accepts\nserde: {error}"));
        }
    }

    /// Checks a text that the schema refuses, or that is not JSON.
    fn faulty(&mut self, text: &str, sent: Option<&Value>, read: &[ParseResult<T>; 3]) {
        for (policy, read) in read.iter().enumerate() {
            let Ok(parsed) = read else { continue };
            let changed = !parsed.coercions().is_empty();
            // The exact policy allows only changes such as 1.0 to 1, after which a value fits only if it did before.
            if changed && (policy > 0 || self.own_policies) {
                continue;
            }
            let whole = text.trim_start().is_empty();
            if !whole && !sent.is_some_and(|sent| self.is_own_spelling(sent)) {
                if self.has_other_words(text) {
                    self.report.not_compared += 1;
                    continue;
                }
                let schema = if sent.is_some() {
                    "refuses"
                } else {
                    "not asked, because the text is not JSON or repeats a key"
                };
                self.fail(Law::AcceptedFits, policy, text, format!("schema: {schema}\nengine: accepts"));
            }
        }
    }

    /// Checks that coerced arguments fit the schema.
    fn coerced(&mut self, text: &str, read: &[ParseResult<T>; 3]) {
        for (policy, read) in read.iter().enumerate() {
            // A `Value` holds a number beyond floats as text, which cannot be compared.
            if beyond_floats(text) || !read.as_ref().is_ok_and(|parsed| !parsed.coercions().is_empty()) {
                continue;
            }
            let Ok(whole) = self.plans.by_policy[policy].parse::<Value>(text) else { continue };
            let coerced = whole.value.to_string();
            let fits = self.closed.as_ref().is_none_or(|closed| closed.is_valid(&whole.value))
                || self.is_own_spelling(&whole.value)
                || self.has_other_words(&coerced);
            let exact = self.plans.by_policy[0].parse::<T>(&coerced);
            let verdicts = match &exact {
                _ if !fits => format!("coerced: {coerced}\nschema: refuses it"),
                Err(refusal) => format!("coerced: {coerced}\nexact: {}", lines(refusal.issues())),
                Ok(again) if !again.coercions().is_empty() => {
                    format!("coerced: {coerced}\nexact: changes it again")
                }
                Ok(_) => continue,
            };
            self.fail(Law::CoercedFits, policy, text, verdicts);
        }
    }
}

/// Returns the numbers of a text as tokens. Digits inside strings may be among them.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
        .filter(|token| token.contains(|c: char| c.is_ascii_digit()))
}

/// Returns whether there is a number beyond the integers that floats represent exactly. Validators of JSON Schema differ on such numbers,
/// and such bounds are not in the schema.
fn beyond_floats(text: &str) -> bool {
    numbers(text).any(|token| token.parse::<f64>().is_ok_and(|v| v.abs() >= 9_007_199_254_740_992.0))
}

/// Returns whether the change is like 3.0 to 3: the same number in JSON Schema, but recorded, because the tool receives it in another form.
/// Rounding to a float is allowed by every policy.
fn is_same_number(change: &Coercion) -> bool {
    change.rule == CoercionRule::FloatToInteger
        || change.rule == CoercionRule::NumberRounded
        || change.rule == CoercionRule::ToClosedNumber
            && change.from.is_number()
            && change.from.as_f64() == change.to.as_f64()
}

/// Returns whether there is an integer key with leading zeros, like `"007":`. JSON Schema and the engine accept it, but serde does not.
fn has_long_key(text: &str) -> bool {
    let texts = text.split('"').filter(|text| text.len() > 1);
    texts.map(|text| text.trim_start_matches('-')).any(|text| text.starts_with('0'))
}

/// Returns whether there is a whole number written as a float. It is an integer for JSON Schema and the engine, but not for serde.
fn has_whole_float(text: &str) -> bool {
    numbers(text).any(|token| {
        token.contains(['.', 'e', 'E', '-']) && token.parse::<f64>().is_ok_and(|v| v.fract() == 0.0)
    })
}

/// Returns whether the arguments were refused because of a repeated key.
fn is_refused_as_repeated<T>(read: &ParseResult<T>) -> bool {
    read.as_ref()
        .is_err_and(|refusal| refusal.issues().iter().any(|issue| issue.code == IssueCode::Duplicate))
}

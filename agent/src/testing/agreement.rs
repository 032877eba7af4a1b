//! Checks that argument validation, serde and an independent validator agree on values that are generated from a schema.

mod formats;
mod report;

use formats::Schema;
use report::AgreementReport;

use super::call::{check_call, is_own, lines};
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

/// The number of faulty variants of each value.
const MUTANTS: usize = 6;

/// Proves that a `Plan` agrees with its schema and with serde, and that it does not contradict itself. The proof uses up to `samples`
/// values that are generated from the schema, and six faulty variants of each value, under every policy. `T` is the type of the plan, or
/// [`Value`](serde_json::Value) for a plan that was compiled from a schema. The same seed makes the same values.
///
/// [`assert_agrees`] proves this for the plan of a type, with 200 values.
///
/// ```
/// use agent::args::{Plan, PlanOptions};
/// use agent::testing::verify_plan;
///
/// let schema = agent::json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}});
/// let plan = Plan::compile("count", &schema, PlanOptions::default())?;
/// verify_plan::<agent::Value>(&plan, 50, 7)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a law does not hold, returns the law and the shortest call that breaks it. One law is that arguments that fit the schema are
/// accepted. Also returns an error if the schema and the type accept none of the values, or if the plan cannot be compiled under every
/// policy.
pub fn verify_plan<T: DeserializeOwned>(plan: &Plan, samples: usize, seed: u64) -> Result<(), String> {
    let report = prove::<T>(plan, samples, seed).map_err(|violation| violation.to_string())?;
    report.violations.first().map_or(Ok(()), |violation| Err(violation.to_string()))
}

fn prove<T: DeserializeOwned>(
    plan: &Plan,
    samples: usize,
    seed: u64,
) -> Result<AgreementReport, Box<LawViolation>> {
    let plans = Plans::new(plan).map_err(|error| {
        Box::new(LawViolation::new(Law::PoliciesWiden, plan, "", format!("cannot be compiled: {error}")))
    })?;
    Ok(Proof::<T>::new(plans, samples, seed).run())
}

/// Proves for `T` that three sides agree: the schema that a model sees, the arguments that [`Plan::parse`](crate::args::Plan::parse)
/// accepts, and the values that serde parses. The proof uses up to 200 values that are generated from the schema, and six faulty variants
/// of each.
///
/// Use this function in tests of your own argument types. It is deterministic, so it always fails or always passes.
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
/// The function detects, for example, a `JsonSchema` that differs from the `Deserialize` of the same type:
///
/// ```should_panic
/// use agent::testing::assert_agrees;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Tags {
///     #[schemars(with = "Vec<String>")]
///     tags: String,
/// }
///
/// assert_agrees::<Tags>();                             // serde parses no value that fits the schema
/// ```
///
/// # Panics
/// Panics if the proof fails; the message names the type, the arguments, the policy and the verdicts. Panics if `T` cannot be the
/// arguments of a tool.
#[track_caller]
pub fn assert_agrees<T: DeserializeOwned + JsonSchema>() {
    let name = T::schema_name();
    let plan = match Plan::for_type::<T>(&name, PlanOptions::default()) {
        Ok(plan) => plan,
        Err(error) => panic!("`{name}` cannot be the arguments of a tool: {error}"),
    };
    match prove::<T>(&plan, 200, 0) {
        Ok(report) => assert!(report.holds(), "{report}"),
        Err(violation) => panic!("{violation}"),
    }
}

/// The compiled plans of one type. `by_policy` has one for each coercion policy, from the strictest to the most lenient. The plans in
/// `others` handle unknown keys differently.
struct Plans {
    by_policy: [Plan; 3],
    others: [Plan; 2],
}

const POLICIES: [CoercionPolicy; 3] =
    [CoercionPolicy::exact(), CoercionPolicy::strict(), CoercionPolicy::lenient()];

impl Plans {
    fn new(plan: &Plan) -> Result<Plans, SchemaError> {
        // `unknown` matches the schema: the schema of a type forbids unknown keys, and any other schema allows them by default.
        let (unknown, other) = match plan.source() {
            Some(_) => (UnknownKeys::Deny, UnknownKeys::Keep),
            None => (UnknownKeys::Keep, UnknownKeys::Deny),
        };
        let options = PlanOptions::default();
        let with = |policy, unknown| plan.with_options(options.coercion(policy).unknown(unknown));
        let [exact, strict, lenient] = POLICIES.map(|policy| with(policy, unknown));
        let strip = with(CoercionPolicy::lenient(), UnknownKeys::Strip)?;
        Ok(Plans {
            by_policy: [exact?, strict?, lenient?],
            others: [strip, plan.with_options(options.unknown(other))?],
        })
    }

    fn all(&self) -> impl Iterator<Item = &Plan> {
        self.by_policy.iter().chain(&self.others)
    }
}

struct Proof<T> {
    samples: usize,
    seed: u64,
    plans: Plans,
    /// Whether a field has its own coercion policy. If so, coercions are possible even under the exact policy.
    own_policies: bool,
    /// The independent validator of the plan's schema, or `None` if it cannot be built. Refuses unknown keys if the plan refuses them.
    closed: Option<Schema>,
    report: AgreementReport,
    arguments: std::marker::PhantomData<fn() -> T>,
}

type ParseResult<T> = Result<Parsed<T>, InvalidArguments>;

impl<T: DeserializeOwned> Proof<T> {
    fn new(plans: Plans, samples: usize, seed: u64) -> Self {
        let [exact, ..] = &plans.by_policy;
        let own_policies = exact.source().is_some_and(|schema| schema.to_string().contains("\"x-coerce\""));
        // Only the plan of a Rust type validates formats. A plan that was compiled from a schema accepts any text for a format.
        let closed = Schema::new(exact.schema(), exact.source().is_some());
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
        Self { samples, seed, plans, own_policies, closed, report, arguments: std::marker::PhantomData }
    }

    fn run(mut self) -> AgreementReport {
        let schema = self.plans.by_policy[0].schema().clone();
        let values = samples(&schema, self.samples, self.seed);
        let mut random = Random(self.seed);
        for value in &values {
            self.text(&value.to_string());
        }
        for value in &values {
            for text in mutants(value, MUTANTS, &mut random) {
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

    /// Checks every [`Law`] for the arguments `text`.
    fn text(&mut self, text: &str) {
        let plans: Vec<Plan> = self.plans.all().cloned().collect();
        for plan in &plans {
            if let Err(found) = check_call::<T>(plan, text) {
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
            // A repeated key may be accepted only where the schema accepts any value. Its last value then counts.
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

    fn is_own_spelling(&self, sent: &Value) -> bool {
        let reads = |value: &Value| serde_json::from_str::<T>(&value.to_string()).is_ok();
        self.closed.as_ref().is_some_and(|closed| closed.is_own_spelling(sent, reads))
    }

    /// Returns whether the plan has a variant with `#[serde(other)]`, and the type parses the text. Such a text may contain strings that
    /// only this variant accepts, and that the schema does not list.
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

    fn faulty(&mut self, text: &str, sent: Option<&Value>, read: &[ParseResult<T>; 3]) {
        for (policy, read) in read.iter().enumerate() {
            let Ok(parsed) = read else { continue };
            let changed = !parsed.coercions().is_empty();
            // The policy `exact` changes only numbers such as `1.0` to `1`, which the schema treats alike.
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

    fn coerced(&mut self, text: &str, read: &[ParseResult<T>; 3]) {
        for (policy, read) in read.iter().enumerate() {
            // Very large numbers are skipped: a `Value` may contain them as strings, which the schema refuses.
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

/// Returns whether the text has a number of 2^53 or more. Validators of JSON Schema disagree on such integers, because floats cannot
/// represent all of them.
fn beyond_floats(text: &str) -> bool {
    numbers(text).any(|token| token.parse::<f64>().is_ok_and(|v| v.abs() >= 9_007_199_254_740_992.0))
}

/// Returns whether the coercion only respells a number, such as 3.0 as 3, or rounds the number to a float. Even the policy `exact` allows
/// such coercions.
fn is_same_number(change: &Coercion) -> bool {
    change.rule == CoercionRule::FloatToInteger
        || change.rule == CoercionRule::NumberRounded
        || change.rule == CoercionRule::ToClosedNumber
            && change.from.is_number()
            && change.from.as_f64() == change.to.as_f64()
}

/// Returns whether the text may have an integer key with leading zeros, like `"007":`. JSON Schema and this crate accept it, but serde
/// does not.
fn has_long_key(text: &str) -> bool {
    let texts = text.split('"').filter(|text| text.len() > 1);
    texts.map(|text| text.trim_start_matches('-')).any(|text| text.starts_with('0'))
}

/// Returns whether the text has a whole number that is written with a decimal point, an exponent or a minus sign, such as `1.0`, `1e3` or
/// `-0`. JSON Schema and this crate treat the number as an integer, but serde may treat it as a float.
fn has_whole_float(text: &str) -> bool {
    numbers(text).any(|token| {
        token.contains(['.', 'e', 'E', '-']) && token.parse::<f64>().is_ok_and(|v| v.fract() == 0.0)
    })
}

fn is_refused_as_repeated<T>(read: &ParseResult<T>) -> bool {
    read.as_ref()
        .is_err_and(|refusal| refusal.issues().iter().any(|issue| issue.code == IssueCode::Duplicate))
}

//! Validates whole arguments against a JSON Schema, for keywords that a `Plan` does not support itself. Needs the feature `full-schema`.
//! Schemas of Rust types are never validated here.

use super::error::{CompileResult, SchemaError};
use crate::args::issue::{Issue, IssueCode};
use serde_json::Value;

/// Replaces the validator of whole schemas if the feature `full-schema` is off.
#[cfg(not(feature = "full-schema"))]
pub(crate) enum NoValidator {}

#[cfg(not(feature = "full-schema"))]
pub(crate) use NoValidator as Whole;

#[cfg(not(feature = "full-schema"))]
impl NoValidator {
    /// Always fails, because only the feature `full-schema` supports the keywords.
    pub(super) fn new(_: &Value, _: &Value, keywords: &[&'static str]) -> CompileResult<NoValidator> {
        Err(SchemaError::new(keywords.first().copied().unwrap_or("$schema"), "", "is not modelled"))
    }

    pub(crate) fn issues(&self, _: &Value, _: IssueLimit) -> Vec<Issue> {
        match *self {}
    }

    pub(crate) fn keywords(&self) -> &[&'static str] {
        match *self {}
    }
}

impl Whole {
    /// Adds the issues of keywords that are not compiled into the plan. Returns the number of added issues.
    pub(crate) fn add_to(&self, issues: &mut Vec<Issue>, sent: &Value) -> usize {
        if !sent.is_object() {
            return 0;
        }
        let own = issues.len();
        for issue in self.issues(sent, IssueLimit::Unmodelled) {
            // The plan has already reported this path, or a wrong type above it.
            let known = |told: &Issue| {
                issue.path.strip_prefix(&told.path).is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('/') && told.code == IssueCode::Type
                })
            };
            if !issues[..own].iter().take(MAX_COMPARED).any(known) {
                issues.push(issue);
            }
        }
        issues.len() - own
    }
}

/// Maximum number of the plan's issues that are compared with each issue of the validator.
const MAX_COMPARED: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IssueLimit {
    All,
    /// Only issues of keywords that the plan does not support. The plan has already found all others.
    Unmodelled,
}

#[cfg(feature = "full-schema")]
pub(crate) use full::WholeValidator as Whole;

#[cfg(feature = "full-schema")]
mod full {
    use super::super::reference::target;
    use super::{CompileResult, IssueLimit, SchemaError};
    use crate::args::issue::{Issue, IssueCode};
    use crate::args::text::{cut, push_segment, shown};
    use jsonschema::error::ValidationErrorKind as ErrorKind;
    use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
    use serde_json::Value;
    use std::collections::{HashMap, HashSet};
    use std::sync::Arc;

    /// Maximum number of values and maximum depth of a schema.
    const MAX_VALUES: usize = 20_000;
    const MAX_DEPTH: usize = 100;
    /// Maximum number of schemas that are applied to values in one validation.
    const MAX_STEPS: usize = 100_000;
    /// The same maximum for the search for the errors of a refused value, which counts every path.
    const MAX_ERROR_STEPS: usize = 1_000_000;
    /// Maximum nesting depth of the schemas that are applied in one validation.
    const MAX_NESTING: usize = 300;
    const MAX_ISSUES: usize = 1_000;
    const PATTERN_SIZE: usize = 1 << 20;
    /// Stands for each key of an object where only the number of keys matters.
    static NAME: Value = Value::Null;

    /// One of the two passes of the validator over a value.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Pass {
        /// Tests the value, and remembers the results of recursive references.
        Test,
        /// Collects the errors of the value, and remembers nothing.
        Errors,
    }

    type AppliedParts<'v> = Box<dyn Iterator<Item = (&'v Value, &'v Value)> + 'v>;

    pub(crate) struct WholeValidator {
        validator: Validator,
        /// The schema, with its references as pointers from the root.
        document: Value,
        /// Pointers to the possible targets of dynamic references, by the name of the dynamic anchor.
        dynamic: HashMap<String, Vec<String>>,
        /// The keywords that only this validator checks.
        keywords: Vec<&'static str>,
    }

    impl WholeValidator {
        /// Creates a validator. `document` is `schema` with all references as pointers from the root.
        pub(in crate::args::plan) fn new(
            schema: &Value,
            document: &Value,
            keywords: &[&'static str],
        ) -> CompileResult<WholeValidator> {
            let keyword = keywords.first().copied().unwrap_or("$schema");
            if !is_small(schema) {
                return Err(SchemaError::new(
                    keyword,
                    "",
                    "is in a schema that is too large to be checked as a whole",
                ));
            }
            let mut own = schema.clone();
            let dialect = own.as_object_mut().and_then(|map| map.shift_remove("$schema"));
            let draft = match dialect.as_ref().and_then(Value::as_str).unwrap_or_default() {
                old if ["draft-03", "draft-04", "draft-05", "draft-06", "draft-07"]
                    .iter()
                    .any(|d| old.contains(d)) =>
                {
                    Draft::Draft7
                }
                old if old.contains("2019-09") => Draft::Draft201909,
                _ => Draft::Draft202012,
            };
            let patterns = PatternOptions::regex().size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE);
            let options = jsonschema::options()
                .with_draft(draft)
                .offline()
                .should_validate_formats(false)
                .without_content_encoding_support("base64")
                .without_content_media_type_support("application/json")
                .with_pattern_options(patterns);
            let validator = options.build(&own).map_err(|error| {
                let place = cut(error.instance_path().as_str(), 200);
                let reason =
                    "cannot be checked: the schema as a whole is not valid, or refers to what is not in it";
                SchemaError::new(keyword, &place, reason).because(Arc::new(error))
            })?;
            let mut dynamic = HashMap::new();
            collect_dynamic(document, &mut String::new(), &mut dynamic);
            Ok(WholeValidator { validator, document: document.clone(), dynamic, keywords: keywords.to_vec() })
        }

        pub(crate) fn keywords(&self) -> &[&'static str] {
            &self.keywords
        }

        /// Returns the selected issues of a value, from the first `MAX_ISSUES` errors of the validator. If the check would take too long,
        /// returns one issue that says so.
        pub(crate) fn issues(&self, value: &Value, asked: IssueLimit) -> Vec<Issue> {
            let too_long = || {
                let words = "takes too long to check: send something simpler";
                vec![Issue::new(String::new(), IssueCode::Value, words)]
            };
            if !self.is_cheap(value, Pass::Test) {
                return too_long();
            }
            let mut out = Vec::new();
            if self.validator.is_valid(value) {
                return out;
            }
            if !self.is_cheap(value, Pass::Errors) {
                // The value does not fit; only the search for the reasons would take too long. The plan reports the other issues itself.
                if asked == IssueLimit::All {
                    let words = "does not fit the schema, and the reason takes too long to find: send something simpler";
                    out.push(Issue::new(String::new(), IssueCode::Value, words));
                }
                return out;
            }
            let errors = self.validator.iter_errors(value);
            for error in errors.filter(|error| asked == IssueLimit::All || self.is_unmodelled(error)) {
                add_issue(&error, &mut out);
                if out.len() >= MAX_ISSUES {
                    break;
                }
            }
            out.truncate(MAX_ISSUES);
            out
        }

        fn is_unmodelled(&self, error: &ValidationError<'_>) -> bool {
            let path = error.evaluation_path().as_str();
            path.split('/').any(|segment| self.keywords.contains(&segment))
        }

        /// Returns whether a pass stays within its maximum of steps and `MAX_NESTING`. Counts every schema that the validator could apply, once for
        /// each path to it.
        fn is_cheap(&self, value: &Value, pass: Pass) -> bool {
            let most = if pass == Pass::Errors { MAX_ERROR_STEPS } else { MAX_STEPS };
            let place = |value: &Value| std::ptr::from_ref(value).addr();
            let mut open = vec![(&self.document, value, 0usize, None::<usize>)];
            // The targets of references, each with the index of the target that leads to it.
            let mut targets: Vec<(usize, Option<usize>)> = Vec::new();
            let mut seen = HashSet::new();
            let mut steps = 0;
            while let Some((schema, value, depth, from)) = open.pop() {
                let Value::Object(map) = schema else { continue };
                // With these keywords, the test evaluates the other keywords a second time.
                let twice = pass == Pass::Test
                    && (map.contains_key("unevaluatedProperties") || map.contains_key("unevaluatedItems"));
                steps += 1 + if twice { size_of(value) } else { 0 };
                if steps + open.len() > most || depth > MAX_NESTING {
                    return false;
                }
                for (keyword, below) in map {
                    let is_reference = keyword.ends_with("Ref") || keyword == "$ref";
                    for (part, item) in self.parts(keyword, below, value) {
                        let mut from = from;
                        if is_reference && pass == Pass::Test {
                            let mut above = std::iter::successors(from, |at: &usize| targets[*at].1);
                            let is_recursive = above.any(|at| targets[at].0 == place(part));
                            // The validator remembers the results of a target that leads to itself, so it applies the target to each
                            // value once.
                            if is_recursive && !seen.insert((place(part), place(item))) {
                                continue;
                            }
                            targets.push((place(part), from.filter(|_| !is_recursive)));
                            from = Some(targets.len() - 1);
                        }
                        let times = if twice && std::ptr::eq(item, value) { 2 } else { 1 };
                        open.extend(std::iter::repeat_n((part, item, depth + 1, from), times));
                        if steps + open.len() > most {
                            return false;
                        }
                    }
                }
            }
            true
        }

        /// Returns the schemas in a keyword that the validator could apply, each with the value to which it applies.
        fn parts<'v>(&'v self, keyword: &str, below: &'v Value, value: &'v Value) -> AppliedParts<'v> {
            match (keyword, below, value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                    let name = reference.rsplit('#').next().unwrap_or_default();
                    let pointers = self.dynamic.get(name).into_iter().flatten().map(String::as_str);
                    let pointers = pointers.chain((keyword != "$dynamicRef").then_some(name));
                    let targets = pointers.filter_map(|pointer| target(&self.document, pointer));
                    Box::new(targets.map(move |target| (target, value)))
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => {
                    Box::new(parts.iter().map(move |part| (part, value)))
                }
                ("not" | "if" | "then" | "else", part, _) => Box::new(std::iter::once((part, value))),
                ("dependentSchemas" | "dependencies", Value::Object(parts), Value::Object(_)) => {
                    Box::new(parts.values().map(move |part| (part, value)))
                }
                ("properties", Value::Object(named), Value::Object(map)) => {
                    Box::new(map.iter().filter_map(|(key, item)| Some((named.get(key)?, item))))
                }
                ("patternProperties", Value::Object(named), Value::Object(map)) => {
                    Box::new(named.values().flat_map(|part| map.values().map(move |item| (part, item))))
                }
                ("propertyNames", part, Value::Object(map)) => {
                    Box::new(map.values().map(move |_| (part, &NAME)))
                }
                ("additionalProperties" | "unevaluatedProperties", part, Value::Object(map)) => {
                    Box::new(map.values().map(move |item| (part, item)))
                }
                ("prefixItems" | "items", Value::Array(parts), Value::Array(items)) => {
                    Box::new(parts.iter().zip(items))
                }
                (
                    "items" | "additionalItems" | "unevaluatedItems" | "contains",
                    part,
                    Value::Array(items),
                ) => Box::new(items.iter().map(move |item| (part, item))),
                _ => Box::new(std::iter::empty()),
            }
        }
    }

    fn collect_dynamic(schema: &Value, pointer: &mut String, out: &mut HashMap<String, Vec<String>>) {
        let mut below = |key: &str, value: &Value| {
            let length = pointer.len();
            push_segment(pointer, key);
            collect_dynamic(value, pointer, out);
            pointer.truncate(length);
        };
        match schema {
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| below(key, value));
                if let Some(name) = map.get("$dynamicAnchor").and_then(Value::as_str) {
                    out.entry(name.to_owned()).or_default().push(pointer.clone());
                }
            }
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, value)| below(&i.to_string(), value));
            }
            _ => {}
        }
    }

    fn size_of(value: &Value) -> usize {
        match value {
            Value::Object(map) => map.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        }
    }

    fn is_small(schema: &Value) -> bool {
        let (mut open, mut count) = (vec![(schema, 0)], 0);
        while let Some((value, depth)) = open.pop() {
            count += 1;
            if count > MAX_VALUES || depth > MAX_DEPTH {
                return false;
            }
            match value {
                Value::Object(map) => open.extend(map.values().map(|v| (v, depth + 1))),
                Value::Array(list) => open.extend(list.iter().map(|v| (v, depth + 1))),
                _ => {}
            }
        }
        true
    }

    /// Adds an error as an issue with a message of our own, because the validator's message may contain whole values and schemas.
    fn add_issue(error: &ValidationError<'_>, out: &mut Vec<Issue>) {
        let pointer = error.instance_path().as_str();
        let at = |key: &str| {
            let mut out = pointer.to_owned();
            push_segment(&mut out, key);
            out
        };
        let (code, words) = match error.kind() {
            ErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                out.push(Issue::new(at(name), IssueCode::Missing, "required, but missing"));
                return;
            }
            ErrorKind::AdditionalProperties { unexpected }
            | ErrorKind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    out.push(Issue::new(at(key), IssueCode::Unknown, "unknown parameter"));
                }
                return;
            }
            ErrorKind::AdditionalItems { .. } | ErrorKind::UnevaluatedItems { .. } => {
                (IssueCode::Length, "has items that no part of the schema speaks about".to_owned())
            }
            ErrorKind::FalseSchema => (IssueCode::Type, "no value is allowed here".into()),
            ErrorKind::Type { .. } => (IssueCode::Type, "wrong type".into()),
            ErrorKind::Enum { .. } | ErrorKind::Constant { .. } => {
                (IssueCode::Enum, "not an allowed value".into())
            }
            ErrorKind::Minimum { limit } => (IssueCode::Range, format!("must be at least {limit}")),
            ErrorKind::Maximum { limit } => (IssueCode::Range, format!("must be at most {limit}")),
            ErrorKind::ExclusiveMinimum { limit } => (IssueCode::Range, format!("must be more than {limit}")),
            ErrorKind::ExclusiveMaximum { limit } => (IssueCode::Range, format!("must be less than {limit}")),
            ErrorKind::MultipleOf { multiple_of } => {
                (IssueCode::Range, format!("must be a multiple of {multiple_of}"))
            }
            ErrorKind::MinLength { limit } => {
                (IssueCode::Length, format!("too short: at least {limit} characters"))
            }
            ErrorKind::MaxLength { limit } => {
                (IssueCode::Length, format!("too long: at most {limit} characters"))
            }
            ErrorKind::MinItems { limit } => (IssueCode::Length, format!("too few items: at least {limit}")),
            ErrorKind::MaxItems { limit } => (IssueCode::Length, format!("too many items: at most {limit}")),
            ErrorKind::MinProperties { limit } => {
                (IssueCode::Length, format!("too few entries: at least {limit}"))
            }
            ErrorKind::MaxProperties { limit } => {
                (IssueCode::Length, format!("too many entries: at most {limit}"))
            }
            ErrorKind::Contains => {
                (IssueCode::Length, "too few or too many items of the kind that it must contain".into())
            }
            ErrorKind::UniqueItems => (IssueCode::Unique, "has an item twice".into()),
            ErrorKind::Pattern { pattern } => {
                (IssueCode::Pattern, format!("does not match the pattern {}", cut(pattern, 60)))
            }
            ErrorKind::Not { .. } => (IssueCode::Value, "is of a form that the schema forbids".into()),
            ErrorKind::AnyOf { .. } | ErrorKind::OneOfNotValid { .. } => {
                (IssueCode::Value, "fits no alternative".into())
            }
            ErrorKind::OneOfMultipleValid { .. } => {
                (IssueCode::Value, "fits more than one alternative".into())
            }
            ErrorKind::PropertyNames { .. } => {
                (IssueCode::Pattern, "has a key that the schema forbids".into())
            }
            _ => (IssueCode::Value, "does not fit the schema".into()),
        };
        let mut issue = Issue::new(pointer.to_owned(), code, words);
        issue.received = Some(shown(error.instance()));
        if let ErrorKind::Enum { options } = error.kind()
            && let Value::Array(members) = &**options
        {
            issue.allowed.clone_from(members);
        }
        if let ErrorKind::Constant { expected_value } = error.kind() {
            issue.allowed.push((**expected_value).clone());
        }
        out.push(issue);
    }
}

#[cfg(all(test, feature = "full-schema"))]
mod tests;

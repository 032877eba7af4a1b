//! Parameters that are declared one by one, at run time.

use super::definition_error::DefinitionError;
use crate::args::{Plan, PlanOptions, UnknownKeys};
use serde_json::{Map, Value, json};

/// The parameters of a tool, or the properties of an object parameter, in the order in which models see them.
///
/// Each parameter is required or optional. Every object is closed: it accepts only the properties that are added to it. A mistake, such as
/// a repeated name or an `enum` without values, becomes an error of [`schema`](Self::schema) or of building the tool. The error names the
/// parameter.
///
/// ```
/// use agent::Parameters;
/// use serde_json::json;
///
/// let place = Parameters::new()
///     .required_number("lat", "Degrees north.")
///     .with_keyword("minimum", -90)
///     .optional_string_array("tags", "Words about it.");
/// assert_eq!(
///     place.schema()?,
///     json!({
///         "type": "object",
///         "properties": {
///             "lat": {"type": "number", "description": "Degrees north.", "minimum": -90},
///             "tags": {"type": "array", "items": {"type": "string"}, "description": "Words about it."}
///         },
///         "required": ["lat"],
///         "additionalProperties": false
///     })
/// );
/// # Ok::<(), agent::tool::DefinitionError>(())
/// ```
#[doc = include_str!("../docs/parameter_kinds.md")]
#[derive(Clone, Debug, Default)]
#[must_use = "a list of parameters does nothing until a tool is built of it"]
pub struct Parameters {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// The name of the parameter to which [`with_keyword`](Self::with_keyword) adds keywords.
    last: Option<String>,
    error: Option<DefinitionError>,
}

/// Generates the methods for each kind of parameter. `$to` is a method of the type that gets these methods. `$to` applies a function to
/// the [`Parameters`] of that type.
macro_rules! kinds {
    ($to:ident) => {
        kinds! { @plain $to
            "text", required_string, optional_string, json!({"type": "string"});
            "a whole number", required_integer, optional_integer, json!({"type": "integer"});
            "a number", required_number, optional_number, json!({"type": "number"});
            "true or false", required_boolean, optional_boolean, json!({"type": "boolean"});
            "a day, as text like `2026-11-22`", required_date, optional_date, json!({"type": "string", "format": "date"});
            "a time of a day, as text like `2026-11-22T10:00:00Z`", required_date_time, optional_date_time,
                json!({"type": "string", "format": "date-time"});
            "a list of texts", required_string_array, optional_string_array,
                json!({"type": "array", "items": {"type": "string"}});
            "a list of whole numbers", required_integer_array, optional_integer_array,
                json!({"type": "array", "items": {"type": "integer"}});
            "a list of numbers", required_number_array, optional_number_array,
                json!({"type": "array", "items": {"type": "number"}});
        }

        /// Adds a required text that is one of `words`.
        pub fn required_enum<W: Into<String>>(
            self,
            name: impl Into<String>,
            description: impl Into<String>,
            words: impl IntoIterator<Item = W>,
        ) -> Self {
            let words: Vec<String> = words.into_iter().map(Into::into).collect();
            self.$to(|parameters| parameters.add_words(name.into(), description.into(), &words, true))
        }

        /// Adds an optional text that is one of `words`.
        pub fn optional_enum<W: Into<String>>(
            self,
            name: impl Into<String>,
            description: impl Into<String>,
            words: impl IntoIterator<Item = W>,
        ) -> Self {
            let words: Vec<String> = words.into_iter().map(Into::into).collect();
            self.$to(|parameters| parameters.add_words(name.into(), description.into(), &words, false))
        }

        /// Adds a required object with these properties.
        pub fn required_object(
            self,
            name: impl Into<String>,
            description: impl Into<String>,
            properties: Parameters,
        ) -> Self {
            self.$to(|parameters| parameters.add_object(name.into(), description.into(), &properties, true, false))
        }

        /// Adds an optional object with these properties.
        pub fn optional_object(
            self,
            name: impl Into<String>,
            description: impl Into<String>,
            properties: Parameters,
        ) -> Self {
            self.$to(|parameters| parameters.add_object(name.into(), description.into(), &properties, false, false))
        }

        /// Adds a required list of objects with these properties.
        pub fn required_object_array(
            self,
            name: impl Into<String>,
            description: impl Into<String>,
            properties: Parameters,
        ) -> Self {
            self.$to(|parameters| parameters.add_object(name.into(), description.into(), &properties, true, true))
        }

        /// Adds an optional list of objects with these properties.
        pub fn optional_object_array(
            self,
            name: impl Into<String>,
            description: impl Into<String>,
            properties: Parameters,
        ) -> Self {
            self.$to(|parameters| parameters.add_object(name.into(), description.into(), &properties, false, true))
        }

        /// Adds a required parameter of any other type, by its JSON Schema.
        pub fn required_schema(self, name: impl Into<String>, schema: Value) -> Self {
            self.$to(|parameters| parameters.add(name.into(), None, schema, true))
        }

        /// Adds an optional parameter of any other type, by its JSON Schema.
        pub fn optional_schema(self, name: impl Into<String>, schema: Value) -> Self {
            self.$to(|parameters| parameters.add(name.into(), None, schema, false))
        }

        /// Adds a keyword of JSON Schema, such as `minimum`, `maxLength`, `pattern` or `default`, to the parameter that was added last.
        pub fn with_keyword(self, keyword: impl Into<String>, value: impl Into<Value>) -> Self {
            self.$to(|parameters| parameters.say(keyword.into(), value.into()))
        }
    };
    (@plain $to:ident $($what:literal, $required:ident, $optional:ident, $schema:expr;)*) => {
        $(
            #[doc = concat!("Adds ", $what, ", which must be there.")]
            pub fn $required(self, name: impl Into<String>, description: impl Into<String>) -> Self {
                self.$to(|parameters| parameters.add(name.into(), Some(description.into()), $schema, true))
            }

            #[doc = concat!("Adds ", $what, ", which may be left out.")]
            pub fn $optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
                self.$to(|parameters| parameters.add(name.into(), Some(description.into()), $schema, false))
            }
        )*
    };
}
pub(super) use kinds;

impl Parameters {
    pub(super) fn plan(&self, name: &str, options: PlanOptions) -> Result<Plan, DefinitionError> {
        let mut schema = self.schema()?;
        if options.unknown_keys() == UnknownKeys::Keep {
            schema["additionalProperties"] = json!(true);
        }
        Ok(Plan::compile(name, &schema, options)?)
    }
}

impl Parameters {
    /// Creates an empty list of parameters.
    pub fn new() -> Self {
        Self::default()
    }

    kinds!(change);

    /// Returns the JSON Schema of an object with these properties.
    ///
    /// ```
    /// use agent::Parameters;
    ///
    /// let guest = Parameters::new().required_string("name", "First name.").optional_integer("age", "In years.");
    /// let booking = Parameters::new()
    ///     .required_string("hotel", "Name of the hotel.")
    ///     .required_date("arrival", "Day of arrival.")
    ///     .required_object("payer", "Who pays.", guest.clone())
    ///     .required_object_array("guests", "Everybody who stays.", guest)
    ///     .optional_string_array("wishes", "Wishes in words.")
    ///     .optional_boolean("late", "Whether they arrive after midnight.");
    /// let schema = booking.schema()?;
    /// assert_eq!(schema["required"], agent::json!(["hotel", "arrival", "payer", "guests"]));
    /// assert_eq!(schema["properties"]["guests"]["items"]["required"], agent::json!(["name"]));
    /// # Ok::<(), agent::tool::DefinitionError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the first mistake in the declaration of a parameter.
    pub fn schema(&self) -> Result<Value, DefinitionError> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None => Ok(json!({
                "type": "object",
                "properties": self.properties,
                "required": self.required,
                "additionalProperties": false,
            })),
        }
    }

    fn change(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn add(
        &mut self,
        name: String,
        description: Option<String>,
        mut schema: Value,
        required: bool,
    ) {
        let problem = match &mut schema {
            _ if name.is_empty() => Some("it has no name"),
            _ if self.properties.contains_key(&name) => Some("there are two of this name"),
            Value::Object(keywords) => {
                if let Some(text) = description.filter(|text| !text.is_empty()) {
                    keywords.insert("description".to_owned(), text.into());
                }
                None
            }
            Value::Bool(_) => None,
            _ => Some("its schema is not a schema: write an object"),
        };
        if let Some(problem) = problem {
            return self.refuse(name, problem);
        }
        if required {
            self.required.push(name.clone().into());
        }
        self.properties.insert(name.clone(), schema);
        self.last = Some(name);
    }

    pub(super) fn add_words(&mut self, name: String, description: String, words: &[String], required: bool) {
        if words.is_empty() || words.iter().any(String::is_empty) {
            return self.refuse(name, "its words are none, or one of them is empty");
        }
        self.add(name, Some(description), json!({"type": "string", "enum": words}), required);
    }

    pub(super) fn add_object(
        &mut self,
        name: String,
        description: String,
        properties: &Self,
        required: bool,
        is_list: bool,
    ) {
        match properties.schema() {
            Ok(object) if is_list => {
                self.add(name, Some(description), json!({"type": "array", "items": object}), required);
            }
            Ok(object) => self.add(name, Some(description), object, required),
            Err(error) => {
                let reason = error.to_string();
                self.refuse(name, &reason);
            }
        }
    }

    pub(super) fn say(&mut self, keyword: String, value: Value) {
        let last = self.last.clone().unwrap_or_default();
        match self.properties.get_mut(&last) {
            Some(Value::Object(keywords)) => drop(keywords.insert(keyword, value)),
            _ => self.refuse(last, "a keyword applies to the parameter before it, and there is none"),
        }
    }

    fn refuse(&mut self, name: String, reason: &str) {
        self.error.get_or_insert(DefinitionError::Parameter { name, reason: reason.to_owned() });
    }
}

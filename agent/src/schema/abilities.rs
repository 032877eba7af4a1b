//! The abilities of each dialect, as data.
//!
//! Sources: OpenAI, *Structured model outputs*, "Supported schemas"; Anthropic, *Structured outputs*, "JSON Schema limitations";
//! Google, *Generate content* API, `FunctionDeclaration.parametersJsonSchema` and `Schema`; llama.cpp,
//! `common/json-schema-to-grammar.cpp`. Anthropic's rule for names of properties is in no page of theirs; its error says it:
//! "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (<https://github.com/anthropics/claude-code/issues/79418>). No such rule
//! of another provider is known. A keyword that a source does not mention goes into the description.

use super::Dialect;

/// Stands for all extension keywords in the list of a dialect.
pub(super) const EXTENSIONS: &str = "x-";

pub(super) struct Abilities {
    /// Keywords and annotations beyond `type`, `properties`, `required`, `items`, `enum`, `anyOf` and `description`.
    pub(super) keywords: &'static [&'static str],
    pub(super) formats: Formats,
    pub(super) patterns: Patterns,
    pub(super) optional: Optional,
    pub(super) null: Null,
    pub(super) members: Members,
    pub(super) references: References,
    pub(super) rest: RestKeyword,
    /// Whether a schema that accepts any value can be written.
    pub(super) any: bool,
    /// The maximum value of `minItems`.
    pub(super) min_items: u64,
    pub(super) names: Names,
    /// Whether `propertyOrdering` gives the order of keys.
    pub(super) ordering: bool,
}

impl Abilities {
    pub(super) fn has(&self, keyword: &str) -> bool {
        self.keywords.contains(&keyword)
    }
}

/// The names that properties may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Names {
    All,
    /// `^[a-zA-Z0-9_.-]{1,64}$`
    Plain,
}

#[derive(Clone, Copy)]
pub(super) enum Formats {
    All,
    Only(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Patterns {
    All,
    NoLookaround,
    /// Whole matches, of the syntax that a grammar can express.
    Grammar,
    None,
}

/// How a property is marked as optional.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Optional {
    /// `required` does not list it.
    LeftOut,
    /// It is required, and may be null.
    Null,
}

/// How a schema accepts null.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Null {
    /// A list of types if there is a type, else `anyOf`.
    Types,
    /// A list of types for scalars, else `anyOf`.
    ScalarTypes,
    /// `nullable: true`.
    Keyword,
}

/// The values that `enum` may contain.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Members {
    All,
    Scalars,
    StringsAndNumbers,
    Strings,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum References {
    /// `#` for the root, `#/$defs/…` elsewhere; other keywords may be beside them.
    Full,
    /// `#/$defs/…` only, because the root may be another schema than the plan's; other keywords may be beside them.
    Definitions,
    /// `#/$defs/…`, without other keywords.
    Alone,
    /// As `Alone`, but only within a property that is not required.
    Optional,
    None,
}

/// The values that `additionalProperties` may have.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RestKeyword {
    Schema,
    /// Always `false`.
    False,
    Absent,
}

const OPENAI_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const ANTHROPIC_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

static CANONICAL: Abilities = Abilities {
    keywords: &[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "prefixItems",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "not",
        "default",
        "examples",
        "deprecated",
        EXTENSIONS,
    ],
    formats: Formats::All,
    patterns: Patterns::All,
    optional: Optional::LeftOut,
    null: Null::Types,
    members: Members::All,
    references: References::Full,
    rest: RestKeyword::Schema,
    any: true,
    min_items: u64::MAX,
    names: Names::All,
    ordering: false,
};

/// No keyword is refused here; only the root differs.
static PLAIN: Abilities = Abilities { references: References::Definitions, ..CANONICAL };

static OPENAI: Abilities = Abilities {
    keywords: &[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ],
    formats: Formats::Only(OPENAI_FORMATS),
    patterns: Patterns::NoLookaround,
    optional: Optional::Null,
    null: Null::ScalarTypes,
    members: Members::Scalars,
    references: References::Alone,
    rest: RestKeyword::False,
    any: false,
    min_items: u64::MAX,
    names: Names::All,
    ordering: false,
};

static ANTHROPIC: Abilities = Abilities {
    keywords: &["minItems"],
    formats: Formats::Only(ANTHROPIC_FORMATS),
    patterns: Patterns::None,
    optional: Optional::LeftOut,
    references: References::None,
    min_items: 1,
    names: Names::Plain,
    ..OPENAI
};

static GEMINI: Abilities = Abilities {
    keywords: &["minimum", "maximum", "minItems", "maxItems", "prefixItems"],
    formats: Formats::All,
    patterns: Patterns::None,
    optional: Optional::LeftOut,
    null: Null::ScalarTypes,
    members: Members::StringsAndNumbers,
    references: References::Optional,
    rest: RestKeyword::Schema,
    any: true,
    min_items: u64::MAX,
    names: Names::All,
    ordering: false,
};

static GEMINI_LEGACY: Abilities = Abilities {
    keywords: &["minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"],
    formats: Formats::Only(&["date-time"]),
    patterns: Patterns::All,
    optional: Optional::LeftOut,
    null: Null::Keyword,
    members: Members::Strings,
    references: References::None,
    rest: RestKeyword::Absent,
    any: false,
    min_items: u64::MAX,
    names: Names::All,
    ordering: true,
};

/// Keywords that a grammar ignores are kept, because the model still reads them in its prompt.
static LLAMA_CPP: Abilities = Abilities {
    keywords: &[
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "prefixItems",
        "default",
        "examples",
    ],
    formats: Formats::Only(&["date-time", "date", "time", "uuid"]),
    patterns: Patterns::Grammar,
    optional: Optional::LeftOut,
    null: Null::ScalarTypes,
    members: Members::All,
    references: References::Alone,
    rest: RestKeyword::Schema,
    any: true,
    min_items: u64::MAX,
    names: Names::All,
    ordering: false,
};

pub(super) fn abilities(dialect: Dialect) -> &'static Abilities {
    match dialect {
        Dialect::Canonical => &CANONICAL,
        Dialect::Plain => &PLAIN,
        Dialect::OpenAiStrict => &OPENAI,
        Dialect::AnthropicStrict => &ANTHROPIC,
        Dialect::GeminiJsonSchema => &GEMINI,
        Dialect::GeminiLegacy => &GEMINI_LEGACY,
        Dialect::LlamaCpp => &LLAMA_CPP,
    }
}

//! The abilities of each dialect, as data.
//!
//! Sources: OpenAI, *Structured model outputs*, "Supported schemas"; Anthropic, *Structured outputs*, "JSON Schema limitations";
//! Google, *Generate content* API, `FunctionDeclaration.parametersJsonSchema` and `Schema`; llama.cpp,
//! `common/json-schema-to-grammar.cpp`. Anthropic documents its rule for names of properties only by an error:
//! "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'" (<https://github.com/anthropics/claude-code/issues/79418>). No such rule
//! of another provider is known. A keyword that a source does not mention goes into the description.

use super::Dialect;

/// The entry for all extension keywords in the list of a dialect.
pub(super) const EXTENSIONS: &str = "x-";

pub(super) struct Abilities {
    /// Keywords and annotations beyond `type`, `properties`, `required`, `items`, `enum`, `anyOf` and `description`.
    pub(super) keywords: &'static [&'static str],
    pub(super) formats: FormatSupport,
    pub(super) patterns: PatternSupport,
    pub(super) optional: OptionalMarking,
    pub(super) null: NullForm,
    pub(super) members: EnumMembers,
    pub(super) references: ReferenceSupport,
    pub(super) rest: RestKeyword,
    /// Whether a schema that accepts any value can be written.
    pub(super) any: bool,
    /// The maximum value of `minItems`.
    pub(super) min_items: u64,
    pub(super) names: NameRule,
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
pub(super) enum NameRule {
    All,
    /// `^[a-zA-Z0-9_.-]{1,64}$`
    Plain,
}

#[derive(Clone, Copy)]
pub(super) enum FormatSupport {
    All,
    Only(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum PatternSupport {
    All,
    NoLookaround,
    /// Whole matches, of the syntax that a grammar can express.
    Grammar,
    None,
}

/// How a property is marked as optional.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum OptionalMarking {
    /// `required` does not list it.
    LeftOut,
    /// It is required, and may be null.
    Null,
}

/// How a schema accepts null.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NullForm {
    /// A list of types if there is a type, else `anyOf`.
    Types,
    /// A list of types for scalars, else `anyOf`.
    ScalarTypes,
    /// `nullable: true`.
    Keyword,
}

/// The values that `enum` may contain.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum EnumMembers {
    All,
    Scalars,
    StringsAndNumbers,
    Strings,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ReferenceSupport {
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
    formats: FormatSupport::All,
    patterns: PatternSupport::All,
    optional: OptionalMarking::LeftOut,
    null: NullForm::Types,
    members: EnumMembers::All,
    references: ReferenceSupport::Full,
    rest: RestKeyword::Schema,
    any: true,
    min_items: u64::MAX,
    names: NameRule::All,
    ordering: false,
};

/// No keyword is refused here; only the root differs.
static PLAIN: Abilities = Abilities { references: ReferenceSupport::Definitions, ..CANONICAL };

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
    formats: FormatSupport::Only(OPENAI_FORMATS),
    patterns: PatternSupport::NoLookaround,
    optional: OptionalMarking::Null,
    null: NullForm::ScalarTypes,
    members: EnumMembers::Scalars,
    references: ReferenceSupport::Alone,
    rest: RestKeyword::False,
    any: false,
    min_items: u64::MAX,
    names: NameRule::All,
    ordering: false,
};

static ANTHROPIC: Abilities = Abilities {
    keywords: &["minItems"],
    formats: FormatSupport::Only(ANTHROPIC_FORMATS),
    patterns: PatternSupport::None,
    optional: OptionalMarking::LeftOut,
    references: ReferenceSupport::None,
    min_items: 1,
    names: NameRule::Plain,
    ..OPENAI
};

static GEMINI: Abilities = Abilities {
    keywords: &["minimum", "maximum", "minItems", "maxItems", "prefixItems"],
    formats: FormatSupport::All,
    patterns: PatternSupport::None,
    optional: OptionalMarking::LeftOut,
    null: NullForm::ScalarTypes,
    members: EnumMembers::StringsAndNumbers,
    references: ReferenceSupport::Optional,
    rest: RestKeyword::Schema,
    any: true,
    min_items: u64::MAX,
    names: NameRule::All,
    ordering: false,
};

static GEMINI_LEGACY: Abilities = Abilities {
    keywords: &["minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"],
    formats: FormatSupport::Only(&["date-time"]),
    patterns: PatternSupport::All,
    optional: OptionalMarking::LeftOut,
    null: NullForm::Keyword,
    members: EnumMembers::Strings,
    references: ReferenceSupport::None,
    rest: RestKeyword::Absent,
    any: false,
    min_items: u64::MAX,
    names: NameRule::All,
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
    formats: FormatSupport::Only(&["date-time", "date", "time", "uuid"]),
    patterns: PatternSupport::Grammar,
    optional: OptionalMarking::LeftOut,
    null: NullForm::ScalarTypes,
    members: EnumMembers::All,
    references: ReferenceSupport::Alone,
    rest: RestKeyword::Schema,
    any: true,
    min_items: u64::MAX,
    names: NameRule::All,
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

//! The JSON Schema features that each `Dialect` supports.
//!
//! Sources: OpenAI, *Structured model outputs*, "Supported schemas"; Anthropic, *Structured outputs*, "JSON Schema limitations"; Google,
//! *Generate content* API, `FunctionDeclaration.parametersJsonSchema` and `Schema`; llama.cpp, `common/json-schema-to-grammar.cpp`.
//! Anthropic documents its rule for property names only in an error text: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
//! (<https://github.com/anthropics/claude-code/issues/79418>). A keyword that a source does not mention is left out of the schema. The
//! description expresses the keyword if the renderer has a sentence for it.

use super::Dialect;

/// An entry of `Abilities::keywords` that stands for all keywords with the prefix `x-`.
pub(super) const EXTENSIONS: &str = "x-";

pub(super) struct Abilities {
    /// The keywords and annotations that the dialect has in addition to `type`, `properties`, `required`, `items`, `enum`, `anyOf` and
    /// `description`.
    pub(super) keywords: &'static [&'static str],
    pub(super) formats: FormatSupport,
    pub(super) patterns: PatternSupport,
    pub(super) optional: OptionalMarking,
    pub(super) null: NullForm,
    pub(super) members: EnumMembers,
    pub(super) references: ReferenceSupport,
    pub(super) rest: RestKeyword,
    pub(super) any: bool,
    pub(super) min_items: u64,
    pub(super) names: NameRule,
    /// Whether the dialect has `propertyOrdering`, which gives the order of keys.
    pub(super) ordering: bool,
}

impl Abilities {
    pub(super) fn has(&self, keyword: &str) -> bool {
        self.keywords.contains(&keyword)
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum NameRule {
    All,
    /// Names that match `^[a-zA-Z0-9_.-]{1,64}$`.
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
    /// Only patterns that match the whole text and that llama.cpp can convert to a grammar.
    Grammar,
    None,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum OptionalMarking {
    /// `required` does not list the property.
    LeftOut,
    /// `required` lists the property. Null means "absent".
    Null,
}

/// The notation for a schema that also accepts null.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum NullForm {
    /// A list such as `"type": ["string", "null"]`. A schema gets an `anyOf` instead if the schema has an `enum` or no `type`, or if its
    /// `type` is already a list.
    Types,
    /// As `Types` for scalars, and an `anyOf` for all other schemas.
    ScalarTypes,
    /// `nullable: true`.
    Keyword,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum EnumMembers {
    All,
    Scalars,
    StringsAndNumbers,
    Strings,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ReferenceSupport {
    /// `#` for the root, and `#/$defs/…` for definitions. Other keywords may stand next to a reference.
    Full,
    /// `#/$defs/…`, but not `#`, because the root may be rewritten. Other keywords may stand next to a reference.
    Definitions,
    /// `#/$defs/…`, without other keywords next to a reference.
    Alone,
    /// As `Alone`, but a reference may only occur within a property that is not required.
    Optional,
    None,
}

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

/// Includes keywords that the grammar ignores, because the model reads them in its prompt.
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

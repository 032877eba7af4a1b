//! The schema of a tool's result, if the return type has one.
//!
//! The generated code first takes the type of the value out of a `Result`, and then finds the schema of this type. Both steps use method
//! resolution, so that type aliases do not matter.

#![expect(missing_docs, reason = "for generated code only")]

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

/// A type that tools return. `Described` is a separate type with the schema, because another derive may already implement `JsonSchema` for
/// the returned type.
pub trait ResultSchema {
    type Described: JsonSchema;
}

macro_rules! as_described {
    ($([$($generics:tt)*] $ty:ty => $described:ty;)*) => {
        $(impl<$($generics)*> ResultSchema for $ty { type Described = $described; })*
    };
}

as_described! {
    [T: ResultSchema] Vec<T> => Vec<T::Described>;
    [T: ResultSchema] VecDeque<T> => Vec<T::Described>;
    [T: ResultSchema] Option<T> => Option<T::Described>;
    [T: ResultSchema] Box<T> => T::Described;
    [T: ResultSchema] Arc<T> => T::Described;
    [T: ResultSchema] &T => T::Described;
    [T: ResultSchema] BTreeMap<String, T> => BTreeMap<String, T::Described>;
    [T: ResultSchema, S] HashMap<String, T, S> => HashMap<String, T::Described>;
}

/// Makes `Probe::<T>::OUTPUT` false for types without [`ResultSchema`].
pub trait NoOutputSchema {
    const OUTPUT: bool = false;
}

impl<T: ?Sized> NoOutputSchema for super::probe::Probe<T> {}

impl<T: ResultSchema> super::probe::Probe<T> {
    pub const OUTPUT: bool = true;
}

/// A type whose schema describes a field of type `T`. `FROM` says where the schema comes from: 2 is schemars, 1 is `ToolOutput`, and 0 is
/// a schema that accepts any value.
#[derive(Debug)]
pub struct OutputField<T, const FROM: u8>(PhantomData<T>);

pub const fn output_from(described: bool, output: bool) -> u8 {
    match (described, output) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    }
}

macro_rules! delegate {
    ($from:literal, [$($generics:tt)*], $to:ty) => {
        impl<$($generics)*> JsonSchema for OutputField<T, $from> {
            fn inline_schema() -> bool {
                <$to>::inline_schema()
            }
            fn schema_name() -> Cow<'static, str> {
                <$to>::schema_name()
            }
            fn schema_id() -> Cow<'static, str> {
                <$to>::schema_id()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$to>::json_schema(generator)
            }
            fn _schemars_private_non_optional_json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$to>::_schemars_private_non_optional_json_schema(generator)
            }
            fn _schemars_private_is_option() -> bool {
                <$to>::_schemars_private_is_option()
            }
        }
    };
}

delegate!(2, [T: JsonSchema], T);
delegate!(1, [T: ResultSchema], T::Described);
delegate!(0, [T], Value);

/// A marker for the return type of a tool. The generated code calls `value`, which takes `T` out of a `Result<T, E>`, and then `schema`.
#[derive(Debug)]
pub struct ResultOf<T>(PhantomData<fn() -> T>);

impl<T> ResultOf<T> {
    pub const NEW: Self = Self(PhantomData);
}

impl<T, E> ResultOf<Result<T, E>> {
    pub fn value(self) -> ResultOf<T> {
        ResultOf::NEW
    }
}

/// Provides `value` for a type that is not a `Result`.
pub trait OutputOfValue<T> {
    fn value(self) -> ResultOf<T>;
}

impl<T> OutputOfValue<T> for ResultOf<T> {
    fn value(self) -> Self {
        self
    }
}

impl<T: JsonSchema> ResultOf<T> {
    pub fn schema(&self) -> Option<Value> {
        of::<T>()
    }
}

/// Provides `schema` for a type that derives `ToolOutput`, and for a list, map, pointer or `Option` of such a type.
pub trait OutputWithSchema {
    fn schema(&self) -> Option<Value>;
}

impl<T: ResultSchema> OutputWithSchema for ResultOf<T> {
    fn schema(&self) -> Option<Value> {
        of::<T::Described>()
    }
}

/// Provides `schema` for types without a schema. The impl is for a reference, so that method resolution tries it last.
pub trait OutputUnknown {
    fn schema(&self) -> Option<Value> {
        None
    }
}

impl<T> OutputUnknown for &ResultOf<T> {}

/// Maximum size of a list's schema with inlined definitions, in bytes.
const MAX_INLINED: usize = 16 * 1024;

/// Returns the output schema of an object or a list. Returns `None` for other types, whose values are sent only as text.
///
/// FastMCP's client ignores the definitions in the schema of a list. So the definitions are inlined, except recursive ones, if the inlined
/// schema has at most [`MAX_INLINED`] bytes.
fn of<T: JsonSchema>() -> Option<Value> {
    let schema = generated::<T>(false);
    match schema.get("type").and_then(Value::as_str)? {
        "array" if schema.get("$defs").is_some() => {
            let inlined = generated::<T>(true);
            Some(if inlined.to_string().len() <= MAX_INLINED { inlined } else { schema })
        }
        "object" | "array" => Some(schema),
        _ => None,
    }
}

fn generated<T: JsonSchema>(inlined: bool) -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = inlined;
        })
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

//! Argument types for which serde has no good text form.

mod base64;
mod duration;
#[cfg(test)]
mod tests;

pub use base64::Base64;
pub use duration::HumanDuration;

use super::hooks::{CHECKED, put_aside_refusal};
use schemars::{Schema, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;

trait ParsedText: Sized {
    /// A description of the expected text, for errors of serde.
    const WANTED: &'static str;
    type Error: Display;

    fn from_text(text: &str) -> Result<Self, Self::Error>;
    /// Returns the value that replaces a wrong text, so that parsing continues and finds further mistakes.
    fn nothing() -> Self;
}

/// Parses a value from a text. A wrong text becomes [`ParsedText::nothing`], so that all mistakes are found.
fn read<'de, T: ParsedText, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_newtype_struct(CHECKED, TextVisitor { certain: false, type_: PhantomData })
}

struct TextVisitor<T> {
    /// `true` only if serde has not buffered the value. Serde buffers the values of untagged enums, for example.
    certain: bool,
    type_: PhantomData<T>,
}

impl<'de, T: ParsedText> Visitor<'de> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WANTED)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(TextVisitor { certain: true, type_: PhantomData })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        match T::from_text(text) {
            Ok(value) => Ok(value),
            Err(error) if put_aside_refusal(&error, self.certain) => Ok(T::nothing()),
            Err(error) => Err(E::custom(error)),
        }
    }
}

/// Returns the schema of a text whose format the Rust type checks. `keyword` is `format` or `contentEncoding`.
fn text_of(format: &str, keyword: &str) -> Schema {
    let mut schema = json_schema!({"type": "string", "x-checked": true});
    schema.insert(keyword.to_owned(), format.into());
    schema
}

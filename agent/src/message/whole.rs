//! Stores integers of 64 bits as text, because programs that pass JSON on (JavaScript, some databases) keep only 53 bits of a number.
//! Numbers that older versions stored can be read, too.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
pub(crate) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct IntegerVisitor;

    impl Visitor<'_> for IntegerVisitor {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number of 64 bits, as text or as a number")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
            Ok(number)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_any(IntegerVisitor)
}

//! Finds NaN and infinities, which `serde_json` writes as `null`.

use serde::ser::{self, Serialize, Serializer};
use serde_json::Value;
use std::fmt::{self, Display};

pub(super) struct NotFinite {
    path: Vec<String>,
    number: f64,
}

impl NotFinite {
    /// Finds the first number in `value` that is not finite. The search is skipped if `written`, the value as JSON, has no `null`.
    pub(super) fn find<T: Serialize + ?Sized>(value: &T, written: &Value) -> Option<NotFinite> {
        let may_be = has_null(written);
        let end = may_be.then(|| value.serialize(Finder).err().and_then(|stop| stop.0));
        end.flatten().map(|mut found| {
            found.path.reverse();
            found
        })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.path.is_empty()
    }
}

/// Writes `NaN`, or `NaN at /values/0` if the number is within a value.
impl Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        if !self.is_whole() {
            f.write_str(" at ")?;
        }
        self.path.iter().try_for_each(|step| write!(f, "/{step}"))
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(map) => map.values().any(has_null),
        _ => false,
    }
}

/// The error that ends the search. It has the number that is not finite, or `None` if the value cannot be serialized.
#[derive(Debug)]
struct Stop(Option<NotFinite>);

impl fmt::Debug for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not finite")
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self(None)
    }
}

impl Stop {
    fn below(mut self, step: impl Into<String>) -> Self {
        if let Some(found) = &mut self.0 {
            found.path.push(step.into());
        }
        self
    }
}

/// A serializer that only looks for a number that is not finite.
struct Finder;

struct FiniteWalk {
    variant: Option<&'static str>,
    index: usize,
    key: String,
}

type Walked = Result<(), Stop>;

impl FiniteWalk {
    /// Starts a container. `variant` is the name of an enum variant, which is a key in JSON.
    fn of(variant: Option<&'static str>) -> FiniteWalk {
        FiniteWalk { variant, index: 0, key: String::new() }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        let index = self.index;
        self.index += 1;
        self.below(|| index.to_string(), value)
    }

    /// Searches a value in the container. If the search ends there, `step` returns the key or the index of the value.
    fn below<T: Serialize + ?Sized>(&self, step: impl FnOnce() -> String, value: &T) -> Walked {
        value.serialize(Finder).map_err(|end| {
            let end = end.below(step());
            match self.variant {
                Some(variant) => end.below(variant),
                None => end,
            }
        })
    }
}

macro_rules! nothing {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, _: $type) -> Walked { Ok(()) })*
    };
}

impl Serializer for Finder {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = FiniteWalk;
    type SerializeTuple = FiniteWalk;
    type SerializeTupleStruct = FiniteWalk;
    type SerializeTupleVariant = FiniteWalk;
    type SerializeMap = FiniteWalk;
    type SerializeStruct = FiniteWalk;
    type SerializeStructVariant = FiniteWalk;

    nothing! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, number: f32) -> Walked {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Walked {
        if number.is_finite() { Ok(()) } else { Err(Stop(Some(NotFinite { path: Vec::new(), number }))) }
    }

    fn serialize_none(self) -> Walked {
        Ok(())
    }

    fn serialize_unit(self) -> Walked {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Walked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Walked {
        value.serialize(Finder).map_err(|stop| stop.below(variant))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<FiniteWalk, Stop> {
        Ok(FiniteWalk::of(Some(variant)))
    }
}

macro_rules! items {
    ($($name:ident $method:ident),* $(,)?) => {$(
        impl ser::$name for FiniteWalk {
            type Ok = ();
            type Error = Stop;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
                self.item(value)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! fields {
    ($($name:ident),* $(,)?) => {$(
        impl ser::$name for FiniteWalk {
            type Ok = ();
            type Error = Stop;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Walked {
                self.below(|| key.to_owned(), value)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )*};
}

fields! { SerializeStruct, SerializeStructVariant }

impl ser::SerializeMap for FiniteWalk {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Walked {
        self.key = match serde_json::to_value(key) {
            Ok(Value::String(text)) => text,
            Ok(other) => other.to_string(),
            Err(_) => String::new(),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        self.below(|| self.key.clone(), value)
    }

    fn end(self) -> Walked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::NotFinite;
    use serde::Serialize;
    use std::collections::BTreeMap;

    fn told<T: Serialize>(value: &T) -> Option<String> {
        let written = serde_json::to_value(value).expect("JSON");
        NotFinite::find(value, &written).map(|found| found.to_string())
    }

    #[derive(Serialize)]
    enum NestedFloats {
        Circle(f64),
        Line { from: f32, to: Option<f32> },
        Pair(f64, f64),
    }

    #[test]
    fn the_place_is_told_as_json_has_it() {
        assert_eq!(told(&f64::NAN).as_deref(), Some("NaN"));
        assert_eq!(told(&Some(f32::NEG_INFINITY)).as_deref(), Some("-inf"));
        assert_eq!(told(&[1.0, f64::INFINITY]).as_deref(), Some("inf at /1"));
        assert_eq!(told(&NestedFloats::Circle(f64::NAN)).as_deref(), Some("NaN at /Circle"));
        assert_eq!(
            told(&NestedFloats::Line { from: 1.0, to: Some(f32::NAN) }).as_deref(),
            Some("NaN at /Line/to")
        );
        assert_eq!(told(&NestedFloats::Pair(0.0, f64::NAN)).as_deref(), Some("NaN at /Pair/1"));
        assert_eq!(told(&BTreeMap::from([(7, (1, f64::NAN))])).as_deref(), Some("NaN at /7/1"));
        assert_eq!(told(&(1.5, None::<f64>, ())), None);
    }
}

//! Compile-time checks that constraints such as `range`, `length` and `pattern` fit the type of a parameter, as far as the type is known.

#![expect(missing_docs, reason = "for generated code only; what is there is explained where it is not plain")]

use super::probe::Probe;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// The kind of a type, which decides whether a constraint applies to the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Sort {
    /// A floating-point number.
    Number,
    Integer(Integer),
    Text,
    List,
    Other,
    /// A type of unknown kind, for which constraints are not checked at compile time.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Integer {
    name: &'static str,
    min: i128,
    /// The maximum of the type; for `u128`, the maximum of `i128`, the largest bound that this field can hold.
    max: i128,
}

/// Provides `SORT` for types that are not a `KnownSort`.
pub trait SortUnknown {
    const SORT: Sort = Sort::Unknown;
}

impl<T: ?Sized> SortUnknown for Probe<T> {}

impl<T: KnownSort> Probe<T> {
    pub const SORT: Sort = T::SORT;
}

pub trait KnownSort {
    const SORT: Sort;
}

macro_rules! sorted {
    ($($sort:ident: [$($generics:tt)*] $($ty:ty),*;)*) => {
        $(sorted!(@each $sort [$($generics)*] $($ty),*);)*
    };
    (@each $sort:ident $generics:tt $($ty:ty),*) => {
        $(sorted!(@one $sort $generics $ty);)*
    };
    (@one $sort:ident [$($generics:tt)*] $ty:ty) => {
        impl<$($generics)*> KnownSort for $ty {
            const SORT: Sort = Sort::$sort;
        }
    };
}

sorted! {
    Number: [] f32, f64;
    Text: [] String, char, PathBuf, Box<str>, Arc<str>, Cow<'static, str>;
    Other: [] bool;
    List: [T] Vec<T>, VecDeque<T>, BTreeSet<T>, Box<[T]>, Arc<[T]>;
    List: [T, S] HashSet<T, S>;
    List: [K, V] BTreeMap<K, V>;
    List: [K, V, S] HashMap<K, V, S>;
}

macro_rules! integers {
    ($($ty:ident),*) => {
        $(impl KnownSort for $ty {
            const SORT: Sort = Sort::Integer(Integer {
                name: stringify!($ty),
                min: $ty::MIN as i128,
                max: $ty::MAX as i128,
            });
        })*
    };
}

integers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, usize);

impl KnownSort for u128 {
    const SORT: Sort = Sort::Integer(Integer { name: "u128", min: 0, max: i128::MAX });
}

impl<T: KnownSort> KnownSort for Option<T> {
    const SORT: Sort = T::SORT;
}

impl<T: KnownSort> KnownSort for Box<T> {
    const SORT: Sort = T::SORT;
}

impl Sort {
    #[track_caller]
    pub const fn range(self) {
        match self {
            Self::Number | Self::Integer(_) | Self::Unknown => {}
            Self::Text => panic!("`range` bounds a number; for text write `length(…)`"),
            Self::List => panic!(
                "`range` bounds a number; for the size of a list or map write `length(…)`, and for the numbers in a list, on \
                 a field, `#[schemars(inner(range(min = 1, max = 50)))]`"
            ),
            Self::Other => panic!("`range` bounds a number, which a `bool` is not: remove it"),
        }
    }

    /// Checks that an integer type can hold an end of a `range`. `written` is the text of the end in the source code.
    #[track_caller]
    pub const fn end(self, end: i128, written: &str) {
        if let Self::Integer(Integer { name, min, max }) = self
            && (end < min || end > max)
        {
            refuse(&[written, " does not fit `", name, "`"]);
        }
    }

    #[track_caller]
    pub const fn fraction(self) {
        assert!(!matches!(self, Self::Integer(_)), "an integer's range has whole ends");
    }

    /// Checks a constant in `range(…)`. `exact` is the constant as `f64`, and `whole` is the constant cast to `i128`.
    #[track_caller]
    #[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "both sides lose the same")]
    pub const fn constant(self, whole: i128, exact: f64, written: &str) {
        if whole as f64 == exact {
            self.end(whole, written);
        } else {
            self.fraction();
        }
    }

    #[track_caller]
    pub const fn length(self) {
        match self {
            Self::Text | Self::List | Self::Unknown => {}
            Self::Number | Self::Integer(_) => {
                panic!("`length` bounds text, lists and maps; for a number write `range(…)`")
            }
            Self::Other => {
                panic!("`length` bounds text, lists and maps, and a `bool` has no length: remove it")
            }
        }
    }

    #[track_caller]
    pub const fn unique(self) {
        assert!(matches!(self, Self::List | Self::Unknown), "`unique` is for lists");
    }

    /// Checks `multiple_of`. `whole` is `true` if the number was written without a decimal point.
    #[track_caller]
    pub const fn multiple(self, whole: bool) {
        assert!(
            matches!(self, Self::Number | Self::Integer(_) | Self::Unknown),
            "`multiple_of` is for numbers"
        );
        assert!(whole || !matches!(self, Self::Integer(_)), "an integer is a multiple of whole numbers");
    }

    #[track_caller]
    pub const fn format(self) {
        assert!(matches!(self, Self::Text | Self::Unknown), "`format` is for text");
    }

    #[track_caller]
    pub const fn example_text(self) {
        assert!(
            matches!(self, Self::Text | Self::List | Self::Unknown),
            "this example is text, and the argument is not: write a value as it would be sent, for example `5`"
        );
    }

    #[track_caller]
    pub const fn example_number(self) {
        assert!(
            matches!(self, Self::Number | Self::Integer(_) | Self::List | Self::Unknown),
            "this example is a number, and the argument is not: write a value as it would be sent, for example `\"x\"`"
        );
    }

    #[track_caller]
    pub const fn pattern(self) {
        assert!(matches!(self, Self::Text | Self::Unknown), "`pattern` is for text");
    }
}

/// The default values of constants that `Probe` overrides for some types.
pub trait KeysUnknown {
    const TEXT_KEYS: bool = true;
    const IS_MAP: bool = false;
}

impl<T: ?Sized> KeysUnknown for Probe<T> {}

impl<T: WithoutTextKeys> Probe<T> {
    pub const TEXT_KEYS: bool = false;
}

impl<T: Map> Probe<T> {
    pub const IS_MAP: bool = true;
}

pub trait Map {}

impl<K, V> Map for BTreeMap<K, V> {}
impl<K, V, S> Map for HashMap<K, V, S> {}

/// A map that `serde_json` can neither read nor write, because its keys cannot be the keys of a JSON object.
pub trait WithoutTextKeys {}

impl<K: Composed, V> WithoutTextKeys for BTreeMap<K, V> {}
impl<K: Composed, V, S> WithoutTextKeys for HashMap<K, V, S> {}

/// A type that cannot be the key of a JSON object, because it is serialized as a list or as `null`.
pub trait Composed {}

impl Composed for () {}
impl<A> Composed for (A,) {}
impl<A, B> Composed for (A, B) {}
impl<A, B, C> Composed for (A, B, C) {}
impl<A, B, C, D> Composed for (A, B, C, D) {}
impl<A, const N: usize> Composed for [A; N] {}

/// Panics at compile time if `are` is `false`. `are` states whether the keys of a map can be the keys of a JSON object.
#[track_caller]
#[expect(clippy::missing_panics_doc, reason = "it is a compile error")]
pub const fn text_keys(are: bool) {
    assert!(are, "a key of a JSON object is text, a number or a word of an enum: write a list of pairs");
}

/// Panics with the joined parts, cut to 200 bytes. The parts are joined because a panic in a constant prints only one text.
#[track_caller]
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time; `at` stays below the length")]
const fn refuse(parts: &[&str]) -> ! {
    let (mut text, mut end, mut part) = ([b' '; 200], 0, 0);
    while part < parts.len() {
        let (bytes, mut at) = (parts[part].as_bytes(), 0);
        while at < bytes.len() && end < text.len() {
            text[end] = bytes[at];
            at += 1;
            end += 1;
        }
        part += 1;
    }
    match std::str::from_utf8(text.split_at(end).0) {
        Ok(text) => panic!("{}", text),
        Err(_) => panic!("this end of the range does not fit the type"),
    }
}

/// A type that an end of a `range` can have.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be an end of a `range`", label = "not a number")]
pub trait Bound: serde::Serialize {
    /// The type itself. With this associated type, the compiler reports only one error for a type without the trait.
    type End;
}

macro_rules! bounds {
    ($($ty:ty),*) => { $(impl Bound for $ty { type End = $ty; })* };
}

bounds!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);

/// Returns the number unchanged. Does not compile for a type without the trait [`Bound`].
pub const fn bound<T: Bound<End = T> + Copy>(end: T) -> T::End {
    end
}

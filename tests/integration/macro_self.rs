//! `Self` anywhere in the signature of a method that is a tool, and in the options of its arguments.

#![expect(
    clippy::needless_arbitrary_self_type,
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    reason = "tools as people write them"
)]

use crate::macro_support::{outcome, text};
use agent::{Registry, ToolArgs, ToolContext, ToolOutput, ToolSet, tool, tools};
use std::sync::Arc;

#[derive(ToolArgs, ToolOutput, Clone, Debug, PartialEq)]
struct Position {
    lat: f64,
}

trait Journey {
    type Leg;
    type Failure;
}

impl Journey for Position {
    type Leg = u8;
    type Failure = String;
}

struct Wrong;

#[tool]
impl Position {
    const NORTH: f64 = 90.0;
    const POLE: Self = Self { lat: Self::NORTH };

    fn far(lat: &f64) -> bool {
        *lat > Self::NORTH
    }

    /// Itself.
    #[tool]
    fn itself(&self) -> Self {
        self.clone()
    }

    /// Perhaps.
    #[tool]
    fn fallible(&self) -> Result<Self, String> {
        Ok(self.clone())
    }

    /// A list.
    #[tool]
    fn list(&self) -> Vec<Self> {
        vec![self.clone()]
    }

    /// One or none.
    #[tool]
    fn option(&self) -> Option<Self> {
        Some(self.clone())
    }

    /// In a box.
    #[tool]
    fn boxed(&self) -> Box<Self> {
        Box::new(self.clone())
    }

    /// Two.
    #[tool]
    fn tuple(&self) -> (Self, [Self; 1]) {
        (self.clone(), [self.clone()])
    }

    /// Of a trait.
    #[tool]
    fn associated(&self) -> Result<<Self as Journey>::Leg, <Self as Journey>::Failure> {
        Ok(3)
    }

    /// Hidden.
    #[tool]
    fn hidden(&self) -> impl Into<Option<Self>> + serde::Serialize + use<> {
        self.clone()
    }

    /// Later.
    #[tool]
    async fn later(&self) -> Result<Option<Self>, String>
    where
        Self: Sized,
    {
        Ok(Some(self.clone()))
    }

    /// Without a value.
    #[tool]
    fn pole() -> Self {
        Self::POLE
    }

    /// As the whole argument object.
    #[tool(approval = Self::risky)]
    fn whole(&self, other: Self) -> f64 {
        self.lat + other.lat
    }

    fn risky(other: &Self) -> bool {
        other.lat > Self::NORTH
    }

    /// As arguments, a rule and a default.
    #[tool(approval = when(|a: &Self, b: &Option<Self>| Self::far(&a.lat) && b.is_none()))]
    fn arguments(
        &self,
        a: Self,
        b: Option<Self>,
        #[arg(default = Self { lat: Self::NORTH })] c: Self,
        #[arg(default = vec![Self::POLE])] d: Vec<Self>,
    ) -> f64 {
        a.lat + b.map_or(0.0, |b| b.lat) + c.lat + d.iter().map(|d| d.lat).sum::<f64>()
    }

    /// From the state.
    #[tool]
    fn injected(&self, origin: &Self) -> f64 {
        self.lat - origin.lat
    }

    /// The receiver is spelled out.
    #[tool]
    fn spelled(self: &Self, #[arg(with(Self::parsed as String))] at: Self) -> f64 {
        self.lat + at.lat
    }

    fn parsed(text: String) -> Result<Self, std::num::ParseFloatError> {
        Ok(Self { lat: text.parse()? })
    }
}

#[tokio::test]
async fn of_a_plain_type() {
    let set = || tools![Position { lat: 1.5 }];
    for (name, arguments, expected) in [
        ("itself", "{}", r#"{"lat":1.5}"#),
        ("fallible", "{}", r#"{"lat":1.5}"#),
        ("list", "{}", r#"[{"lat":1.5}]"#),
        ("option", "{}", r#"{"lat":1.5}"#),
        ("boxed", "{}", r#"{"lat":1.5}"#),
        ("tuple", "{}", r#"[{"lat":1.5},[{"lat":1.5}]]"#),
        ("associated", "{}", "3"),
        ("hidden", "{}", r#"{"lat":1.5}"#),
        ("later", "{}", r#"{"lat":1.5}"#),
        ("pole", "{}", r#"{"lat":90.0}"#),
        ("whole", r#"{"lat":2}"#, "3.5"),
        ("arguments", r#"{"a":{"lat":1},"b":{"lat":2}}"#, "183.0"),
        ("spelled", r#"{"at":"2.5"}"#, "4.0"),
    ] {
        assert_eq!(text(set(), name, arguments).await, expected, "{name}");
    }
    let cx = ToolContext::new().with_state(Position { lat: 0.5 }).expect("one of its type");
    assert_eq!(outcome(set(), "injected", "{}", &cx).await.text(), "1.0");
    let registry = Registry::new(set()).expect("a sound set");
    let described = |name: &str| {
        let schema = registry.get(name).expect("it is there").definition().output_schema().cloned();
        schema.map(|schema| schema.to_string())
    };
    for name in ["itself", "fallible"] {
        let schema = described(name).expect("an object is described");
        assert!(schema.contains(r#""lat""#), "{name}: {schema}");
    }
}

#[derive(Clone)]
struct Stack<T> {
    items: Vec<T>,
}

impl<T: serde::Serialize> serde::Serialize for Stack<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.items.serialize(serializer)
    }
}

impl<T: Clone> Stack<T> {
    fn new(items: &[T]) -> Self {
        Self { items: items.to_vec() }
    }
}

#[tool]
impl<T: serde::Serialize + Clone + Send + Sync + 'static> Stack<T> {
    /// All of them.
    #[tool]
    fn all(&self) -> Self {
        Self::new(&self.items)
    }

    /// All of them, twice.
    #[tool]
    fn twice(&self) -> Result<Vec<Self>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(vec![self.clone(), self.clone()])
    }
}

#[tool]
impl Stack<Wrong> {
    /// How many.
    #[tool]
    fn count(&self, #[arg(default = Self::least(), validate = Self::check)] least: usize) -> usize {
        self.items.len().max(least)
    }

    fn least() -> usize {
        2
    }

    fn check(least: &usize) -> Result<(), String> {
        if *least > 5 { Err("too many".into()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn of_a_generic_type() {
    let numbers = || tools![{ Stack { items: vec![1, 2] } }];
    assert_eq!(text(numbers(), "all", "{}").await, "[1,2]");
    assert_eq!(text(numbers(), "twice", "{}").await, "[[1,2],[1,2]]");
    let wrong: ToolSet = tools![{ Arc::new(Stack { items: vec![Wrong] }) }];
    assert_eq!(text(wrong, "count", "{}").await, "2");
}

#[derive(ToolArgs, Debug)]
struct Tree {
    #[arg(default = Self::NOTHING, range(Self::NOTHING..))]
    value: u8,
    #[serde(default)]
    below: Vec<Self>,
    next: Option<Box<Self>>,
}

impl Tree {
    const NOTHING: u8 = 4;
}

/// Adds it all up.
#[tool]
fn sum(tree: Tree) -> u32 {
    u32::from(tree.value)
        + tree.below.into_iter().map(sum).sum::<u32>()
        + tree.next.map_or(0, |next| sum(*next))
}

#[derive(ToolArgs, Default)]
struct Pair<T: Default> {
    #[arg(default = Self::default().left)]
    left: T,
    #[arg(default = Self { left: T::default(), right: T::default() }.right)]
    right: T,
}

/// Adds two.
#[tool]
fn add(pair: Pair<u8>) -> u8 {
    pair.left + pair.right
}

#[tokio::test]
async fn of_types_that_are_arguments() {
    assert_eq!(text(tools![sum], "sum", r#"{"below":[{"value":5}],"next":{}}"#).await, "13");
    assert_eq!(text(tools![add], "add", r#"{"left":5}"#).await, "5");
}

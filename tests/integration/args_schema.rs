//! The schema that the model is shown, and that it says what is checked.

use super::{W, options, plan};
use agent::args::{CoercionPolicy, Plan, PlanOptions, UnknownKeys};
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn check<T: JsonSchema>(want: Expect) {
    let schema = plan::<T>(PlanOptions::default()).schema().clone();
    want.assert_eq(&serde_json::to_string_pretty(&schema).expect("JSON"));
}

/// A color.
#[derive(Debug, Deserialize, JsonSchema)]
enum Color {
    /// Warm.
    Red,
    /// Cool.
    Blue,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Mixed {
    /// Nothing at all.
    Nothing,
    /// A number.
    Number(i64),
}

fn five() -> u32 {
    5
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Everything {
    /// What it is
    /// called.
    name: String,
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 50), extend("x-coerce" = "exact", "x-aliases" = ["n"]))]
    limit: u32,
    wide: u64,
    maybe: Option<i32>,
    list: Option<Vec<Option<f32>>>,
    #[schemars(extend("x-secret" = true))]
    color: Option<Color>,
    mixed: Mixed,
}

#[test]
fn canonical_form() {
    check::<Everything>(expect![[r#"
        {
          "type": "object",
          "properties": {
            "name": {
              "type": "string",
              "description": "What it is\ncalled."
            },
            "limit": {
              "type": "integer",
              "minimum": 1,
              "maximum": 50,
              "default": 5
            },
            "wide": {
              "type": "integer",
              "minimum": 0
            },
            "maybe": {
              "type": "integer",
              "minimum": -2147483648,
              "maximum": 2147483647
            },
            "list": {
              "type": "array",
              "items": {
                "type": [
                  "number",
                  "null"
                ]
              }
            },
            "color": {
              "type": "string",
              "enum": [
                "Red",
                "Blue"
              ],
              "description": "A color.\n- Red: Warm.\n- Blue: Cool."
            },
            "mixed": {
              "anyOf": [
                {
                  "type": "string",
                  "enum": [
                    "Nothing"
                  ],
                  "description": "- Nothing: Nothing at all."
                },
                {
                  "type": "object",
                  "properties": {
                    "Number": {
                      "type": "integer"
                    }
                  },
                  "required": [
                    "Number"
                  ],
                  "additionalProperties": false,
                  "description": "A number."
                }
              ]
            }
          },
          "required": [
            "name",
            "wide",
            "mixed"
          ],
          "additionalProperties": false
        }"#]]);
}

#[test]
fn recursion_keeps_a_reference() {
    check::<W<super::shapes::Tree>>(expect![[r##"
        {
          "type": "object",
          "properties": {
            "v": {
              "$ref": "#/$defs/Tree"
            }
          },
          "required": [
            "v"
          ],
          "additionalProperties": false,
          "description": "One parameter.",
          "$defs": {
            "Tree": {
              "type": "object",
              "properties": {
                "v": {
                  "type": "integer",
                  "minimum": -2147483648,
                  "maximum": 2147483647
                },
                "kids": {
                  "type": "array",
                  "items": {
                    "$ref": "#/$defs/Tree"
                  }
                },
                "next": {
                  "$ref": "#/$defs/Tree"
                }
              },
              "required": [
                "v"
              ],
              "additionalProperties": false
            }
          }
        }"##]]);
    check::<super::shapes::Tree>(expect![[r##"
        {
          "type": "object",
          "properties": {
            "v": {
              "type": "integer",
              "minimum": -2147483648,
              "maximum": 2147483647
            },
            "kids": {
              "type": "array",
              "items": {
                "$ref": "#"
              }
            },
            "next": {
              "$ref": "#"
            }
          },
          "required": [
            "v"
          ],
          "additionalProperties": false
        }"##]]);
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Empty {}

#[test]
fn required_is_always_there() {
    let schema = plan::<Empty>(PlanOptions::default()).schema().clone();
    assert_eq!(
        schema,
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false})
    );
    let keep = plan::<Empty>(PlanOptions::default().unknown(UnknownKeys::Keep));
    assert_eq!(keep.schema(), &json!({"type": "object", "properties": {}, "required": []}));
}

#[test]
fn roots_that_are_no_object() {
    for error in [
        Plan::for_type::<i64>("t", PlanOptions::default()),
        Plan::for_type::<Vec<String>>("t", PlanOptions::default()),
        Plan::for_type::<Option<Empty>>("t", PlanOptions::default()),
        Plan::for_type::<()>("t", PlanOptions::default()),
    ] {
        assert_eq!(error.expect_err("no object").keyword(), "type");
    }
    assert!(Plan::for_type::<std::collections::BTreeMap<String, i64>>("t", PlanOptions::default()).is_ok());
}

/// Values that probe the borders of everything above.
fn probes() -> Vec<Value> {
    let scalars = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(50),
        json!(51),
        json!(1.0),
        json!(1.5),
        json!(4_294_967_295u64),
        json!(4_294_967_296u64),
        json!(""),
        json!("1"),
        json!("Red"),
        json!("red"),
        json!("Nothing"),
        json!([]),
        json!([1]),
        json!([1.5, null]),
        json!(["a"]),
        json!({}),
        json!({"Number": 1}),
        json!({"Number": "1"}),
        json!({"Nothing": null}),
        json!({"Number": 1, "x": 2}),
        json!("circle"),
        json!({"kind": "circle", "r": 1}),
        json!({"kind": "rect", "w": 1, "h": 2.5}),
        json!({"kind": "rect", "w": 1}),
        json!({"kind": "nothing"}),
        json!({"a": 1}),
        json!({"a": "1"}),
        json!({"v": 1}),
        json!({"v": 1, "kids": [{"v": 2}]}),
        json!({"v": 1, "kids": [{"w": 2}]}),
        json!([1, 1]),
        json!([1, 1.0]),
        json!(["a", "a"]),
    ];
    scalars.to_vec()
}

#[track_caller]
fn agrees<T: serde::de::DeserializeOwned + JsonSchema>() {
    let plan = plan::<T>(options(CoercionPolicy::exact()));
    let oracle = jsonschema::validator_for(plan.schema()).expect("a schema");
    let mut accepted = 0;
    for probe in probes() {
        for arguments in [json!({"v": probe}), json!({"v": probe, "z": 1}), probe.clone()] {
            let ours = plan.parse::<T>(&arguments.to_string());
            assert_eq!(ours.is_ok(), oracle.is_valid(&arguments), "{arguments}\n{}", plan.schema());
            accepted += usize::from(ours.is_ok());
        }
    }
    assert!(accepted > 0, "no probe fits {}", plan.schema());
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Shape {
    Circle { r: i64 },
    Rect { w: i64, h: Option<f64> },
    Nothing,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only whether it parses matters")]
enum Untagged {
    I(i64),
    S(String),
    L(Vec<i64>),
    O { a: i64 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only whether it parses matters")]
struct Ranged {
    #[schemars(range(min = 1, max = 50))]
    v: u32,
}

#[test]
fn exact_is_what_the_schema_says() {
    agrees::<W<i64>>();
    agrees::<W<u32>>();
    agrees::<W<f64>>();
    agrees::<W<bool>>();
    agrees::<W<String>>();
    agrees::<W<char>>();
    agrees::<W<Option<i64>>>();
    agrees::<W<Vec<i64>>>();
    agrees::<W<Vec<Option<f64>>>>();
    agrees::<W<(i64, i64)>>();
    agrees::<W<std::collections::BTreeSet<i64>>>();
    agrees::<W<std::collections::BTreeMap<String, i64>>>();
    agrees::<W<std::collections::BTreeMap<i32, i64>>>();
    agrees::<W<Color>>();
    agrees::<W<Mixed>>();
    agrees::<W<Shape>>();
    agrees::<W<Option<Shape>>>();
    agrees::<Shape>();
    agrees::<W<Untagged>>();
    agrees::<W<super::shapes::Tree>>();
    agrees::<super::shapes::Tree>();
    agrees::<W<Value>>();
    agrees::<Ranged>();
}

#[derive(Deserialize, JsonSchema)]
enum Soil {
    /// Light and dry.
    Sandy,
    /// Heavy and wet.
    Clay,
}

#[test]
fn what_variants_say_stays_beside_what_a_parameter_says() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Bed {
        /// What soil.
        soil: Soil,
        /// What it was.
        before: Option<Soil>,
    }
    let schema = plan::<Bed>(PlanOptions::default()).schema().clone();
    let variants = "- Sandy: Light and dry.\n- Clay: Heavy and wet.";
    assert_eq!(schema["properties"]["soil"]["description"], format!("What soil.\n{variants}"));
    assert_eq!(schema["properties"]["before"]["description"], format!("What it was.\n{variants}"));
}

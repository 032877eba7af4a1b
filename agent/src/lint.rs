//! Checks of tools that belong in a test: unclear definitions, schemas that a provider cannot express, and changes to what a model
//! sees.
//!
//! [`Registry`](crate::Registry) checks its tools. Each check reports all of its findings.
//!
//! ```
//! use agent::lint::Lint;
//! use agent::schema::Dialect;
//! use agent::{Registry, tool, tools};
//!
//! /// Adds two numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! let registry = Registry::new(tools![add])?;
//! assert_eq!(registry.lint()[0].lint, Lint::UndocumentedParameter);
//! registry.check_dialect(Dialect::OpenAiStrict)?;
//! // The manifests differ only if a model sees a difference.
//! assert!(registry.manifest().drift(&registry.manifest()).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use crate::tool::lint::{Lint, LintFinding};
pub use crate::tool::manifest::ToolManifest;

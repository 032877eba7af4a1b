//! The text of a definition in requests, which the definition keeps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::definition::ToolDefinition;
use super::dialect::RemainingBudget;
use crate::schema::{Dialect, Rendered, Size, render};

/// A tool as a protocol writes it.
#[derive(Clone)]
struct WrittenTool {
    /// The name of the protocol's form, and the dialect that it was to have.
    form: &'static str,
    asked: Dialect,
    text: Arc<str>,
    /// The dialect that it has, and what it needs of the budget of a request.
    dialect: Dialect,
    size: Size,
}

/// The texts of a definition, one for each form and dialect: as many as protocols have.
#[derive(Default)]
pub(super) struct WrittenTools(Mutex<Vec<WrittenTool>>);

impl WrittenTools {
    fn lock(&self) -> MutexGuard<'_, Vec<WrittenTool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the text of each tool of one request in a dialect. `form` is the name of what `write` writes, which must depend on the definition
/// and the schema alone.
pub(crate) fn written_tools(
    definitions: &[ToolDefinition],
    dialect: Dialect,
    form: &'static str,
    write: impl Fn(&ToolDefinition, Rendered) -> String,
) -> Vec<Arc<str>> {
    let written = |definition: &ToolDefinition, dialect: Dialect| {
        let is_same = |tool: &&WrittenTool| tool.form == form && tool.asked == dialect;
        if let Some(known) = definition.written().lock().iter().find(is_same) {
            return known.clone();
        }
        let rendered = render(definition.plan(), dialect);
        let size =
            if dialect == Dialect::AnthropicStrict { Size::of(&rendered.schema) } else { Size::default() };
        let (asked, dialect) = (dialect, rendered.dialect);
        let tool = WrittenTool { form, asked, text: write(definition, rendered).into(), dialect, size };
        let mut known = definition.written().lock();
        if !known.iter().any(|other| is_same(&other)) {
            known.push(tool.clone());
        }
        tool
    };
    let mut left = RemainingBudget::new();
    let texts = definitions.iter().map(|definition| {
        let tool = written(definition, dialect);
        let is_over = tool.dialect == Dialect::AnthropicStrict && left.take(&tool.size).is_err();
        if is_over { written(definition, Dialect::Plain).text } else { tool.text }
    });
    texts.collect()
}

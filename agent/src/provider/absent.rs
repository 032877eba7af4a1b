//! The function `agent::model` of builds without a provider. It always fails, with an error that names the missing feature.

use super::BuildModelError;
use super::build_error::provider_of;
use crate::model::{Model, ModelRequest, ModelStream, StepCx};

#[derive(Clone, Debug)]
pub(crate) enum NoModel {}

impl Model for NoModel {
    fn stream(&self, _: &StepCx, _: &ModelRequest) -> ModelStream {
        match *self {}
    }
}

pub(crate) fn model(name: &str) -> Result<NoModel, BuildModelError> {
    let (provider, full) = match name.split_once('/') {
        Some((provider, _)) => (provider, None),
        None => (name, provider_of(name).map(|provider| format!("{provider}/{name}"))),
    };
    Err(BuildModelError::no_provider(provider, &[], full.as_deref()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn errors_name_the_feature_of_a_provider() {
        for provider in ["anthropic", "gemini", "openai"] {
            let error = crate::model(&format!("{provider}/large-1")).map(drop).unwrap_err();
            let said =
                format!("there is no provider `{provider}`: switch on the feature `{provider}` of `agent`");
            assert_eq!(error.to_string(), said);
        }
        let said = crate::model("claude-sonnet-5").map(drop).unwrap_err().to_string();
        assert_eq!(
            said,
            "there is no provider `claude-sonnet-5`: switch on the feature `anthropic` of `agent` (did you mean \
             `anthropic/claude-sonnet-5`?)"
        );
        assert!(
            crate::model("groq/x").map(drop).unwrap_err().to_string().contains("feature `openai` of `agent`")
        );
    }
}

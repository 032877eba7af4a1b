//! The function `agent::model` of builds without a provider. It always fails, with an error that names the missing feature.

use super::BuildModelError;
use crate::model::{Model, ModelRequest, ModelStream, StepCx};

#[derive(Clone, Debug)]
pub(crate) enum NoModel {}

impl Model for NoModel {
    fn stream(&self, _: &StepCx, _: &ModelRequest) -> ModelStream {
        match *self {}
    }
}

pub(crate) fn model(name: &str) -> Result<NoModel, BuildModelError> {
    let provider = name.split_once('/').map_or(name, |(provider, _)| provider);
    Err(BuildModelError::no_provider(provider, &[], None))
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
        assert!(
            crate::model("groq/x").map(drop).unwrap_err().to_string().contains("feature `openai` of `agent`")
        );
    }
}

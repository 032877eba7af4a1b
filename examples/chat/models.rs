//! Selects the model.

use crate::demo::model::{DemoModel, NAME as DEMO};
use crate::traffic::{Log, Logged};
use agent::model::Model;
use agent::provider::Catalogue;
use agent::provider::{BuildModelError, http::HttpOptions};
use std::error::Error;
use std::sync::Arc;

/// A model, and the reason why it was chosen.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn Model>,
    /// The full name: `provider/model`, or `demo`.
    pub(crate) name: String,
    /// The reason for this model. None if the user named it.
    pub(crate) because: Option<String>,
    /// The model's context window in tokens, if it is known.
    pub(crate) window: Option<u64>,
}

impl Chosen {
    pub(crate) fn is_demo(&self) -> bool {
        self.name == DEMO
    }
}

/// Returns the model with this name. Without a name, returns the first model that an environment variable such as `OPENAI_DEFAULT_MODEL`
/// names. Without such a variable, returns the demo model.
///
/// # Errors
/// The name is unknown, or a key is missing. This holds for a model from a variable too: the demo model does not take its place.
pub(crate) fn choose(name: Option<&str>, log: Option<&Log>) -> Result<Chosen, Box<dyn Error>> {
    let catalogue = catalogue(log);
    match name {
        Some(DEMO) => return Ok(demo(log, None)),
        Some(name) => return of_provider(&catalogue, name, None),
        None => {}
    }
    let mut providers = catalogue.providers().map(agent::provider::ProviderEntry::name);
    // A bare provider name means the model that the provider's variable names. If the variable is not set, the name is `Unknown`.
    let named = providers.find(|name| !matches!(catalogue.model(name), Err(BuildModelError::Unknown { .. })));
    match named {
        Some(name) => {
            of_provider(&catalogue, name, Some("a …_DEFAULT_MODEL in the environment names it".to_owned()))
        }
        None => Ok(demo(log, Some("there is no --model and no …_DEFAULT_MODEL".to_owned()))),
    }
}

fn catalogue(log: Option<&Log>) -> Catalogue {
    let options = match log.cloned() {
        Some(log) => HttpOptions::default().on_traffic(move |traffic| log.traffic(traffic)),
        None => HttpOptions::default(),
    };
    Catalogue::default().with_options(options)
}

fn of_provider(catalogue: &Catalogue, name: &str, because: Option<String>) -> Result<Chosen, Box<dyn Error>> {
    let hint = |error: &dyn Error| format!("{error}. `--model {DEMO}` needs no key");
    let model = catalogue.model(name).map_err(|error| hint(&error))?;
    let info = model.info();
    let name = format!("{}/{}", info.provider, info.model);
    let window = model.facts().and_then(|facts| facts.context_window);
    Ok(Chosen { model: Arc::new(model), name, because, window })
}

fn demo(log: Option<&Log>, because: Option<String>) -> Chosen {
    let model: Arc<dyn Model> = match log {
        Some(log) => Arc::new(Logged::new(DemoModel::new(), log.clone())),
        None => Arc::new(DemoModel::new()),
    };
    Chosen { model, name: DEMO.to_owned(), because, window: None }
}

/// The names of all providers, for completion and for `/model`.
pub(crate) fn providers() -> Vec<String> {
    let catalogue = Catalogue::default();
    let names = catalogue.providers().map(|provider| provider.name().to_owned());
    std::iter::once(DEMO.to_owned()).chain(names).collect()
}

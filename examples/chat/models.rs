//! Selects the model.

use crate::demo::model::{DemoModel, NAME as DEMO};
use crate::traffic::{Log, Logged};
use agent::model::Model;
use agent::provider::Catalogue;
use agent::provider::{BuildModelError, http::HttpOptions};
use std::error::Error;
use std::sync::Arc;

/// A model, and how it came to be this one.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn Model>,
    /// As it is asked for: `provider/model`.
    pub(crate) name: String,
    /// Who said so, where nobody here did.
    pub(crate) because: Option<String>,
    /// How many tokens a conversation may have.
    pub(crate) window: Option<u64>,
}

impl Chosen {
    pub(crate) fn is_demo(&self) -> bool {
        self.name == DEMO
    }
}

/// The model of this name; without one, the first that a variable of the environment names; else the demo model.
///
/// # Errors
/// Nobody knows the name, or a key is missing: also where a variable names the model, so that nobody talks to the demo
/// model by accident.
pub(crate) fn choose(name: Option<&str>, log: Option<&Log>) -> Result<Chosen, Box<dyn Error>> {
    let catalogue = catalogue(log);
    match name {
        Some(DEMO) => return Ok(demo(log, None)),
        Some(name) => return of_provider(&catalogue, name, None),
        None => {}
    }
    let mut providers = catalogue.providers().map(agent::provider::ProviderEntry::name);
    // A provider's name alone stands for the model that its variable names; without one, nobody knows it.
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

/// The providers that can be asked, for completion and for `/model`.
pub(crate) fn providers() -> Vec<String> {
    let catalogue = Catalogue::default();
    let names = catalogue.providers().map(|provider| provider.name().to_owned());
    std::iter::once(DEMO.to_owned()).chain(names).collect()
}

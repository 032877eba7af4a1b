//! MCP servers named on the command line.

use crate::traffic::Log;
use agent::mcp::Client;
use agent::mcp::client::ClientConfig;
use std::error::Error;

/// What `--mcp` says: a name, if one is given, and how the server is reached.
pub(crate) fn config(given: &str) -> Result<ClientConfig, String> {
    let (name, place) = match given.split_once('=') {
        Some((name, place)) if is_name(name) => (Some(name), place.trim()),
        _ => (None, given.trim()),
    };
    let is_url = place.starts_with("http://") || place.starts_with("https://");
    let mut config = if is_url {
        ClientConfig::http(place)
    } else {
        let words = shlex::split(place).ok_or_else(|| format!("--mcp {given}: a quote is not closed"))?;
        let mut words = words.into_iter();
        let program = words.next().ok_or_else(|| "--mcp wants a URL or a command".to_owned())?;
        ClientConfig::command(program).args(words)
    };
    if let Some(name) = name {
        config = config.name(name);
        let variable = format!("{}_MCP_TOKEN", name.to_uppercase().replace('-', "_"));
        if let Some(token) = std::env::var(&variable).ok().filter(|token| !token.trim().is_empty()) {
            if !is_url {
                return Err(format!(
                    "{variable} is a token for a URL, and --mcp {name} is a command: unset it, or write `env KEY=… {place}`"
                ));
            }
            config = config.bearer_token(token.trim());
        }
    }
    Ok(config)
}

/// So that `A=b program` and URLs with `=` are what they look like: a name is short and has no signs.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 24
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Connects to all of them, at the same time.
pub(crate) async fn connect(
    configs: Vec<ClientConfig>,
    log: Option<&Log>,
) -> Result<Vec<Client>, Box<dyn Error>> {
    let mut connecting = tokio::task::JoinSet::new();
    for (at, config) in configs.into_iter().enumerate() {
        let config = match log.cloned() {
            Some(log) => config.on_traffic(move |traffic| log.mcp(traffic)),
            None => config,
        };
        connecting.spawn(async move { (at, Client::connect(config).await) });
    }
    let mut connected = Vec::new();
    while let Some(one) = connecting.join_next().await {
        let (at, client) = one?;
        connected.push((at, client?));
    }
    connected.sort_unstable_by_key(|(at, _)| *at);
    Ok(connected.into_iter().map(|(_, client)| client).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let place = |given: &str| format!("{:?}", config(given).unwrap());
        assert!(place("https://a.example/mcp?key=s3cret").contains("\"https://a.example/mcp\""));
        assert!(place("docs=https://a.example/mcp").contains("\"https://a.example/mcp\""));
        assert!(place("npx -y 'some server'").contains("\"npx\""));
        assert!(place("files=/usr/bin/files --root=/x").contains("\"/usr/bin/files\""));
        assert!(config("a 'b").unwrap_err().contains("quote"));
        assert!(config("docs=").unwrap_err().contains("a URL or a command"));
    }
}

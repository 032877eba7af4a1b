//! MCP servers named on the command line.

use crate::traffic::Log;
use agent::mcp::McpClient;
use agent::mcp::{ClientConfig, McpClientError};
use std::time::Duration;

/// Parses the value of `--mcp`: `NAME=`, which may be missing, then a URL or a command. `timeout` limits how long connecting may take.
pub(crate) fn config(given: &str, timeout: Option<Duration>) -> Result<ClientConfig, String> {
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
    Ok(match timeout {
        Some(timeout) => config.connect_timeout(timeout),
        None => config,
    })
}

/// Whether the text before the first `=` is a name: short, and only of letters, digits, `-` and `_`. The beginning of a URL is not.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 24
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Connects to all servers at the same time. Returns the connected ones, and a line about each that failed.
pub(crate) async fn connect(configs: Vec<ClientConfig>, log: Option<&Log>) -> (Vec<McpClient>, Vec<String>) {
    let mut connecting = tokio::task::JoinSet::new();
    for (at, config) in configs.into_iter().enumerate() {
        let config = match log.cloned() {
            Some(log) => config.on_traffic(move |traffic| log.mcp(traffic)),
            None => config,
        };
        connecting.spawn(async move { (at, McpClient::connect(config.clone()).await, config) });
    }
    let mut all = connecting.join_all().await;
    all.sort_unstable_by_key(|(at, _, _)| *at);
    let (mut clients, mut missing) = (Vec::new(), Vec::new());
    for (_, client, config) in all {
        let client = match client {
            Ok(client) => distinct(client, &clients, config).await,
            Err(error) => Err(error),
        };
        match client {
            Ok(client) => clients.push(client),
            Err(error) => missing.push(format!("{error}; the chat goes on without it")),
        }
    }
    (clients, missing)
}

/// Connects again under a numbered name if another server has the same name, so that their tools have different names.
async fn distinct(
    client: McpClient,
    others: &[McpClient],
    config: ClientConfig,
) -> Result<McpClient, McpClientError> {
    let is_taken = |name: &str| others.iter().any(|other| other.name() == name);
    let own = client.name();
    if !is_taken(&own) {
        return Ok(client);
    }
    let name = (2..=99).map(|number| format!("{own}_{number}")).find(|name| !is_taken(name)).unwrap_or(own);
    client.close().await;
    McpClient::connect(config.name(name)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let place = |given: &str| format!("{:?}", config(given, None).unwrap());
        assert!(place("https://a.example/mcp?key=s3cret").contains("\"https://a.example/mcp\""));
        assert!(place("docs=https://a.example/mcp").contains("\"https://a.example/mcp\""));
        assert!(place("npx -y 'some server'").contains("\"npx\""));
        assert!(place("files=/usr/bin/files --root=/x").contains("\"/usr/bin/files\""));
        assert!(config("a 'b", None).unwrap_err().contains("quote"));
        assert!(config("docs=", None).unwrap_err().contains("a URL or a command"));
    }
}

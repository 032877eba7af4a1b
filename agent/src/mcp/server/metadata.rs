//! The metadata of a protected server, for clients without a token (RFC 9728).

use serde::Serialize;

/// The start of the document's path, before the path of the resource.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The protected-resource metadata of RFC 9728, which names the issuers of tokens for this server. It is served without authentication,
/// below `/.well-known/oauth-protected-resource`, and every challenge refers to it.
///
/// ```
/// use agent::mcp::ResourceMetadata;
///
/// let metadata = ResourceMetadata::new("https://tools.example/mcp")
///     .authorization_server("https://login.example")
///     .scope("tools")
///     .name("Notes of the team")
///     .documentation("https://tools.example/docs");
/// let document = agent::json!(metadata);
/// assert_eq!(document["resource_name"], "Notes of the team");
/// assert_eq!(document["resource_documentation"], "https://tools.example/docs");
/// assert_eq!(metadata.url(), "https://tools.example/.well-known/oauth-protected-resource/mcp");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_documentation: Option<String>,
}

impl ResourceMetadata {
    /// Creates the metadata of a server, by the URL that clients use.
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers: Vec::new(),
            scopes_supported: Vec::new(),
            bearer_methods_supported: ["header"],
            resource_name: None,
            resource_documentation: None,
        }
    }

    /// Adds an authorization server, by its issuer URL.
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Adds a scope that tokens may have.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes_supported.push(scope.into());
        self
    }

    /// Sets a human-readable name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.resource_name = Some(name.into());
        self
    }

    /// Sets the URL of a page for developers.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.resource_documentation = Some(url.into());
        self
    }

    /// Returns the URL of the document.
    pub fn url(&self) -> String {
        let (origin, path) = self.split();
        format!("{origin}{WELL_KNOWN}{path}")
    }

    /// Returns the path of the document on its host.
    pub(super) fn path(&self) -> String {
        format!("{WELL_KNOWN}{}", self.split().1)
    }

    /// Splits the URL into origin and path; the path `/` counts as empty (RFC 9728, section 3.1).
    fn split(&self) -> (&str, &str) {
        let start = self.resource.find("://").map_or(0, |at| at + 3);
        let path = self.resource[start..].find(['/', '?', '#']).map_or(self.resource.len(), |at| start + at);
        let (origin, path) = self.resource.split_at(path);
        let path = path.split(['?', '#']).next().unwrap_or_default();
        (origin, path.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_resource_follows_the_well_known_one() {
        for (resource, url) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource"),
            ("http://a.example:1/x/y?z", "http://a.example:1/.well-known/oauth-protected-resource/x/y"),
        ] {
            assert_eq!(ResourceMetadata::new(resource).url(), url);
        }
    }

    #[test]
    fn the_document_has_the_configured_values() {
        let metadata =
            ResourceMetadata::new("https://a.example/mcp").authorization_server("https://l").scope("s");
        assert_eq!(
            serde_json::to_value(metadata).unwrap(),
            serde_json::json!({
                "resource": "https://a.example/mcp",
                "authorization_servers": ["https://l"],
                "scopes_supported": ["s"],
                "bearer_methods_supported": ["header"],
            })
        );
    }
}

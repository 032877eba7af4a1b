//! The metadata of a protected server, for clients without a token (RFC 9728).

use serde::Serialize;

/// The start of the path of the metadata document. The path of the resource follows it.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The protected-resource metadata of RFC 9728, which names the issuers of tokens for this server. The document is served without
/// authentication, below [`WELL_KNOWN`], and every challenge refers to it.
#[derive(Clone, Serialize)]
pub(super) struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<String>,
}

impl ResourceMetadata {
    /// Creates the metadata of a server. `resource` is the URL at which clients reach the server.
    pub(super) fn new(resource: String, issuers: Vec<String>, scopes: Vec<String>) -> Self {
        Self {
            resource,
            authorization_servers: issuers,
            scopes_supported: scopes,
            bearer_methods_supported: ["header"],
            resource_name: None,
        }
    }

    pub(super) fn named(self, name: Option<String>) -> Self {
        Self { resource_name: name, ..self }
    }

    pub(super) fn url(&self) -> String {
        let (origin, path) = self.split();
        format!("{origin}{WELL_KNOWN}{path}")
    }

    pub(super) fn path(&self) -> String {
        format!("{WELL_KNOWN}{}", self.split().1)
    }

    /// Splits the URL into origin and path. The path has no slashes at its end, so the path `/` is empty (RFC 9728, section 3.1). The
    /// query and the fragment are omitted.
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
            assert_eq!(ResourceMetadata::new(resource.to_owned(), Vec::new(), Vec::new()).url(), url);
        }
    }

    #[test]
    fn the_document_has_the_configured_values() {
        let texts = |text: &str| vec![text.to_owned()];
        let metadata =
            ResourceMetadata::new("https://a.example/mcp".to_owned(), texts("https://l"), texts("s"));
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

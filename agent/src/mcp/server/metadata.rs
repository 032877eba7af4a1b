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

    /// Returns whether the document is at this path. Some clients remove a slash at the end of the path of the resource.
    pub(super) fn is_at(&self, path: &str) -> bool {
        let own = self.split().1.split('?').next().unwrap_or_default().trim_end_matches('/');
        path.strip_prefix(WELL_KNOWN).is_some_and(|path| path.trim_end_matches('/') == own)
    }

    /// Splits the URL into origin and the path with its query. The path `/` counts as empty (RFC 9728, section 3.1).
    fn split(&self) -> (&str, &str) {
        let url = self.resource.split('#').next().unwrap_or_default();
        let start = url.find("://").map_or(0, |at| at + 3);
        let path = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
        let (origin, path) = url.split_at(path);
        let rest = path.strip_prefix('/').filter(|rest| rest.is_empty() || rest.starts_with('?'));
        (origin, rest.unwrap_or(path))
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
            ("http://a.example:1/x/y?z", "http://a.example:1/.well-known/oauth-protected-resource/x/y?z"),
            ("https://a.example/mcp/", "https://a.example/.well-known/oauth-protected-resource/mcp/"),
            ("https://a.example/?z", "https://a.example/.well-known/oauth-protected-resource?z"),
        ] {
            let metadata = ResourceMetadata::new(resource.to_owned(), Vec::new(), Vec::new());
            assert_eq!(metadata.url(), url);
            let path = url.parse::<http::Uri>().unwrap().path().to_owned();
            assert!(metadata.is_at(&path) && metadata.is_at(path.trim_end_matches('/')), "{path}");
            assert!(!metadata.is_at(&format!("{path}x")) && !metadata.is_at("/mcp"), "{path}");
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

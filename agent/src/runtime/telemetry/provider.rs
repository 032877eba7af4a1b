//! Names of providers in traces.

use crate::model::ModelInfo;

/// Names of providers that the conventions spell differently.
const WELL_KNOWN: [(&str, &str); 8] = [
    ("azure", "azure.ai.openai"),
    ("bedrock", "aws.bedrock"),
    ("gemini", "gcp.gemini"),
    ("mistral", "mistral_ai"),
    ("moonshot", "moonshot_ai"),
    ("openai-responses", "openai"),
    ("vertex", "gcp.vertex_ai"),
    ("xai", "x_ai"),
];

/// Returns the name of the provider by the conventions: the well-known one if there is one, otherwise its own.
pub(in crate::runtime) fn provider_name(info: &ModelInfo) -> &str {
    // The conventions tell Google's two endpoints apart by their hosts.
    if info.provider == "gemini" && info.server_address.as_deref().is_some_and(is_vertex) {
        return "gcp.vertex_ai";
    }
    let known = WELL_KNOWN.iter().find(|(own, _)| *own == info.provider);
    known.map_or(&info.provider, |(_, name)| name)
}

/// Whether the host is `aiplatform.googleapis.com` or that of a region: `europe-west1-aiplatform.googleapis.com`.
fn is_vertex(host: &str) -> bool {
    host.strip_suffix("aiplatform.googleapis.com")
        .is_some_and(|region| region.is_empty() || region.ends_with('-'))
}

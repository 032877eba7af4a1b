//! Names of providers in traces.

use crate::model::ModelInfo;

/// The providers that OpenTelemetry's conventions name differently: the library's name, and the name in the conventions.
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

pub(in crate::runtime) fn provider_name(info: &ModelInfo) -> &str {
    // The conventions have a name for each of Google's two endpoints, so the host decides.
    if info.provider == "gemini" && info.server_address.as_deref().is_some_and(is_vertex) {
        return "gcp.vertex_ai";
    }
    let known = WELL_KNOWN.iter().find(|(own, _)| *own == info.provider);
    known.map_or(&info.provider, |(_, name)| name)
}

/// Returns whether the host is `aiplatform.googleapis.com`, or the host of a region, such as `europe-west1-aiplatform.googleapis.com`.
fn is_vertex(host: &str) -> bool {
    host.strip_suffix("aiplatform.googleapis.com")
        .is_some_and(|region| region.is_empty() || region.ends_with('-'))
}

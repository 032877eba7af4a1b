//! Converts the content of results between this library's types and the protocol's.

#[cfg(feature = "mcp-client")]
pub(super) use incoming::part;
pub(super) use outgoing::block;

mod outgoing {
    use crate::message::{Content, Media, MediaSource, Part, ResourceLink};
    use rmcp::model::{ContentBlock, Resource, ResourceContents};

    /// Converts a `Part` to a content block of MCP. Returns `None` for thinking, which is not content of a tool.
    pub(in crate::mcp) fn block(part: &Part) -> Option<ContentBlock> {
        Some(match &part.content {
            Content::Text(text) | Content::Refusal(text) => ContentBlock::text(text),
            Content::Image(media) => media_block(media, ContentBlock::image),
            Content::Audio(media) => media_block(media, ContentBlock::audio),
            Content::Document(media) => media_block(media, |data, mime_type| {
                let uri = format!("attachment:{}", media.name.as_deref().unwrap_or("document"));
                ContentBlock::resource(ResourceContents::blob(data, uri).with_mime_type(mime_type))
            }),
            Content::Resource(resource) => {
                let contents = match resource.to_base64() {
                    Some(data) => ResourceContents::blob(data, &resource.uri),
                    None => ResourceContents::text(resource.as_text().unwrap_or_default(), &resource.uri),
                };
                ContentBlock::resource(match &resource.mime_type {
                    Some(mime_type) => contents.with_mime_type(mime_type),
                    None => contents,
                })
            }
            Content::ResourceLink(link) => ContentBlock::resource_link(resource(link)),
            Content::Thinking { .. } => return None,
            // The protocol has no block for these parts, so they are sent as JSON text.
            Content::ToolCall(_) | Content::ProviderTool(_) | Content::Opaque(_) | Content::Unknown(_) => {
                ContentBlock::text(serde_json::to_string(part).ok()?)
            }
        })
    }

    fn media_block(media: &Media, inline: impl FnOnce(String, String) -> ContentBlock) -> ContentBlock {
        let mime_type = media.mime_type.clone();
        match &media.source {
            MediaSource::Data(bytes) => {
                inline(bytes.to_base64(), mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()))
            }
            MediaSource::Url(uri) | MediaSource::FileId(uri) => {
                let mut link = ResourceLink::new(uri);
                (link.mime_type, link.name) = (mime_type, media.name.clone());
                ContentBlock::resource_link(resource(&link))
            }
        }
    }

    fn resource(link: &ResourceLink) -> Resource {
        let mut resource = Resource::new(&link.uri, link.name.as_deref().unwrap_or(&link.uri));
        resource.title.clone_from(&link.title);
        resource.description.clone_from(&link.description);
        resource.mime_type.clone_from(&link.mime_type);
        resource.size = link.size;
        resource
    }
}

#[cfg(feature = "mcp-client")]
mod incoming {
    use crate::message::{Content, Media, Part, Resource, ResourceLink};
    use rmcp::model::{ContentBlock, ResourceContents};

    /// Converts a content block of MCP to a `Part`. Invalid base64 becomes a text that reports the invalid data, and a block of an unknown
    /// kind becomes its JSON text.
    pub(in crate::mcp) fn part(block: ContentBlock) -> Part {
        match block {
            ContentBlock::Text(text) => Part::text(text.text),
            ContentBlock::Image(image) => {
                media(&image.data, &image.mime_type, |media| Part::new(Content::Image(media)))
            }
            ContentBlock::Audio(audio) => {
                media(&audio.data, &audio.mime_type, |media| Part::new(Content::Audio(media)))
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                    resource(Resource::text(uri, text), mime_type)
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    match Resource::from_base64(&*uri, &blob) {
                        Ok(found) => resource(found, mime_type),
                        Err(_) => {
                            Part::text(format!("[the server sent the resource {uri} without valid data]"))
                        }
                    }
                }
                other => unknown(&other),
            },
            ContentBlock::ResourceLink(resource) => {
                let mut link = ResourceLink::new(resource.uri);
                link.name = Some(resource.name);
                link.title = resource.title;
                link.description = resource.description;
                link.mime_type = resource.mime_type;
                link.size = resource.size;
                Part::new(Content::ResourceLink(link))
            }
            other => unknown(&other),
        }
    }

    fn media(data: &str, mime_type: &str, part: impl FnOnce(Media) -> Part) -> Part {
        match Media::from_base64(data, mime_type) {
            Ok(media) => part(media),
            Err(_) => Part::text(format!("[the server sent {mime_type} without valid data]")),
        }
    }

    fn resource(resource: Resource, mime_type: Option<String>) -> Part {
        Part::new(Content::Resource(match mime_type {
            Some(mime_type) => resource.with_mime_type(mime_type),
            None => resource,
        }))
    }

    fn unknown(block: &impl serde::Serialize) -> Part {
        Part::text(serde_json::to_string(block).unwrap_or_default())
    }
}

#[cfg(feature = "mcp-client")]
impl crate::tool::output::ToolOutput {
    /// Returns the first item of the content as JSON text, in the form of MCP. Returns `None` if there is no content, or if the first item
    /// is thinking, which MCP cannot represent.
    ///
    /// ```
    /// # #[cfg(feature = "mcp-server")]
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use agent::mcp::{McpClient, McpServer, ClientConfig};
    /// use agent::message::ToolCall;
    /// use agent::{Registry, ToolContext, ToolOutcome, tool, tools};
    ///
    /// /// Greets.
    /// #[tool(read_only)]
    /// fn greet(name: String) -> String {
    ///     format!("Hello, {name}!")
    /// }
    ///
    /// let (url, serving) = McpServer::new(tools![greet]).bind(([127, 0, 0, 1], 0)).await?;
    /// let config = ClientConfig::http(url).name("demo");
    /// tokio::spawn(serving);
    /// let registry = Registry::new(&McpClient::connect(config).await?)?;
    /// let call = ToolCall::new("call_1", "demo__greet", r#"{"name": "Ann"}"#);
    /// let ToolOutcome::Completed(output) = registry.call(&call, &ToolContext::default()).await.outcome else { panic!() };
    /// assert_eq!(output.first_item_json().as_deref(), Some(r#"{"type":"text","text":"Hello, Ann!"}"#));
    /// # Ok(()) }
    /// # #[cfg(not(feature = "mcp-server"))] fn main() {}
    /// ```
    pub fn first_item_json(&self) -> Option<String> {
        serde_json::to_string(&block(self.content.first()?)?).ok()
    }
}

#[cfg(all(test, feature = "mcp-server", feature = "mcp-client"))]
mod tests {
    use super::*;
    use crate::message::{Content, Media, Part, Resource, ResourceLink};

    #[test]
    fn content_of_the_protocol_is_unchanged_by_a_round_trip() {
        let mut link = ResourceLink::new("https://example.org/a");
        link.name = Some("a".to_owned());
        link.size = Some(3);
        for part in [
            Part::text("hello"),
            Part::image(b"png", "image/png"),
            Part::audio(b"wav", "audio/wav"),
            Part::new(Content::Resource(Resource::text("t://x", "y").with_mime_type("text/plain"))),
            Part::new(Content::Resource(Resource::data("t://x", b"y").with_mime_type("a/b"))),
            Part::new(Content::ResourceLink(link)),
        ] {
            assert_eq!(super::part(block(&part).unwrap()), part);
        }
    }

    #[test]
    fn other_content_becomes_the_nearest_block() {
        let document = block(&Part::document(b"pdf", "application/pdf")).map(part).unwrap();
        assert!(matches!(document.content, Content::Resource(_)));
        let far = block(&Part::image_url("https://example.org/i.png")).map(part).unwrap();
        assert!(matches!(far.content, Content::ResourceLink(_)));
        assert_eq!(block(&Part::thinking("hm")), None);
        let file = Part::new(Content::Image(Media::file_id("file_1")));
        assert!(matches!(part(block(&file).unwrap()).content, Content::ResourceLink(_)));
    }

    #[test]
    fn the_first_item_is_the_protocols_json() {
        use crate::tool::output::ToolOutput;

        let json = |output: &ToolOutput| {
            output.first_item_json().map(|text| serde_json::from_str::<serde_json::Value>(&text).unwrap())
        };
        let image = ToolOutput::parts(vec![Part::image(b"png", "image/png"), Part::text("what it shows")]);
        assert_eq!(
            json(&image),
            Some(serde_json::json!({"type": "image", "data": "cG5n", "mimeType": "image/png"}))
        );
        assert_eq!(json(&ToolOutput::empty()), None);
    }

    #[test]
    fn broken_base64_is_reported() {
        let broken = rmcp::model::ContentBlock::image("%%%", "image/png");
        assert_eq!(part(broken).as_text(), Some("[the server sent image/png without valid data]"));
    }
}

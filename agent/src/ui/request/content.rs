//! Reads the content of users' messages.

use serde_json::Value;

use super::UiRequestError;
use crate::message::{Content, Media, Part};

/// Returns the part for a file: the bytes in a `data:` address, or an `https:` address that the provider reads.
pub(super) fn file(
    url: &str,
    media_type: Option<&str>,
    name: Option<&str>,
    field: &str,
) -> Result<Part, UiRequestError> {
    let media = match url.split_once(':') {
        Some((scheme, data)) if scheme.eq_ignore_ascii_case("data") => {
            let (head, data) =
                data.split_once(',').ok_or_else(|| UiRequestError::Address { field: field.to_owned() })?;
            let Some(own_type) = head.strip_suffix(";base64") else {
                return Err(UiRequestError::invalid(field, "a `data:` address in base64"));
            };
            bytes(data, media_type.unwrap_or(own_type), field)?
        }
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
            let media = Media::url(url);
            match media_type {
                Some(media_type) => media.with_mime_type(media_type),
                None => media,
            }
        }
        _ => return Err(UiRequestError::Address { field: field.to_owned() }),
    };
    Ok(part(media, name))
}

pub(super) fn bytes(data: &str, media_type: &str, field: &str) -> Result<Media, UiRequestError> {
    let media_type = if media_type.is_empty() { "application/octet-stream" } else { media_type };
    Media::from_base64(data, media_type).map_err(|_| UiRequestError::invalid(field, "base64"))
}

pub(super) fn part(media: Media, name: Option<&str>) -> Part {
    let media = match name {
        Some(name) => media.with_name(name),
        None => media,
    };
    let kind = media.mime_type.as_deref().and_then(|of| of.split('/').next()).unwrap_or_default();
    Part::new(match kind.to_ascii_lowercase().as_str() {
        "image" => Content::Image(media),
        "audio" => Content::Audio(media),
        _ => Content::Document(media),
    })
}

pub(super) fn text<'v>(value: Option<&'v Value>, field: &str) -> Result<&'v str, UiRequestError> {
    value.and_then(Value::as_str).ok_or_else(|| UiRequestError::invalid(field, "a text"))
}

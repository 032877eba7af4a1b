//! Checks that a protocol accepts the media types of message parts. A request with a part of another type is refused before it is sent. In
//! a tool result, a description replaces the part instead.

#![allow(dead_code, reason = "not every protocol that is compiled in needs all of it")]

use std::borrow::Cow;
use std::fmt;

use crate::message::{Media, MediaSource, Part};
use crate::model::{ModelError, ModelErrorKind};

/// The image types that most providers accept.
pub(super) const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

#[derive(Debug)]
pub(super) enum UnsupportedPart {
    Kind(Cow<'static, str>),
    /// The protocol accepts this kind of part, but not this media type.
    Type {
        what: &'static str,
        name: Option<String>,
        mime: Option<String>,
        takes: &'static [&'static str],
    },
}

impl UnsupportedPart {
    pub(super) fn to_error(&self, protocol: &str) -> ModelError {
        let error =
            ModelError::new(ModelErrorKind::InvalidRequest, format!("{protocol} does not take {self}"));
        match self {
            Self::Kind(_) => error.with_code("unsupported_part"),
            Self::Type { .. } => error.with_code("unsupported_media_type"),
        }
    }
}

impl From<&'static str> for UnsupportedPart {
    fn from(what: &'static str) -> Self {
        Self::Kind(what.into())
    }
}

impl fmt::Display for UnsupportedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name, mime, takes) = match self {
            Self::Kind(what) => return f.write_str(what),
            Self::Type { what, name, mime, takes } => (what, name, mime, takes),
        };
        f.write_str(what)?;
        if let Some(name) = name {
            write!(f, " ({name:?})")?;
        }
        match mime {
            Some(mime) => write!(f, " of type `{mime}`")?,
            None => f.write_str(" without a media type")?,
        }
        let takes: Vec<String> = takes.iter().map(|mime| format!("`{mime}`")).collect();
        write!(f, ": it takes {}", takes.join(", "))
    }
}

/// Replaces each part that the protocol does not accept with a text that describes the part. `parts` is the content of a tool result. If
/// such a part caused an error, the conversation could not continue.
pub(super) fn describe_unsupported<'p, W>(
    parts: &'p [Part],
    protocol: &str,
    write: impl Fn(&Part) -> Result<W, UnsupportedPart>,
) -> Cow<'p, [Part]> {
    let words = |part: &Part| {
        // Every protocol takes text, so a text is kept without writing it first.
        let refused = if part.as_text().is_some() { None } else { write(part).err() }?;
        Some(Part::text(format!("[not shown: {protocol} does not take {refused}]")))
    };
    if !parts.iter().any(|part| words(part).is_some()) {
        return parts.into();
    }
    tracing::warn!(protocol, "a result has a part that the protocol does not take: described in words");
    parts.iter().map(|part| words(part).unwrap_or_else(|| part.clone())).collect()
}

/// Returns the media type in its usual spelling and without parameters, if there is one.
pub(super) fn media_type(media: &Media) -> Option<String> {
    let given = media.mime_type.as_deref()?;
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let usual = match essence.as_str() {
        "" => return None,
        "image/jpg" | "image/pjpeg" => "image/jpeg",
        "image/x-png" => "image/png",
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/mp3" | "audio/mpga" | "audio/x-mp3" => "audio/mpeg",
        "audio/x-aiff" => "audio/aiff",
        "audio/x-flac" => "audio/flac",
        "audio/x-aac" => "audio/aac",
        "audio/x-m4a" | "audio/m4a" => "audio/mp4",
        "application/x-pdf" => "application/pdf",
        "text/x-markdown" | "text/md" => "text/markdown",
        _ => return Some(essence),
    };
    Some(usual.to_owned())
}

/// Returns the media with the usual spelling of their media type. Media at the provider or at a URL need no media type.
///
/// # Errors
/// Fails when the media type is not in `takes`, or when media in memory have none. An entry of `takes` may end in `/*`.
pub(super) fn check_media<'m>(
    media: &'m Media,
    what: &'static str,
    takes: &'static [&'static str],
) -> Result<Cow<'m, Media>, UnsupportedPart> {
    let mime = media_type(media);
    let is_taken = match &mime {
        Some(mime) => takes.iter().any(|known| match known.strip_suffix('*') {
            Some(family) => mime.starts_with(family),
            None => known == mime,
        }),
        None => !matches!(media.source, MediaSource::Data(_)),
    };
    if !is_taken {
        return Err(UnsupportedPart::Type { what, name: media.name.clone(), mime, takes });
    }
    if mime == media.mime_type {
        return Ok(Cow::Borrowed(media));
    }
    Ok(Cow::Owned(Media { mime_type: mime, ..media.clone() }))
}

/// Returns the text of a document, or `None` if the document is not a text in memory.
pub(super) fn document_text(media: &Media) -> Option<&str> {
    let MediaSource::Data(bytes) = &media.source else { return None };
    if is_text(&media_type(media)?) { str::from_utf8(bytes).ok() } else { None }
}

fn is_text(mime: &str) -> bool {
    const TEXTS: [&str; 9] = [
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/javascript",
        "application/x-javascript",
        "application/sql",
        "application/x-ndjson",
    ];
    (mime.starts_with("text/") && mime != "text/rtf")
        || TEXTS.contains(&mime)
        || mime.ends_with("+json")
        || mime.ends_with("+xml") && !mime.starts_with("image/")
        || mime.ends_with("+yaml")
}

/// Returns the name of a document, or a name such as `document.pdf` if it has none.
pub(super) fn file_name(media: &Media) -> Cow<'_, str> {
    if let Some(name) = &media.name {
        return name.into();
    }
    let mime = media_type(media);
    let ending = match mime.as_deref() {
        Some("application/pdf") => ".pdf",
        Some("text/plain") => ".txt",
        Some("text/markdown") => ".md",
        Some("text/csv") => ".csv",
        Some("text/html") => ".html",
        Some("application/json") => ".json",
        Some("application/msword") => ".doc",
        Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document") => ".docx",
        Some("application/vnd.ms-powerpoint") => ".ppt",
        Some("application/vnd.openxmlformats-officedocument.presentationml.presentation") => ".pptx",
        Some("application/vnd.ms-excel") => ".xls",
        Some("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet") => ".xlsx",
        Some("application/vnd.oasis.opendocument.text") => ".odt",
        Some("application/rtf" | "text/rtf") => ".rtf",
        Some("application/epub+zip") => ".epub",
        _ => "",
    };
    format!("document{ending}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_type_are_one_type() {
        for (given, expected) in [
            ("image/JPG", Some("image/jpeg")),
            ("audio/x-wav", Some("audio/wav")),
            ("audio/mp3", Some("audio/mpeg")),
            ("text/plain; charset=utf-8", Some("text/plain")),
            ("application/zip", Some("application/zip")),
            (" ", None),
        ] {
            assert_eq!(media_type(&Media::data(b"x", given)).as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn a_refusal_names_the_part_its_type_and_what_is_taken() {
        let scan = Media::data(b"II*", "image/tiff").with_name("scan.tiff");
        let error = check_media(&scan, "an image", IMAGES).unwrap_err().to_error("Anthropic");
        assert_eq!(
            error.message(),
            "Anthropic does not take an image (\"scan.tiff\") of type `image/tiff`: it takes `image/jpeg`, `image/png`, \
             `image/gif`, `image/webp`"
        );
        assert_eq!(error.code(), Some("unsupported_media_type"));
        let unnamed = Media { mime_type: None, ..Media::data(b"x", "") };
        assert!(
            check_media(&unnamed, "an image", IMAGES)
                .unwrap_err()
                .to_string()
                .contains("without a media type")
        );
        assert!(check_media(&Media::url("https://a.example/i"), "an image", IMAGES).is_ok());
    }

    #[test]
    fn documents_of_text_are_known_by_their_type_and_their_bytes() {
        for (mime, bytes, is_one) in [
            ("text/markdown", &b"# A"[..], true),
            ("application/json", b"{}", true),
            ("application/atom+xml", b"<a/>", true),
            ("image/svg+xml", b"<svg/>", false),
            ("text/rtf", b"{}", false),
            ("application/pdf", b"%PDF", false),
            ("text/plain", &[0xff, 0xfe], false),
        ] {
            assert_eq!(document_text(&Media::data(bytes, mime)).is_some(), is_one, "{mime}");
        }
    }
}

//! Estimates the numbers of tokens of images, documents and audio from their data, without decoding them.

use super::TokenCounter;
use crate::message::{Media, MediaSource};

const IMAGE: u64 = 1_200;
const PAGE: u64 = 1_500;
const MAX_DOCUMENT: u64 = 100_000;
const AUDIO_SECOND: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ImageRule {
    Anthropic,
    OpenAi,
    Gemini,
    Unknown,
}

impl ImageRule {
    pub(super) fn of(api: &str) -> Self {
        match api {
            api if api.starts_with("anthropic") => Self::Anthropic,
            api if api.starts_with("openai") => Self::OpenAi,
            api if api.starts_with("gemini") => Self::Gemini,
            _ => Self::Unknown,
        }
    }
}

pub(super) fn image(media: &Media, api: &str) -> u64 {
    let MediaSource::Data(bytes) = &media.source else { return IMAGE };
    let Some((width, height)) = pixels(bytes).filter(|(width, height)| *width > 0 && *height > 0) else {
        return IMAGE;
    };
    match ImageRule::of(api) {
        // The provider scales larger images down to about 1,600 tokens.
        ImageRule::Anthropic => (width * height).div_ceil(750).min(1_600),
        ImageRule::OpenAi => openai_image(width, height),
        ImageRule::Gemini if width <= 384 && height <= 384 => 258,
        ImageRule::Gemini => 258 * width.div_ceil(768) * height.div_ceil(768),
        ImageRule::Unknown => IMAGE,
    }
}

/// Returns the number of tokens of an image by the rule of `OpenAI`. The image is scaled down to fit into 2,048 × 2,048 pixels, and then
/// until its shorter side has at most 768. It costs 85 tokens, and 170 more for each tile of 512 × 512.
fn openai_image(mut width: u64, mut height: u64) -> u64 {
    for (is_longer, limit) in [(true, 2_048), (false, 768)] {
        let side = if is_longer { width.max(height) } else { width.min(height) };
        if side > limit {
            (width, height) = ((width * limit).div_ceil(side), (height * limit).div_ceil(side));
        }
    }
    85 + 170 * width.div_ceil(512) * height.div_ceil(512)
}

fn pixels(bytes: &[u8]) -> Option<(u64, u64)> {
    let big = |at: usize| Some(u64::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
    let little = |at: usize| Some(u64::from(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])));
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(16)? << 16 | big(18)?, big(20)? << 16 | big(22)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little(6)?, little(8)?));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return match bytes.get(12..16)? {
            b"VP8 " => Some((little(26)? & 0x3fff, little(28)? & 0x3fff)),
            b"VP8L" => {
                let (low, high) = (little(21)?, little(23)?);
                let bits = high << 16 | low;
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8X" => {
                let three = |at: usize| Some(little(at)? | u64::from(*bytes.get(at + 2)?) << 16);
                Some((three(24)? + 1, three(27)? + 1))
            }
            _ => None,
        };
    }
    if !bytes.starts_with(b"\xff\xd8") {
        return None;
    }
    let mut at = 2;
    while *bytes.get(at)? == 0xff {
        match *bytes.get(at + 1)? {
            0xff => at += 1,
            // These JPEG markers start a frame, whose header contains the size. The three excluded markers have other meanings.
            marker @ 0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(at + 7)?, big(at + 5)?));
            }
            _ => at = at.checked_add(2 + usize::try_from(big(at + 2)?.max(2)).ok()?)?,
        }
    }
    None
}

pub(super) fn document(media: &Media, counter: &dyn TokenCounter) -> u64 {
    let MediaSource::Data(bytes) = &media.source else { return PAGE };
    if let Ok(text) = std::str::from_utf8(bytes)
        && !bytes.starts_with(b"%PDF")
    {
        return counter.count_text(text);
    }
    match pages(bytes) {
        0 => (bytes.len() as u64).div_ceil(4).min(MAX_DOCUMENT),
        pages => pages.saturating_mul(PAGE),
    }
}

/// Counts the page objects of a PDF. Compressed objects are not found.
fn pages(bytes: &[u8]) -> u64 {
    let mut pages = 0;
    for (at, window) in bytes.windows(5).enumerate() {
        if window == b"/Type" {
            let rest = bytes.get(at + 5..).unwrap_or_default();
            let rest = rest.strip_prefix(b" ").unwrap_or(rest);
            let is_page =
                rest.starts_with(b"/Page") && rest.get(5).is_none_or(|next| !next.is_ascii_alphanumeric());
            pages += u64::from(is_page);
        }
    }
    pages
}

pub(super) fn audio(media: &Media) -> u64 {
    let MediaSource::Data(bytes) = &media.source else { return AUDIO_SECOND * 60 };
    match byte_rate(bytes).filter(|rate| *rate > 0) {
        Some(rate) => (bytes.len() as u64).div_ceil(rate.into()).saturating_mul(AUDIO_SECOND),
        None => (bytes.len() as u64).div_ceil(1_000),
    }
}

/// Returns the number of bytes per second of a WAV file, from its format chunk. Other chunks may come before this chunk.
fn byte_rate(bytes: &[u8]) -> Option<u32> {
    let mut chunks = bytes.strip_prefix(b"RIFF")?.get(8..)?;
    loop {
        let number = |at: usize| Some(u32::from_le_bytes(chunks.get(at..at + 4)?.try_into().ok()?));
        if chunks.starts_with(b"fmt ") {
            return number(16);
        }
        let size = usize::try_from(number(4)?).ok()?;
        // A byte of padding follows a chunk of odd length.
        chunks = chunks.get(8..)?.get(size..)?.get(size % 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::super::TokenEstimator;
    use super::*;

    fn png(width: u32, height: u32) -> Media {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        Media::data(bytes, "image/png")
    }

    #[test]
    fn headers_have_the_size_and_each_protocol_its_rule() {
        assert_eq!(image(&png(1000, 750), "anthropic-messages"), 1_000);
        assert_eq!(image(&png(9000, 9000), "anthropic-messages"), 1_600);
        assert_eq!(image(&png(512, 512), "openai-chat"), 255);
        assert_eq!(image(&png(1024, 1024), "openai-chat"), 765);
        assert_eq!(image(&png(300, 300), "gemini"), 258);
        assert_eq!(image(&png(800, 800), "gemini"), 1_032);
        assert_eq!(image(&png(800, 800), "own"), IMAGE);
        assert_eq!(image(&png(u32::MAX, u32::MAX), "openai-chat"), 765);
        assert_eq!(image(&Media::url("https://example.com/a.png"), "gemini"), IMAGE);
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x11\x08\x02\xee\x03\xe8";
        assert_eq!(pixels(jpeg), Some((1000, 750)));
        let gif = b"GIF89a\x10\0\x08\0";
        assert_eq!(pixels(gif), Some((16, 8)));
        for broken in
            [&b"\xff\xd8"[..], b"\xff\xd8\xff\xe0\0\0", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBPVP8L", b""]
        {
            assert_eq!(pixels(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn documents_and_audio_have_pages_and_seconds() {
        let pdf = b"%PDF-1.7 /Type /Pages /Type/Page /Type /PageLabel /Type /Page\xff";
        assert_eq!(document(&Media::data(pdf, "application/pdf"), &TokenEstimator), 3_000);
        let packed = Media::data([b"%PDF-1.7 \xff".as_slice(), &[0; 8000]].concat(), "application/pdf");
        assert_eq!(document(&packed, &TokenEstimator), 2_003);
        assert_eq!(document(&Media::data(b"four", "text/plain"), &TokenEstimator), 1);
        for before in [&b""[..], b"JUNK\x03\0\0\0abc\0"] {
            let mut wav =
                [&b"RIFF\0\0\0\0WAVE"[..], before, b"fmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0"].concat();
            wav.extend(16_000_u32.to_le_bytes());
            wav.resize(32_000, 0);
            assert_eq!(audio(&Media::data(wav, "audio/wav")), 64, "{before:?}");
        }
        let endless = b"RIFF\0\0\0\0WAVEJUNK\xff\xff\xff\xffabc";
        assert_eq!(audio(&Media::data(endless, "audio/wav")), 1, "no format");
        assert_eq!(audio(&Media::data(vec![1; 2_000], "audio/mpeg")), 2);
    }
}

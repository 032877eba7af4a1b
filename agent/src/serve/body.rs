//! Reads the bodies of requests, within limits.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLong,
    TooSlow,
    Broken,
}

pub(crate) async fn read_body<B>(body: B, limit: usize, timeout: Duration) -> Result<Bytes, BodyError>
where
    B: Body,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::TooLong);
    }
    tokio::time::timeout(timeout, collect(body, limit)).await.unwrap_or(Err(BodyError::TooSlow))
}

async fn collect<B: Body>(body: B, limit: usize) -> Result<Bytes, BodyError> {
    let mut body = std::pin::pin!(body);
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        // A frame without data has trailers, which are ignored.
        let Ok(mut data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        let length = data.remaining();
        if length > limit - first.len() - all.len() {
            return Err(BodyError::TooLong);
        }
        // Most bodies arrive in one piece, which can be returned without a copy.
        if first.is_empty() && all.is_empty() {
            first = data.copy_to_bytes(length);
            continue;
        }
        all.extend_from_slice(&std::mem::take(&mut first));
        all.put(data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    #[tokio::test(flavor = "current_thread")]
    async fn a_body_over_its_limit_is_rejected() {
        let read =
            |bytes: &'static [u8]| read_body(Full::new(Bytes::from_static(bytes)), 3, Duration::from_secs(1));
        assert_eq!(read(b"abc").await.unwrap(), "abc");
        assert_eq!(read(b"abcd").await, Err(BodyError::TooLong));
    }
}

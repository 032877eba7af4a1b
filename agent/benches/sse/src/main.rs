//! Event streams of text deltas, in chunks of 16 KiB: parsing alone, and with the delta's text decoded.
//! `sse [MEGABYTES]` prints MB/s, the best of several rounds, and the ratios that matter.

use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

use agent::provider::sse::SseParser;
use bytes::Bytes;
use eventsource_stream::Eventsource as _;
use futures::executor::block_on;
use futures::{StreamExt as _, stream};
use serde::Deserialize;
use sse_stream::SseStream;
use std::borrow::Cow;
use std::convert::Infallible;

const ROUNDS: usize = 5;

type Read = fn(&[Bytes], Shape, bool) -> usize;

#[derive(Clone, Copy)]
enum Shape {
    Chat,
    Anthropic,
}

fn main() {
    let megabytes: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(64);
    let readers: [(&str, Read); 4] = [
        ("agent", ours),
        ("sse-stream", sse_stream),
        ("eventsource-stream", eventsource),
        ("line splitter", splitter),
    ];
    println!("{:<10} {:<9} {:<20} {:>10} {:>8}", "stream", "decoded", "who", "events", "MB/s");
    for (name, shape) in [("chat", Shape::Chat), ("anthropic", Shape::Anthropic)] {
        let body = body(shape, megabytes << 20);
        for chunk in [16 << 10, body.len()] {
            let chunks: Vec<Bytes> = body.chunks(chunk).map(Bytes::copy_from_slice).collect();
            for decoded in [false, true] {
                let mut best = [f64::MAX; 4];
                let mut counts = [0; 4];
                // In turns, so that a busy machine is busy for everybody.
                for _ in 0..ROUNDS {
                    for (at, (who, read)) in readers.iter().enumerate() {
                        // Its work grows with the square of the chunk.
                        if *who == "eventsource-stream" && chunk > 1 << 20 {
                            continue;
                        }
                        let begun = cpu_seconds();
                        counts[at] = black_box(read(black_box(&chunks), shape, decoded));
                        best[at] = best[at].min(cpu_seconds() - begun);
                    }
                }
                for (at, (who, _)) in readers.iter().enumerate().filter(|(at, _)| counts[*at] > 0) {
                    let speed = body.len() as f64 / best[at] / 1e6;
                    let decoded = if decoded { "yes" } else { "no" };
                    println!("{name:<10} {decoded:<9} {who:<20} {:>10} {speed:>8.0}", counts[at]);
                }
                let chunk =
                    if chunk == body.len() { "one chunk".to_owned() } else { format!("{} KiB", chunk >> 10) };
                let (rival, floor) = (best[1] / best[0], best[3] / best[0]);
                println!("{chunk}: {rival:.2} × sse-stream, {floor:.2} × line splitter\n");
            }
        }
    }
}

/// The processor time of this thread, so that other work of the machine does not count.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Deltas as the services send them.
fn body(shape: Shape, length: usize) -> Vec<u8> {
    let words = ["Hello", " world", ", the", " answer", " is \\\"42\\\"", ".\\n", " caf\u{e9}"];
    let mut body = Vec::with_capacity(length + 512);
    let mut number = 0;
    while body.len() < length {
        let word = words[number % words.len()];
        number += 1;
        match shape {
            Shape::Chat => body.extend_from_slice(format!("data: {{\"id\":\"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT\",\"object\":\"chat.completion.chunk\",\"created\":1741569952,\"model\":\"gpt-4.1-2025-04-14\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_b376dfbbd5\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"aBcDeF\"}}\n\n").as_bytes()),
            Shape::Anthropic => body.extend_from_slice(format!("event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}}}\n\n").as_bytes()),
        }
    }
    body
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow, alias = "text")]
    content: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Text<'a>,
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

/// One event: counted, or its text measured.
fn take(data: &str, shape: Shape, decoded: bool) -> usize {
    if !decoded {
        return data.len();
    }
    match shape {
        Shape::Chat => {
            serde_json::from_str::<Chat<'_>>(data).map_or(0, |chat| chat.choices[0].delta.content.len())
        }
        Shape::Anthropic => {
            serde_json::from_str::<Choice<'_>>(data).map_or(0, |event| event.delta.content.len())
        }
    }
}

fn ours(chunks: &[Bytes], shape: Shape, decoded: bool) -> usize {
    let (mut parser, mut sum, mut count) = (SseParser::new(), 0, 0);
    let mut on = |event: agent::provider::sse::SseEvent<'_>| {
        sum += take(event.data, shape, decoded);
        count += 1;
    };
    for chunk in chunks {
        parser.push(chunk, &mut on).expect("within the limits");
    }
    parser.finish(&mut on).expect("the event is short");
    black_box(sum);
    count
}

fn sse_stream(chunks: &[Bytes], shape: Shape, decoded: bool) -> usize {
    let bytes = stream::iter(chunks.iter().cloned().map(Ok::<_, Infallible>));
    let mut events = SseStream::from_bytes_stream(bytes);
    let (mut sum, mut count) = (0, 0);
    block_on(async {
        while let Some(Ok(event)) = events.next().await {
            sum += event.data.map_or(0, |data| take(&data, shape, decoded));
            count += 1;
        }
    });
    black_box(sum);
    count
}

fn eventsource(chunks: &[Bytes], shape: Shape, decoded: bool) -> usize {
    let bytes = stream::iter(chunks.iter().cloned().map(Ok::<_, Infallible>));
    let mut events = bytes.eventsource();
    let (mut sum, mut count) = (0, 0);
    block_on(async {
        while let Some(Ok(event)) = events.next().await {
            sum += take(&event.data, shape, decoded);
            count += 1;
        }
    });
    black_box(sum);
    count
}

/// No parser: every line that begins with `data: ` is taken for an event.
fn splitter(chunks: &[Bytes], shape: Shape, decoded: bool) -> usize {
    let (mut carried, mut sum, mut count) = (Vec::new(), 0, 0);
    let mut line = |line: &[u8]| {
        if let Some(data) = line.strip_prefix(b"data: ") {
            sum += take(std::str::from_utf8(data).unwrap_or_default(), shape, decoded);
            count += 1;
        }
    };
    for chunk in chunks {
        let mut rest = &chunk[..];
        while let Some(at) = memchr::memchr(b'\n', rest) {
            if carried.is_empty() {
                line(&rest[..at]);
            } else {
                carried.extend_from_slice(&rest[..at]);
                line(&carried);
                carried.clear();
            }
            rest = &rest[at + 1..];
        }
        carried.extend_from_slice(rest);
    }
    black_box(sum);
    count
}

//! Any bytes as a request of a front end, in both protocols: no panic, bounded memory and time, and an honest status for what is rejected.
#![no_main]

use agent::ui::{UiProtocol, UiRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for protocol in [UiProtocol::AiSdk, UiProtocol::AgUi] {
        match UiRequest::decode(protocol, data) {
            Ok(request) => {
                assert!(!request.thread.is_empty() && request.thread.len() <= 512);
                assert!(!format!("{request:?}").is_empty());
            }
            Err(error) => {
                assert!((400..500).contains(&error.status()), "{error}");
                assert!(error.to_json()["error"]["code"].is_string());
            }
        }
    }
});

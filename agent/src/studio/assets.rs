//! The files of the studio's web page. They are part of the library, so the browser fetches nothing from elsewhere.

use bytes::Bytes;

use super::response::{StudioResponse, bytes_response};

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";

const FILES: [(&str, &str, &str); 19] = [
    ("/", HTML, include_str!("assets/index.html")),
    ("/assets/style.css", STYLE, include_str!("assets/style.css")),
    ("/assets/icon.svg", ICON, include_str!("assets/icon.svg")),
    ("/assets/api.js", SCRIPT, include_str!("assets/api.js")),
    ("/assets/app.js", SCRIPT, include_str!("assets/app.js")),
    ("/assets/calls.js", SCRIPT, include_str!("assets/calls.js")),
    ("/assets/chat.js", SCRIPT, include_str!("assets/chat.js")),
    ("/assets/dom.js", SCRIPT, include_str!("assets/dom.js")),
    ("/assets/editor.js", SCRIPT, include_str!("assets/editor.js")),
    ("/assets/form.js", SCRIPT, include_str!("assets/form.js")),
    ("/assets/json.js", SCRIPT, include_str!("assets/json.js")),
    ("/assets/keys.js", SCRIPT, include_str!("assets/keys.js")),
    ("/assets/question.js", SCRIPT, include_str!("assets/question.js")),
    ("/assets/run.js", SCRIPT, include_str!("assets/run.js")),
    ("/assets/sessions.js", SCRIPT, include_str!("assets/sessions.js")),
    ("/assets/theme.js", SCRIPT, include_str!("assets/theme.js")),
    ("/assets/timeline.js", SCRIPT, include_str!("assets/timeline.js")),
    ("/assets/tools.js", SCRIPT, include_str!("assets/tools.js")),
    ("/assets/window.js", SCRIPT, include_str!("assets/window.js")),
];

pub(super) fn file(path: &str) -> Option<StudioResponse> {
    let (_, media_type, content) = FILES.iter().find(|(at, _, _)| *at == path)?;
    Some(bytes_response(media_type, Bytes::from_static(content.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_has_no_markup_from_texts() {
        let bytes: usize = FILES.iter().map(|(_, _, content)| content.len()).sum();
        assert!(bytes < 300 << 10, "{bytes}");
        for (path, _, content) in FILES {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "style=\"",
                "https://",
            ] {
                assert!(!content.contains(forbidden), "{path} has {forbidden}");
            }
        }
    }
}

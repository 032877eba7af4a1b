//! Tests of token estimates: their correction by the usage of replies, changed views, changed tools, and the report.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::message::{AssistantMessage, OutcomeKind, Part, ToolResultMessage, Usage, UserMessage};
use crate::tool::definition::ToolDefinition;

fn info() -> ModelInfo {
    ModelInfo::new("acme", "acme-chat", "large-1")
}

fn reply(text: &str, usage: Usage) -> Message {
    let mut reply = AssistantMessage::from(text);
    (reply.provider, reply.api, reply.model) = ("acme".into(), "acme-chat".into(), "large-1".into());
    reply.usage = usage;
    reply.into()
}

fn user(tokens: usize) -> Message {
    Message::user("abc ".repeat(tokens))
}

fn estimate(messages: Vec<Message>) -> TokenEstimate {
    ModelRequest::new(messages).estimate_tokens(&info(), &TokenEstimator)
}

#[test]
fn without_usage_the_whole_request_is_counted() {
    let first = estimate(vec![user(400)]);
    assert_eq!((first.tokens, first.error, first.is_anchored), (8 + 4 + 400, 145, false));
    let silent = estimate(vec![user(400), reply("abcd", Usage::default())]);
    assert_eq!((silent.tokens, silent.is_anchored), (8 + 4 + 400 + 4 + 1, false), "no usage: not an anchor");
    let mut foreign = AssistantMessage::from("abcd");
    (foreign.model, foreign.usage) = ("other".into(), Usage::new(9_000, 1));
    assert!(!estimate(vec![user(400), foreign.into()]).is_anchored, "the count of another model");
}

#[test]
fn the_estimate_is_additive() {
    let size = SizeCounter { counter: &TokenEstimator, api: "acme-chat" };
    let call = AssistantMessage::new([Part::thinking("hm"), Part::tool_call("1", "f", r#"{"a": 1}"#)]);
    let image = UserMessage::new([Part::image(vec![1; 10], "image/png")]);
    let all: Vec<Arc<Message>> =
        [user(100), call.into(), image.into(), user(7)].into_iter().map(Arc::new).collect();
    for cut in 0..=all.len() {
        let (head, tail) = all.split_at(cut);
        assert_eq!(size.messages(head) + size.messages(tail), size.messages(&all));
    }
}

#[test]
fn replies_correct_the_factor_which_is_bounded() {
    // Each user message is estimated at 200 tokens. The provider counts `percent` %.
    for (percent, factor) in [(10, 512), (50, 512), (100, 1024), (150, 1536), (250, 2560), (900, 2560)] {
        let mut messages = vec![user(196), reply("abcd", Usage::new(1_000, 1))];
        let mut input = 1_001;
        for _ in 0..12 {
            input += 200 * percent / 100;
            messages.extend([user(196), reply("abcd", Usage::new(input, 1))]);
            input += 1;
        }
        messages.push(user(196));
        let estimate = estimate(messages);
        let after = 200 * factor / 1024;
        assert_eq!(estimate.tokens, input + after, "{percent} %");
        let is_far_off = estimate.error > estimate.tokens.div_ceil(10);
        assert_eq!(is_far_off, percent == 900, "{percent} %: {estimate:?}");
    }
}

#[test]
fn small_and_negative_increments_and_dropped_reasoning() {
    let messages =
        vec![user(96), reply("a", Usage::new(500, 10)), user(20), reply("b", Usage::new(9_000, 10))];
    assert_eq!(estimate(messages).tokens, 9_010, "an increment below 64 says nothing");
    let messages =
        vec![user(96), reply("a", Usage::new(500, 10)), user(96), reply("b", Usage::new(50, 10)), user(96)];
    assert_eq!(estimate(messages).tokens, 60 + 100, "a count that decreased says nothing");
    let usage = Usage { reasoning: 300, ..Usage::new(1_000, 310) };
    assert_eq!(
        estimate(vec![user(96), reply("a", usage)]).tokens,
        1_010,
        "hidden reasoning is not sent again"
    );
    let extreme = vec![user(96), reply("a", Usage::new(u64::MAX, u64::MAX)), user(96)];
    assert_eq!(estimate(extreme).tokens, u64::MAX);
}

#[test]
fn a_change_of_the_view_lowers_the_estimate_by_what_it_replaced() {
    let mut conversation: crate::message::Conversation =
        [user(5_000), reply("abcd", Usage::new(6_000, 1)), user(96)].into_iter().collect();
    let mut view = ConversationView::of(&conversation);
    let tokens = |view: &ConversationView| {
        ModelRequest::default().estimate_view(view, &info(), &TokenEstimator).tokens
    };
    assert_eq!(tokens(&view), 6_001 + 100);
    view.compact(2, "abcd").unwrap();
    let summary = SizeCounter { counter: &TokenEstimator, api: "" }.message(&view.messages()[0]);
    // The summary replaces both messages: 5,004 and 5 tokens.
    assert_eq!(tokens(&view), 6_001 + 100 - 5_009 + summary);

    // The usage of this reply already counts the summary.
    conversation.push(reply("abcd", Usage::new(1_130, 1)));
    conversation.push(user(96));
    view.update(&conversation);
    assert_eq!(tokens(&view), 1_131 + 100);
}

#[test]
fn replies_before_and_after_a_change_of_the_view_do_not_correct_the_factor() {
    let mut conversation: crate::message::Conversation =
        [user(5_000), reply("abcd", Usage::new(6_000, 1)), user(196)].into_iter().collect();
    conversation.compact(2, "abcd").unwrap();
    // The request grew by 200 tokens, and the summary made it shorter.
    conversation.extend([reply("abcd", Usage::new(6_101, 1)), user(96)]);
    let view = ConversationView::of(&conversation);
    let tokens = ModelRequest::default().estimate_view(&view, &info(), &TokenEstimator).tokens;
    assert_eq!(tokens, 6_102 + 100);
}

fn tool(name: &str) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let plan = crate::args::Plan::compile(name, &schema, crate::args::PlanOptions::default()).unwrap();
    ToolDefinition::new(plan, "Reads a file.").unwrap()
}

#[test]
fn tools_that_changed_since_the_reply_count() {
    let size = SizeCounter { counter: &TokenEstimator, api: "acme-chat" };
    let (read, list) = (tool("read"), tool("list"));
    let one = ModelRequest::default().with_system("Be brief.").with_tools([read.clone()]);
    let both = ModelRequest::default().with_system("Be brief.").with_tools([read.clone(), list.clone()]);
    let recorded = |request: &ModelRequest, input| {
        let Message::Assistant(mut reply) = reply("abcd", Usage::new(input, 1)) else { unreachable!() };
        reply.set_request_frame(size.frame(request, &request.tools));
        Message::Assistant(reply)
    };
    let tokens = |request: &ModelRequest, messages: Vec<Message>| {
        let mut request = request.clone();
        request.messages = messages.into_iter().map(Arc::new).collect();
        request.estimate_tokens(&info(), &TokenEstimator).tokens
    };
    let after = |reply| vec![user(40), reply, user(96)];
    assert_eq!(tokens(&one, after(recorded(&one, 1_000))), 1_001 + 100);
    assert_eq!(tokens(&both, after(recorded(&one, 1_000))), 1_001 + 100 + size.tool(&list));
    assert_eq!(tokens(&one, after(recorded(&both, 1_000))), 1_001 + 100 - size.tool(&list));
    assert_eq!(tokens(&both, after(recorded(&both, 3))), 4 + 100);
    // This reply does not record the size of its tools, so the size is assumed to be unchanged.
    assert_eq!(tokens(&both, after(reply("abcd", Usage::new(1_000, 1)))), 1_001 + 100);
    // The factor is computed only from messages, so a tool that was added between the two replies does not change it.
    let more = 1_001 + 100 + size.tool(&list);
    let twice = vec![user(40), recorded(&one, 1_000), user(96), recorded(&both, more), user(96)];
    assert_eq!(tokens(&both, twice), more + 1 + 100);

    // Changed tools count in the estimate for a view, too.
    let conversation: crate::message::Conversation =
        [user(5_000), recorded(&one, 6_000), user(96)].into_iter().collect();
    let mut view = ConversationView::of(&conversation);
    let of_view = |request: &ModelRequest, view: &ConversationView| {
        request.estimate_view(view, &info(), &TokenEstimator).tokens
    };
    assert_eq!(of_view(&both, &view), 6_001 + 100 + size.tool(&list));
    let before = of_view(&one, &view);
    view.compact(2, "abcd").unwrap();
    assert_eq!(of_view(&both, &view), of_view(&one, &view) + size.tool(&list));
    assert!(of_view(&one, &view) < before - 4_000);
}

#[test]
fn the_report_adds_up_to_the_estimate() {
    let call = AssistantMessage::new([Part::thinking("abcd abcd"), Part::tool_call("1", "read", "{}")]);
    let result =
        ToolResultMessage::new("1", "read", OutcomeKind::Completed).with_content("abcd ".repeat(300));
    let picture = UserMessage::new([Part::image_url("https://example.com/a.png"), Part::text("abcd")]);
    let start: Vec<Message> = vec![user(40), call.into(), result.into(), picture.into()];
    for anchor in [None, Some(50), Some(1_700), Some(90_000)] {
        let mut messages = start.clone();
        if let Some(input) = anchor {
            messages.extend([reply("abcd", Usage::new(input, 1)), user(100)]);
        }
        let request =
            ModelRequest::new(messages).with_system("Be brief.").with_tools([tool("read"), tool("list")]);
        let report = ContextReport::of(&request, &info()).with_window(100_000, 90_000);
        assert_eq!(report.usable, Some(50_000), "at most half of the window is reserved");
        assert_eq!(report.parts.iter().map(|part| part.tokens).sum::<u64>(), report.used, "{anchor:?}");
        assert_eq!(report.used, request.estimate_tokens(&info(), &TokenEstimator).tokens);
        let of = |source: ContextSource| report.tokens_of(&source);
        assert!(of(ContextSource::Media) > of(ContextSource::ToolResults("read".into())), "{report}");
        assert!(of(ContextSource::ToolResults("read".into())) > of(ContextSource::Tool("list".into())));
        assert!(
            of(ContextSource::Thinking) > 0
                && of(ContextSource::Replies) > 0
                && of(ContextSource::System) > 0
        );
        assert_eq!(report.to_string().lines().count(), 1 + report.parts.len());
    }
}

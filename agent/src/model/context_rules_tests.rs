//! Tests of the rules on growing conversations, with small windows.

use std::sync::Arc;

use super::*;
use crate::message::{AssistantMessage, Conversation, Part, ToolResultMessage, UserMessage};
use crate::model::{ContextReport, ModelInfo, scripted::ScriptedModel};

fn info() -> ModelInfo {
    ModelInfo::new("acme", "acme-chat", "large-1")
}

fn words(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

fn add_turn(conversation: &mut Conversation, tool: &str, tokens: usize) {
    let id = format!("call_{}", conversation.len());
    conversation.push(Message::user("And the next one?"));
    conversation.push(Message::from(AssistantMessage::new([Part::tool_call(&id, tool, "{}")])));
    let result = ToolResultMessage::new(&id, tool, OutcomeKind::Completed).with_content(words(tokens));
    conversation.push(Message::from(result));
    conversation.push(Message::assistant(words(20)));
}

fn estimate_of(view: &ConversationView) -> TokenEstimate {
    ModelRequest::new(view.messages().iter().cloned()).estimate_tokens(&info(), &TokenEstimator)
}

fn decide(rules: &ContextRules, view: &ConversationView, usable: u64) -> ViewDecision {
    let size = SizeCounter { counter: &TokenEstimator, api: "acme-chat" };
    let effect_of = |tool: &str| Some(if tool == "send" { Effect::Once } else { Effect::Pure });
    rules.decide(view, estimate_of(view), usable, size, (true, true), effect_of)
}

#[test]
fn a_long_conversation_fits_at_every_turn_in_few_large_steps() {
    for (usable, tokens) in [(20_000, 900), (40_000, 900), (40_000, 100), (30_000, 4_000)] {
        let rules = ContextRules::new();
        let mut conversation = Conversation::new();
        conversation.push(Message::from(UserMessage::from(words(300)).pinned()));
        let mut view = ConversationView::of(&conversation);
        let (mut changes, mut compactions) = (0, 0);
        // The short results need more turns to fill the window.
        for turn in 0..if tokens == 100 { 300 } else { 100 } {
            add_turn(&mut conversation, "read", tokens);
            view.update(&conversation);
            for _ in 0..4 {
                match decide(&rules, &view, usable) {
                    ViewDecision::Fits => break,
                    ViewDecision::Clear { results } => {
                        let before = estimate_of(&view).tokens;
                        view.clear(results).unwrap();
                        let saved = before - estimate_of(&view).tokens;
                        assert!(saved >= usable / 11, "a clear of {saved} of {usable} is too small");
                    }
                    ViewDecision::Compact { at } => {
                        view.compact(at, words(400)).unwrap();
                        compactions += 1;
                    }
                    other => panic!("{usable}, turn {turn}: {other:?}"),
                }
                changes += 1;
            }
            assert!(estimate_of(&view).upper_bound() <= usable, "{usable}, {tokens}, turn {turn}");
            assert!(view.messages().iter().any(|message| message.text() == words(300)), "the pin stays");
        }
        // Each change frees at least a tenth of the window, which limits the number of changes.
        let all = estimate_of(&ConversationView::of(&conversation)).upper_bound();
        assert!(
            changes <= all / (usable / 10) + 1,
            "{usable}, {tokens}: {changes} changes, {compactions} of them summaries"
        );
        assert!(changes > 0, "{usable}, {tokens}");
        let again = ConversationView::fold(&conversation, view.changes().to_vec());
        assert_eq!(again.messages(), view.messages());
    }
}

#[test]
fn what_is_never_cleared() {
    let mut conversation = Conversation::new();
    for tool in ["plan", "read", "read", "send", "small", "read", "read", "read"] {
        add_turn(&mut conversation, tool, if tool == "small" { 200 } else { 2_000 });
    }
    let view = ConversationView::of(&conversation);
    let rules = ContextRules::new().keep_results_of(["plan"]).target(0.01).clear_at(0.02).compact_at(0.02);
    let size = SizeCounter { counter: &TokenEstimator, api: "acme-chat" };
    let cleared: Vec<_> = rules
        .clearable(&view, size, true, |_| Some(Effect::Once))
        .map(|(cleared, _)| cleared.index)
        .collect();
    assert_eq!(
        cleared,
        [6, 10, 14],
        "not the plan, not the small one, not those of the newest three replies"
    );

    let none = ContextRules::new().keep_results(20);
    assert_eq!(none.clearable(&view, size, true, |_| Some(Effect::Pure)).count(), 0);
    let all = ContextRules::new().keep_results(0);
    assert_eq!(all.clearable(&view, size, true, |_| Some(Effect::Pure)).count(), 7);

    let refused = ToolResultMessage::new("call_x", "read", OutcomeKind::Failed)
        .with_code(Some("invalid_arguments".into()))
        .with_content(words(2_000));
    conversation.push(Message::user("Again"));
    conversation.push(Message::from(AssistantMessage::new([Part::tool_call("call_x", "read", "{}")])));
    conversation.push(Message::from(refused));
    let view = ConversationView::of(&conversation);
    assert_eq!(
        all.clearable(&view, size, true, |_| Some(Effect::Pure)).count(),
        7,
        "the report of the current turn stays"
    );
    conversation.push(Message::user("Next"));
    let view = ConversationView::of(&conversation);
    assert_eq!(all.clearable(&view, size, true, |_| Some(Effect::Pure)).count(), 8);
}

#[test]
fn the_line_says_whether_the_call_may_be_repeated() {
    for (effect, words) in [(Effect::Pure, "may be repeated"), (Effect::Once, "must not be repeated")] {
        let line = replacement("send", Some("call_1"), 1_200, effect);
        assert!(line.contains(words) && line.contains("`read_result` with the handle `call_1`"), "{line}");
    }
}

#[test]
fn a_line_names_one_result_and_no_tool_that_the_model_lacks() {
    let mut conversation = Conversation::new();
    for _ in 0..2 {
        conversation.push(Message::from(AssistantMessage::new([Part::tool_call("call_1", "read", "{}")])));
        let result = ToolResultMessage::new("call_1", "read", OutcomeKind::Completed);
        conversation.push(Message::from(result.with_content(words(2_000))));
    }
    let (view, rules) = (ConversationView::of(&conversation), ContextRules::new().keep_results(0));
    let size = SizeCounter { counter: &TokenEstimator, api: "acme-chat" };
    let lines = |can_read| -> Vec<String> {
        let cleared = rules.clearable(&view, size, can_read, |_| Some(Effect::Pure));
        cleared.map(|(cleared, _)| cleared.line).collect()
    };
    let [first, second] = &lines(true)[..] else { panic!("both can be cleared") };
    assert!(
        first.contains("the handle `call_1` returns") && second.contains("the handle `call_1#2` returns")
    );
    assert!(lines(false).iter().all(|line| !line.contains("read_result")));
}

#[test]
fn a_result_longer_than_the_window_is_shortened() {
    let mut conversation = Conversation::new();
    add_turn(&mut conversation, "read", 9_000);
    let conversation: Conversation = conversation.shared().iter().take(3).cloned().collect();
    let mut view = ConversationView::of(&conversation);
    let ViewDecision::Shorten { index, bytes } = decide(&ContextRules::new(), &view, 8_000) else {
        panic!("it does not fit");
    };
    assert_eq!((index, bytes), (2, 8_000));
    view.shorten(index, bytes).unwrap();
    assert_eq!(decide(&ContextRules::new(), &view, 8_000), ViewDecision::Fits);

    // An old result that was shortened is cleared like any other old result.
    let (old, size) =
        (ContextRules::new().keep_results(0), SizeCounter { counter: &TokenEstimator, api: "acme-chat" });
    let clearable = |view: &ConversationView| -> Vec<_> {
        old.clearable(view, size, true, |_| Some(Effect::Pure)).map(|(cleared, _)| cleared).collect()
    };
    let cleared = clearable(&view);
    assert_eq!(cleared.len(), 1);
    view.clear(cleared).unwrap();
    assert_eq!(clearable(&view), []);
}

#[test]
fn a_conversation_that_cannot_be_shortened_is_full_and_never_cut_silently() {
    let conversation = Conversation::from_iter([Message::user(words(9_000))]);
    let view = ConversationView::of(&conversation);
    let ViewDecision::Full { needed, usable } = decide(&ContextRules::new(), &view, 8_000) else {
        panic!("there is nothing to replace");
    };
    assert!(needed > 9_000 && usable == 8_000);
    let pinned = [
        Message::from(UserMessage::from(words(9_000)).pinned()),
        Message::assistant("Yes."),
        Message::user("Hi"),
    ];
    let view = ConversationView::of(&Conversation::from_iter(pinned));
    assert!(matches!(decide(&ContextRules::new(), &view, 8_000), ViewDecision::Full { .. }), "pins stay");
}

#[test]
fn a_lowered_window_counts() {
    let mut conversation = Conversation::new();
    (0..6).for_each(|_| add_turn(&mut conversation, "read", 1_000));
    let mut view = ConversationView::of(&conversation);
    assert_eq!(decide(&ContextRules::new(), &view, 100_000), ViewDecision::Fits);
    view.lower_window(9_000).unwrap();
    assert_ne!(decide(&ContextRules::new(), &view, 100_000), ViewDecision::Fits);
}

#[test]
fn shares_that_contradict_each_other_are_named() {
    let rules = || ContextRules::new().window(100_000);
    for bad in [
        rules().target(0.0),
        rules().target(0.6),
        rules().clear_at(0.9),
        rules().compact_at(1.0),
        rules().compact_at(f64::NAN),
    ] {
        assert!(matches!(bad.usable(None, None, None), Err(ViewError::Shares { .. })), "{bad:?}");
    }
    assert_eq!(rules().window(0).usable(None, None, None), Err(ViewError::NoRoom { window: 0 }));
    assert_eq!(rules().window(u64::MAX).usable(None, None, Some(u64::MAX)), Ok(u64::MAX / 2 + 1));
}

#[test]
fn a_loop_of_ones_own_is_told_where_a_summary_is_needed() {
    let model = ScriptedModel::new([""; 0]).with_info(info());
    let request = ModelRequest::default().with_max_tokens(4_000);
    let (rules, mut conversation, mut summaries) =
        (ContextRules::new().window(24_000), Conversation::new(), 0);
    for turn in 0..60 {
        conversation.push(Message::user(words(300)));
        add_turn(&mut conversation, "read", 900);
        while let Some(at) = rules.fit(&mut conversation, &request, &model).unwrap() {
            conversation.compact(at, "They went on.").unwrap();
            summaries += 1;
        }
        let mut sent = request.clone();
        sent.messages = conversation.view();
        assert!(ContextReport::of(&sent, &info()).used <= 20_000, "turn {turn}");
        let names_a_tool = |message: &Arc<Message>| message.text().contains("read_result");
        assert!(!sent.messages.iter().any(names_a_tool), "the request has no tools");
    }
    assert!(summaries > 0 && conversation.view_changes().len() > summaries);

    let mut pinned = Conversation::from_iter([Message::from(UserMessage::from(words(30_000)).pinned())]);
    let error = rules.fit(&mut pinned, &request, &model).unwrap_err();
    assert!(matches!(error, ViewError::Full { usable: 20_000, .. }), "{error}");
    assert!(pinned.view_changes().is_empty());
}

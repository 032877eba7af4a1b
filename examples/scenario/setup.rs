//! The assistant of a scenario.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use agent::message::{AssistantMessage, Conversation, Message, OutcomeKind, Part, ToolResultMessage};
use agent::{
    Assistant, AssistantBuilder, BeforeCall, Control, Decision, ScriptedModel, UsageLimits,
    hooks::AfterCall,
    run::{Queue, SteeringPolicy},
};

use super::given::{After, Before, Given, Going, Guard, Limits, Mode, Past, Ruling, Steering, Taken, Word};
use super::{model, tools};

pub(crate) fn assistant(given: &Arc<Given>, model: ScriptedModel) -> Result<Assistant, Box<dyn Error>> {
    let mut builder = Assistant::builder(model)
        .tools(tools::tools(&given.tools)?)
        .conversation(history(&given.history))
        .steering_policy(match given.steering_policy {
            Steering::AfterBatch => SteeringPolicy::AfterBatch,
            Steering::SkipUnstarted => SteeringPolicy::SkipUnstarted,
            Steering::CancelRunning => SteeringPolicy::CancelRunning,
        });
    for (taken, queue) in [(&given.steering_mode, Queue::Steering), (&given.follow_up_mode, Queue::FollowUp)]
    {
        if *taken == Taken::All {
            builder = builder.deliver_all(queue);
        }
    }
    builder = match given.loop_guard {
        None | Some(Guard::Switch(false)) => builder.without_loop_guard(),
        Some(Guard::Switch(true)) => builder,
        Some(Guard::Own { refuse_at, end_at }) => builder.loop_guard(refuse_at, end_at),
    };
    if given.mode == Mode::Sequential {
        builder = builder.sequential();
    }
    if let Some(calls) = given.max_concurrency {
        builder = builder.max_concurrency(calls);
    }
    if let Some(turns) = given.max_turns {
        builder = builder.max_turns(turns);
    }
    if let Some(tries) = given.max_retries {
        builder = builder.max_retries(tries);
    }
    if let Some(given) = &given.limits {
        builder = builder.limits(limits(given));
    }
    builder = hooks(given, builder);
    let rulings = given.clone();
    builder = builder.on_approval(move |request| {
        let decision = rulings.decisions.get(&request.call.id).map_or(Decision::Allow, decision);
        async move { decision }
    });
    Ok(builder.build()?)
}

fn limits(given: &Limits) -> UsageLimits {
    UsageLimits {
        requests: given.requests,
        tool_calls: given.tool_calls,
        input_tokens: given.input_tokens,
        output_tokens: given.output_tokens,
        total_tokens: given.total_tokens,
        wall_time: given.wall_time_ms.map(Duration::from_millis),
        cost: given.cost,
    }
}

/// The conversation before the run.
fn history(given: &[Past]) -> Conversation {
    // The names of the calls so far: a result says only which call it belongs to.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut conversation = Conversation::new();
    for Past { user, assistant, calls, tool_result, text } in given {
        let message: Message = if let Some(text) = user {
            Message::user(&**text)
        } else if let Some(id) = tool_result {
            let name = names.get(&**id).copied().unwrap_or_default();
            let content = text.as_deref().unwrap_or_default();
            ToolResultMessage::new(&**id, name, OutcomeKind::Completed).with_content(content).into()
        } else {
            names.extend(calls.iter().map(|call| (&*call.id, &*call.name)));
            let text = assistant.as_deref().filter(|text| !text.is_empty()).map(Part::text);
            let parts = text.into_iter().chain(calls.iter().map(model::call_part));
            AssistantMessage::from(parts.collect::<Vec<_>>()).into()
        };
        conversation.push(message);
    }
    conversation
}

fn hooks(given: &Given, mut builder: AssistantBuilder) -> AssistantBuilder {
    let concerns = |tool: &Option<String>, name: &str| tool.as_deref().is_none_or(|tool| tool == name);
    if let Some(before) = given.hooks.before_tool_call.clone() {
        builder = builder.before_tool_call(move |call| {
            let Before { tool, block, reason, args, error } = &before;
            let said = match (error, args) {
                _ if !concerns(tool, &call.call().name) => Ok(BeforeCall::Continue),
                (Some(error), _) => Err(error.as_str().into()),
                (None, Some(args)) => Ok(BeforeCall::Replace(args.clone())),
                (None, None) if *block => Ok(BeforeCall::block(reason.as_deref().unwrap_or("blocked"))),
                (None, None) => Ok(BeforeCall::Continue),
            };
            async move { said }
        });
    }
    if let Some(after) = given.hooks.after_tool_call.clone() {
        builder = builder.after_tool_call(move |call, _| {
            let After { tool, text, metadata, is_error, control, error } = &after;
            let said = match error {
                _ if !concerns(tool, &call.call().name) => Ok(AfterCall::default()),
                Some(error) => Err(error.as_str().into()),
                None => Ok(AfterCall {
                    content: text.as_deref().map(|text| vec![Part::text(text)]),
                    metadata: metadata.clone().map(|metadata| metadata.into_iter().collect()),
                    is_error: *is_error,
                    control: control.map(|control| match control {
                        Going::Continue => Control::Continue,
                        Going::EndIfAll => Control::EndIfAll,
                        Going::EndNow => Control::EndNow,
                    }),
                }),
            };
            async move { said }
        });
    }
    builder
}

fn decision(given: &Ruling) -> Decision {
    match (given.decision, &given.args) {
        (Word::Deny, _) => Decision::Deny(given.message.as_deref().unwrap_or("It was denied.").to_owned()),
        (Word::Later, _) => Decision::Later,
        (Word::Allow, None) => Decision::Allow,
        (Word::Allow, Some(args)) => Decision::AllowWith(args.clone()),
    }
}

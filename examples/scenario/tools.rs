//! The tools of scenarios.

use std::error::Error;
use std::time::Duration;

use agent::message::Part;
use agent::{Approval, Control, Progress, Tool, ToolContext, ToolError, ToolOutput, ToolSet, json};
use serde_json::Value;
use tokio::time::sleep;

pub(crate) fn tools(names: &[String]) -> Result<ToolSet, Box<dyn Error>> {
    let mut set = ToolSet::new();
    for (at, name) in names.iter().enumerate() {
        set = set.with(tool(name).map_err(|error| format!("/tools/{at}: {error}"))?);
    }
    Ok(set)
}

fn tool(name: &str) -> Result<Tool, Box<dyn Error>> {
    let tool = match name {
        "double" | "gated" => make(name, |args, _| async move { Ok(double(&args)) }),
        "ok" => make(name, |_, _| after(50, "ok")),
        "slow" => make(name, |_, _| after(150, "slow done")),
        "fast" => make(name, |_, _| after(0, "fast done")),
        "solo" => make(name, |_, _| after(30, "solo done")),
        "timed" => make(name, |_, _| after(500, "late")),
        "boom" => make(name, |_, _| async { Err(ToolError::new("kaput")) }),
        "panics" => make(name, |_, _| async { panic!("a tool of a scenario panics") }),
        "retry" => make(name, |_, _| async { Err(ToolError::retry("try a smaller number")) }),
        "deaf" => make(name, |_, _| std::future::pending()),
        "wait" => make(name, |_, cx| async move {
            cx.cancelled().await;
            Err(ToolError::new("told to stop"))
        }),
        "finish" => {
            make(name, |_, _| async { Ok(ToolOutput::text("finished").with_control(Control::EndIfAll)) })
        }
        "halt" => make(name, |_, _| async { Ok(ToolOutput::text("halted").with_control(Control::EndNow)) }),
        "upd" => make(name, |_, cx| async move {
            sleep(Duration::from_millis(5)).await;
            tell(&cx, "half");
            after(5, "all").await
        }),
        "late" => make(name, |_, cx| async move {
            sleep(Duration::from_millis(5)).await;
            tell(&cx, "early");
            sleep(Duration::from_millis(5)).await;
            tokio::spawn(async move {
                sleep(Duration::from_millis(10)).await;
                tell(&cx, "too late");
            });
            Ok(ToolOutput::text("done"))
        }),
        other => return Err(format!("no such tool in scenarios; got string {other:?}").into()),
    };
    Ok(tool?.configure(|options| match name {
        "solo" => options.exclusive(),
        "gated" => options.approval(Approval::ALWAYS),
        "timed" => options.timeout(Duration::from_millis(100)),
        _ => options,
    })?)
}

fn make<F>(name: &str, body: fn(Value, ToolContext) -> F) -> Result<Tool, Box<dyn Error>>
where
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let schema = match name {
        "double" | "gated" => {
            json!({"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]})
        }
        _ => json!({"type": "object", "properties": {}}),
    };
    Ok(Tool::new(name, format!("The tool `{name}` of scenarios."), schema, body)?)
}

async fn after(millis: u64, text: &'static str) -> Result<ToolOutput, ToolError> {
    if millis > 0 {
        sleep(Duration::from_millis(millis)).await;
    }
    Ok(ToolOutput::text(text))
}

fn double(args: &Value) -> ToolOutput {
    let value = args["value"].as_i64().unwrap_or_default();
    ToolOutput::text(i128::from(value).saturating_mul(2).to_string())
}

fn tell(cx: &ToolContext, text: &str) {
    cx.progress(Progress::new(text).with_content([Part::text(text)]));
}

//! Task: return an image from a tool, to models with and without image input.
//!
//! ```sh
//! cargo run --example image_result     # prints what each of two models receives
//! ```
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use agent::message::{Content, Message, Part};
use agent::model::{Capabilities, ModelInfo, reply};
use agent::{Assistant, ScriptedModel, ToolOutput, tool, tools};
use std::error::Error;

/// A PNG of one red pixel, in place of a camera's picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// Takes a picture.
#[tool(read_only)]
fn take_picture(
    /// Which camera.
    #[arg(range(1..=4))]
    camera: u8,
) -> ToolOutput {
    ToolOutput::parts(vec![
        Part::text(format!("Camera {camera}, just now:")),
        Part::image(PICTURE, "image/png"),
    ])
    // Metadata is for the application. It is never sent to a model.
    .with_metadata("bytes", PICTURE.len())
}

/// Asks a model for a picture, and prints the tool result that the model receives.
async fn look(model: ScriptedModel) -> Result<(), Box<dyn Error>> {
    let assistant = Assistant::builder(model.clone()).tools(tools![take_picture]).build()?;
    assistant.prompt("What does camera 2 see?").await?;
    let last_request = model.requests().pop().ok_or("nothing was asked")?;
    let Some(Message::ToolResult(result)) = last_request.messages.last().map(|message| &**message) else {
        return Err("there is no result".into());
    };
    for part in &result.content {
        match &part.content {
            Content::Image(media) => println!("  a picture, {}", media.mime_type.as_deref().unwrap_or("?")),
            _ => println!("  {}", part.as_text().unwrap_or_default()),
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let script = || [reply().tool_call("take_picture", r#"{"camera": 2}"#), reply().text("Something red.")];

    println!("A model that sees is sent:");
    look(ScriptedModel::new(script())).await?;

    // A scripted model is assumed to see images, so its capabilities are changed here.
    let mut text_only = Capabilities::default();
    text_only.images = false;
    let info = ModelInfo::new("local", "local", "tiny").with_capabilities(text_only);
    println!("A model of words is sent:");
    look(ScriptedModel::new(script()).with_info(info)).await
}

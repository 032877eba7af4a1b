//! One prompt and its answer.

use crate::chat::Chat;
use crate::commands::is_farewell;
use crate::desk::Question;
use crate::keys::{Key, Person, Typed};
use crate::look::{Kind, one_line};
use crate::prompt::Prompt;
use crate::questions;
use crate::screen::{Plain, Screen, Show};
use crate::signals::{self, Signal};
use crate::tell::Teller;
use crate::terminal::{self, Keys};
use agent::RunError;
use agent::run::{Queue, Run, RunHandle};
use rustyline::error::ReadlineError;
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Time between two updates of the screen.
const FRAME: Duration = Duration::from_millis(50);

const CANCELLED: &str = "the user cancelled it";

/// The hint after a first Ctrl-C when no run is active.
pub(crate) const ONCE_MORE: &str = "Ctrl-C once more, Ctrl-D or /quit ends the chat";

/// How a turn ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The run has ended, with an answer or with an error that was shown.
    Back {
        /// Typed text that did not reach the model. The next prompt begins with it.
        unheard: String,
        /// Whether Ctrl-C was pressed. The next Ctrl-C ends the chat.
        is_interrupted: bool,
    },
    /// The user wants to leave, or the terminal is gone.
    Quit,
}

/// Sends a prompt, and shows the run in a terminal. Lines that are typed during the run steer it, and Ctrl-C cancels it.
pub(crate) async fn live(
    chat: &mut Chat,
    prompt: &mut Prompt,
    said: String,
) -> Result<After, Box<dyn std::error::Error>> {
    let look = chat.look;
    let mut run = chat.assistant.prompt(said).stream();
    // A Ctrl-C before the first event cancels by this handle, because the assistant does not know the run yet.
    let handle = run.handle();
    let mut teller = Teller::new(look, &one_line(&chat.chosen.name), chat.results.len() + 1);
    let mut screen = Screen::new(io::stdout(), look, terminal::size());
    let mut keys = Keys::new()?;
    let mut person = Person::default();
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !person.quits() {
        tokio::select! {
            event = run.next() => match event {
                Some(event) => {
                    teller.tell(&event, chat.assistant.registry(), &mut screen);
                    keep(chat, &event.kind, &mut screen);
                }
                None => break,
            },
            key = keys.next() => match key {
                Key::Gone => person.is_gone = true,
                Key::Interrupt => interrupt(&handle, &mut person),
                Key::Resize(columns, rows) => screen.resize(columns, rows),
                key => {
                    if let Some(text) = person.typed.change(&key) {
                        steer(chat, &mut teller, &mut person.typed, text, &mut screen);
                    }
                }
            },
            Some(question) = chat.asked.recv() => {
                // Questions of a cancelled run are not shown.
                if question.is_closed() || person.interrupts > 0 {
                    continue;
                }
                screen.close()?;
                // The line editor uses the terminal until the user has decided. The run pauses meanwhile.
                let interrupts = person.interrupts;
                for line in person.absorb(&keys.finish().await) {
                    steer(chat, &mut teller, &mut person.typed, line, &mut screen);
                }
                let is_cancelled = person.interrupts > interrupts;
                let is_answered = !is_cancelled
                    && !person.quits()
                    && answer(chat, prompt, &mut teller, question).await?;
                keys = Keys::new()?;
                let (columns, rows) = terminal::size();
                screen.resize(columns, rows);
                match (is_answered, is_cancelled) {
                    (true, _) => {}
                    (false, true) => handle.cancel(CANCELLED),
                    (false, false) => interrupt(&handle, &mut person),
                }
            },
            _ = frames.tick() => {
                let columns = screen.columns();
                screen.below(teller.rows(&person.typed.text, person.interrupts > 0, columns));
                screen.draw()?;
            }
            signal = signals::next() => match signal {
                Signal::Interrupt => interrupt(&handle, &mut person),
                Signal::End => person.is_gone = true,
            },
        }
    }
    screen.close()?;
    if person.quits() {
        // Dropping the run cancels it. The conversation stays valid, and `finish` saves it.
        drop((run, keys));
        finish(chat, &mut teller);
        return Ok(After::Quit);
    }
    let error = run.output().await.err();
    let interrupts = person.interrupts;
    let late = person.absorb(&keys.finish().await);
    let unheard = unheard(chat, late, &person.typed);
    if let Some(error) = error {
        screen.line(&look.paint(Kind::Bad, &format!("✗ {}", told(&error))));
    }
    screen.line(&look.paint(Kind::Dim, &teller.summary()));
    if let Err(error) = chat.keep() {
        screen.line(&look.paint(Kind::Bad, &format!("✗ not kept: {error}")));
    }
    if person.interrupts > interrupts {
        screen.line(&look.paint(Kind::Dim, ONCE_MORE));
    }
    screen.line("");
    screen.close()?;
    finish(chat, &mut teller);
    Ok(if person.quits() {
        After::Quit
    } else {
        After::Back { unheard, is_interrupted: person.interrupts > 0 }
    })
}

/// Asks the user, and passes the decision or input to the run. Returns false if the user pressed Ctrl-C.
async fn answer(
    chat: &Chat,
    prompt: &mut Prompt,
    teller: &mut Teller,
    question: Question,
) -> Result<bool, ReadlineError> {
    let registry = chat.assistant.registry();
    // Errors of `send` are ignored: the run may no longer wait.
    match question {
        Question::Call { request, answer } => {
            let sent = chat.sent(&request.call.id);
            let decided = chat.desk.ask(chat.look, prompt, registry, &request, sent.as_ref()).await?;
            let Some(decision) = decided else { return Ok(false) };
            teller.decided(&request.call, &decision, registry);
            drop(answer.send(decision));
        }
        Question::Tool { question, answer } => {
            let Some(input) = questions::ask(chat.look, prompt, &question).await? else { return Ok(false) };
            drop(answer.send(input));
        }
    }
    Ok(true)
}

/// Counts a Ctrl-C, and cancels the run. After the second one the chat ends.
fn interrupt(run: &RunHandle, person: &mut Person) {
    person.interrupts += 1;
    run.cancel(CANCELLED);
}

/// Sends a typed line to the run. Commands, and lines that the full queue refuses, stay in the input line.
fn steer(chat: &Chat, teller: &mut Teller, typed: &mut Typed, text: String, screen: &mut impl Show) {
    if text.starts_with('/') || is_farewell(&text) {
        screen
            .line(&chat.look.paint(Kind::Dim, "commands wait for the answer: it stands at the prompt then"));
        typed.text = text;
        return;
    }
    let receipt = chat.assistant.steer(text.as_str());
    if receipt.status().is_some_and(|delivery| !delivery.is_delivered()) {
        screen.line(&chat.look.paint(Kind::Bad, "✗ too many lines wait; this one was not taken"));
        typed.text = text;
        return;
    }
    teller.waiting.push((receipt.id().to_owned(), text));
}

/// Takes back all text that did not reach the run: queued lines, late lines, and the unfinished line. Clears the steering queue.
fn unheard(chat: &Chat, late: Vec<String>, typed: &Typed) -> String {
    let queued = chat.assistant.queued(Queue::Steering);
    chat.assistant.clear_queue(Queue::Steering);
    let lines = queued.iter().map(|message| message.text()).chain(late).chain([typed.text.clone()]);
    lines.filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
}

fn finish(chat: &mut Chat, teller: &mut Teller) {
    chat.used += &teller.usage;
    chat.turns += teller.turns;
    chat.remember(std::mem::take(&mut teller.shown));
    // If `live` dropped the run, the last messages are not saved yet. `main` reports a failure of a chat that ends here.
    let _ = chat.keep();
}

/// Saves the conversation at the end of each turn.
fn keep(chat: &mut Chat, kind: &agent::EventKind, show: &mut impl Show) {
    if matches!(kind, agent::EventKind::TurnEnd { .. })
        && let Err(error) = chat.keep()
    {
        show.line(&chat.look.paint(Kind::Bad, &format!("✗ not kept: {error}")));
    }
}

/// Returns the text of an error, with a hint where there is one.
fn told(error: &RunError) -> String {
    let text = one_line(&error.to_string());
    let hint = error.as_model_error().and_then(|error| {
        let hints = [
            (error.is_auth(), "look at the key, or take another model: /model"),
            (error.is_context_too_long(), "/new begins with an empty conversation"),
            (error.is_retryable(), "ask again in a little while"),
        ];
        hints.into_iter().find_map(|(is_so, hint)| is_so.then_some(hint))
    });
    hint.map_or(text.clone(), |hint| format!("{text}; {hint}"))
}

/// Sends a prompt, and writes what happens as plain text, without a terminal to draw on.
///
/// # Errors
/// Returns why there is no answer: the run failed or was cancelled, the output is closed, or the session cannot be saved.
pub(crate) async fn plain<A: Write, N: Write>(
    chat: &mut Chat,
    prompt: Option<&mut Prompt>,
    said: String,
    show: &mut Plain<A, N>,
) -> Result<After, Unanswered> {
    let mut run = chat.assistant.prompt(said).stream();
    let mut teller = Teller::new(chat.look, &chat.chosen.name, chat.results.len() + 1);
    let outcome = follow(chat, prompt, &mut run, &mut teller, show).await;
    let outcome = match outcome {
        Ok(false) => match run.output().await {
            Ok(_) => Ok(After::Back { unheard: String::new(), is_interrupted: false }),
            Err(error) if error.is_aborted() => Err(Unanswered::Cancelled),
            Err(error) => Err(Unanswered::Run(told(&error))),
        },
        Ok(true) => {
            drop(run);
            Ok(After::Quit)
        }
        Err(error) => {
            drop(run);
            Err(error)
        }
    };
    show.end_text();
    let kept = chat.keep();
    finish(chat, &mut teller);
    kept.map_err(|error| Unanswered::Run(format!("not kept: {error}")))?;
    if let Some(error) = show.failed.take() {
        return Err(Unanswered::Closed(error));
    }
    outcome
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    Run(String),
    Cancelled,
    /// The output cannot be written.
    Closed(io::Error),
}

/// Follows a run to its end. Returns true if a signal tells the program to end.
async fn follow<A: Write, N: Write>(
    chat: &mut Chat,
    mut prompt: Option<&mut Prompt>,
    run: &mut Run,
    teller: &mut Teller,
    show: &mut Plain<A, N>,
) -> Result<bool, Unanswered> {
    let (handle, mut interrupts) = (run.handle(), 0);
    loop {
        tokio::select! {
            event = run.next() => {
                let Some(event) = event else { return Ok(false) };
                teller.tell(&event, chat.assistant.registry(), show);
                keep(chat, &event.kind, show);
                if let Some(error) = show.failed.take() {
                    return Err(Unanswered::Closed(error));
                }
            }
            Some(question) = chat.asked.recv() => {
                let Some(prompt) = prompt.as_deref_mut() else { continue };
                show.end_text();
                match answer(chat, prompt, teller, question).await {
                    Ok(true) => {}
                    Ok(false) => handle.cancel(CANCELLED),
                    Err(error) => return Err(Unanswered::Run(error.to_string())),
                }
            }
            signal = signals::next() => {
                interrupts += 1;
                if signal == Signal::End || interrupts > 1 {
                    return Ok(true);
                }
                handle.cancel(CANCELLED);
            }
        }
    }
}

//! Shows text that is longer than the terminal, page by page.

use crate::keys::Key;
use crate::look::{Kind, Look, is_dumb, is_interactive};
use crate::screen::rows_of;
use crate::signals;
use crate::terminal::{self, Keys};
use crate::wrap::{unpainted, wrapped};
use std::io::{self, Write as _};

/// Breaks lines between words into rows that fit the terminal, with the last column free. For a terminal that can only print, the lines
/// stay as they are.
pub(crate) fn fitted(lines: &[String]) -> Vec<String> {
    if is_dumb() {
        return lines.to_vec();
    }
    // A terminal that reports no width counts as 80 columns wide.
    let columns = Some(usize::from(terminal::size().0)).filter(|columns| *columns > 0).unwrap_or(80);
    wrapped(lines, columns.saturating_sub(1).max(1))
}

/// Prints lines. If they do not fit the terminal, prints a page at a time.
pub(crate) async fn page(look: Look, lines: &[String]) -> io::Result<()> {
    let fitted = if is_interactive() { fitted(lines) } else { lines.to_vec() };
    let lines = &*fitted;
    let (columns, rows) = terminal::size();
    let (columns, height) = (usize::from(columns).max(1), usize::from(rows).saturating_sub(2));
    let heights: Vec<usize> = lines.iter().map(|line| rows_of(&unpainted(line), columns)).collect();
    let fits = heights.iter().sum::<usize>() <= height;
    if fits || height < 3 || is_dumb() || !is_interactive() {
        let mut out = io::stdout().lock();
        for line in lines {
            writeln!(out, "{line}")?;
        }
        return out.flush();
    }
    let mut keys = Keys::one_by_one()?;
    let (mut at, mut room) = (0, height);
    while at < lines.len() {
        let mut out = io::stdout().lock();
        let first = at;
        while let (Some(line), Some(needed)) = (lines.get(at), heights.get(at)) {
            // The first line is shown even if it needs more rows than are left.
            if *needed > room && at > first {
                break;
            }
            write!(out, "{}\r\n", line.replace('\n', "\r\n"))?;
            at += 1;
            room = room.saturating_sub(*needed);
            if room == 0 {
                break;
            }
        }
        if at == lines.len() {
            return out.flush();
        }
        let more = format!("— {} more: Space for a page, Enter for a line, q to stop —", lines.len() - at);
        write!(out, "{}", look.paint(Kind::Dim, &crate::look::fit(&more, columns.saturating_sub(1))))?;
        out.flush()?;
        drop(out);
        room = loop {
            let key = tokio::select! {
                key = keys.next() => key,
                _ = signals::next() => Key::Interrupt,
            };
            match key {
                Key::Text(text) if text.starts_with(['q', 'Q']) => break 0,
                Key::Interrupt | Key::Gone => break 0,
                Key::Text(_) => break height,
                Key::Enter => break 1,
                _ => {}
            }
        };
        write!(io::stdout(), "\r\x1b[J")?;
        io::stdout().flush()?;
        if room == 0 {
            return Ok(());
        }
    }
    Ok(())
}

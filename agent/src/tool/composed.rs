//! Texts that the compiler evaluates: descriptions from files, constants and several doc attributes.

/// Returns the length in bytes of the text that [`composed_text`] makes of the pieces.
pub const fn composed_len(pieces: &[&str]) -> usize {
    let (mut len, mut at) = (0, 0);
    while at < pieces.len() {
        let piece = pieces[at].trim_ascii().len();
        if piece > 0 && len > 0 {
            len += 1;
        }
        len += piece;
        at += 1;
    }
    len
}

/// Joins the pieces by line breaks. Pieces are trimmed, and empty pieces are left out. `N` is the [`composed_len`] of the pieces.
pub const fn composed_text<const N: usize>(pieces: &[&str]) -> [u8; N] {
    let mut text = [0; N];
    let (mut len, mut at) = (0, 0);
    while at < pieces.len() {
        let piece = pieces[at].trim_ascii().as_bytes();
        if !piece.is_empty() && len > 0 {
            text[len] = b'\n';
            len += 1;
        }
        let mut from = 0;
        while from < piece.len() {
            text[len] = piece[from];
            len += 1;
            from += 1;
        }
        at += 1;
    }
    text
}

/// Returns a text for a model. Panics at compile time if the text is empty.
#[track_caller]
#[expect(clippy::missing_panics_doc, reason = "it is a compile error")]
pub const fn some_text(text: &'static [u8]) -> &'static str {
    assert!(!text.is_empty(), "this text is empty: write what the model should read, or remove it");
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => panic!("whole texts one below the other are a text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_one_below_the_other() {
        const PIECES: &[&str] = &["One.\n", "", " \n", "  zwei → drei"];
        const TEXT: &[u8] = &composed_text::<{ composed_len(PIECES) }>(PIECES);
        assert_eq!(some_text(TEXT), "One.\nzwei → drei");
        assert_eq!(composed_len(&[" ", "\n"]), 0);
    }
}

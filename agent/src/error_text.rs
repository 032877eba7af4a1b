//! The `Debug` text of errors. If `main` or a test returns an error, Rust prints its `Debug` text. Therefore the `Debug` text of a public
//! error is its message, followed by the causes that the message does not name.

use std::error::Error;
use std::fmt;

/// Maximum number of causes in the text. Protects against a chain of causes with a cycle.
const MAX_CAUSES: usize = 16;

macro_rules! debug_is_the_sentence {
    ($($error:ty),+ $(,)?) => {$(
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::error_text::write(self, f)
            }
        }
    )+};
}
pub(crate) use debug_is_the_sentence;

pub(crate) fn write(error: &(dyn Error + 'static), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&with_sources(error))
}

/// Returns the text of the error, followed by the text of each source that the text so far does not contain.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()).take(MAX_CAUSES) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(thiserror::Error)]
    enum Outer {
        #[error("no coffee")]
        Hidden(#[source] Inner),
        #[error("no tea: {0}")]
        Named(#[source] Inner),
    }

    #[derive(thiserror::Error)]
    #[error("the kettle is broken")]
    struct Inner;

    debug_is_the_sentence!(Outer, Inner);

    #[test]
    fn each_cause_is_written_once() {
        assert_eq!(format!("{:?}", Outer::Hidden(Inner)), "no coffee: the kettle is broken");
        assert_eq!(format!("{:?}", Outer::Named(Inner)), "no tea: the kettle is broken");
        let boxed: Box<dyn Error> = Outer::Hidden(Inner).into();
        assert_eq!(format!("{boxed:#?}"), "no coffee: the kettle is broken");
    }
}

//! Types of arguments whose `Debug` shows a secret.

#![expect(dead_code, unused_variables, reason = "these tools are looked at, not called")]

use agent::{Registry, ToolArgs, lint::Lint, tool, tools};

/// Derived: it shows everything.
#[derive(Debug, ToolArgs)]
struct Shows {
    /// Who signs in.
    user: String,
    /// What only they know.
    #[arg(secret, length(4..))]
    password: Option<String>,
}

/// Derived in another order, and the secret is a number with bounds.
#[derive(ToolArgs, Debug)]
enum ShowsPin {
    /// By a number.
    ByPin {
        /// What only they know.
        #[arg(secret, range(1000..=9999))]
        pin: u16,
    },
    /// As a guest.
    Guest,
}

/// By hand, without the secret.
#[derive(ToolArgs)]
struct Hides {
    /// Who signs in.
    user: String,
    /// What only they know.
    #[arg(secret)]
    password: String,
}

impl std::fmt::Debug for Hides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let length = self.password.len();
        f.debug_struct("Hides").field("user", &self.user).field("length", &length).finish_non_exhaustive()
    }
}

/// Without `Debug`.
#[derive(ToolArgs)]
struct Silent {
    /// What only they know.
    #[arg(secret)]
    password: String,
}

/// Derived, and nothing is secret.
#[derive(Debug, ToolArgs)]
struct Plain {
    /// What is looked for.
    what: String,
}

#[test]
fn a_debug_that_shows_secrets_is_found_and_one_that_hides_them_is_not() {
    /// Signs one in, by all that they have.
    #[tool]
    fn sign_in(args: Shows) {}

    /// Enters a house, in one of several ways.
    #[tool]
    fn enter(
        /** The ways. */
        ways: Vec<ShowsPin>,
    ) {
    }

    /// Checks credentials of several people.
    #[tool]
    fn check(
        /// Those of the first.
        first: Hides,
        /// Those of the second.
        second: Option<Silent>,
        /// Else.
        third: Plain,
    ) {
    }

    let report = Registry::new(tools![sign_in, enter, check]).expect("a registry").lint();
    let found: Vec<_> = report.iter().filter(|found| found.lint == Lint::SecretInDebug).collect();
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found.iter().map(|found| found.tool.as_str()).collect::<Vec<_>>(),
        ["sign_in", "enter"],
        "{texts:?}"
    );
    assert!(texts[0].contains("`Debug` of `Shows` shows its secret arguments"), "{texts:?}");
    assert!(texts[1].contains("`Debug` of `ShowsPin`"), "{texts:?}");
    let shown = Registry::new(tools![sign_in, enter, check]).expect("a registry");
    for definition in shown.definitions().iter() {
        assert!(!definition.parameters().to_string().contains("x-debug"), "models do not see it");
    }
}

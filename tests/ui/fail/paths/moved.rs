//! Names that moved out of the root: the compiler names their modules.

use agent::Base64;
use agent::Effect;
use agent::Hooks;
use agent::RunHandle;
use agent::StepKey;

fn main() {}

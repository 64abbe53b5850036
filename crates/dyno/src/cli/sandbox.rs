//! The word of `--sandbox`.

use clap::ValueEnum;
use dyno_engine::Sandbox;

/// Whether workers and helpers are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxWord {
    /// They may do what they need.
    On,
    /// They may do what their user may.
    Off,
}

impl From<SandboxWord> for Sandbox {
    fn from(word: SandboxWord) -> Sandbox {
        match word {
            SandboxWord::On => Sandbox::On,
            SandboxWord::Off => Sandbox::Off,
        }
    }
}

//! What becomes of a system call: a filter's rules.

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is made.
    Allow,
    /// It is made when the bits of `mask` in the argument of this number are `value`; otherwise the next rule for the call
    /// holds. Of an argument the lower 32 bits are looked at: those that flags use.
    AllowIf {
        /// Which argument, from 0.
        argument: u32,
        /// Which of its bits.
        mask: u32,
        /// What they must be.
        value: u32,
    },
    /// It answers `ENOSYS`, as of a kernel that does not have it: the C library then does without.
    Unknown,
    /// The process ends with SIGSYS.
    Kill,
}

/// What becomes of which call.
pub type Rule = (libc::c_long, Action);

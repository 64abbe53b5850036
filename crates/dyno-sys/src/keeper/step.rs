//! The steps of setting a child up, by which a failure is reported: by the child to its warden, by the warden to dyno, and in
//! words by dyno.

/// What failed, in the order of doing. `Ready` and `Run` are the two notes that are not about setting up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Ready,
    Session,
    Descriptors,
    Cpus,
    User,
    Parent,
    Privileges,
    Folder,
    Words,
    Run,
}

impl Step {
    pub(super) const ALL: [Step; 10] = [
        Step::Ready,
        Step::Session,
        Step::Descriptors,
        Step::Cpus,
        Step::User,
        Step::Parent,
        Step::Privileges,
        Step::Folder,
        Step::Words,
        Step::Run,
    ];

    pub(super) fn from_number(number: u64) -> Option<Step> {
        Step::ALL.into_iter().find(|&step| step as u64 == number)
    }

    /// What was tried, to stand after "cannot".
    pub(super) fn words(self) -> &'static str {
        match self {
            Step::Ready => "be held",
            Step::Session => "start a session",
            Step::Descriptors => "arrange its descriptors",
            Step::Cpus => "be bound to its CPUs",
            Step::User => "become its user",
            Step::Parent => "be tied to its parent",
            Step::Privileges => "give up gaining privileges",
            Step::Folder => "enter its folder",
            Step::Words => "take its arguments",
            Step::Run => "run",
        }
    }
}

//! Faults that can be planted, so that what is asserted of this crate is known to be seen when it is broken.
//!
//! Each names an invariant's violation at one place of the engine. Outside of tests [`planted`] is a constant `false`
//! and the compiler removes the place; the simulator's tests plant each fault in turn and must see it.

/// A fault, by what it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A deadline that comes nearer is not armed.
    DeadlineNotArmed,
    /// The wheel's next moment lies in the past.
    NearestInThePast,
    /// A short write is taken for a whole one.
    ShortWriteLost,
    /// What is left in the outbox is queued twice.
    ReplyDoubled,
    /// A byte of a body is not handed on.
    BodyByteLost,
    /// A request that stands behind one that closes is answered.
    AnswerAfterClose,
    /// An answer reaches a connection that has taken its entry over.
    LaterToSuccessor,
    /// An answer reaches a later request of the same connection.
    LaterToNextRequest,
    /// A reader whose socket takes again is not sent the rest.
    ReaderStarved,
    /// Input that waited behind a reply is not understood when it could be.
    InputForgotten,
    /// What a connection held is not given back to the budget.
    BudgetLeaked,
    /// An upload that was woken is not gone on with.
    WakeLost,
    /// An answer that takes too long is waited for without end.
    NoAnswerTimeout,
    /// A connection that becomes idle in a drain is kept.
    IdleKeptInDrain,
    /// What is answered later does not say that a drain has begun meanwhile, and that it is the last.
    CloseNotSaid,
    /// A worker whose place others have taken closes who is idle, instead of answering once more.
    RetiredClosesIdle,
    /// Pipelined requests are answered though the answer before them is still owed.
    OrderLost,
    /// A connection is closed while its last reply is still queued.
    ClosedTooEarly,
    /// A connection that is closing is closed without reading on, so that the kernel resets it.
    NoLinger,
    /// What follows a request that was refused is understood.
    ReadOnAfterRefusal,
    /// The handler is called before the body is whole.
    CalledTooEarly,
    /// The last chunk of a streamed body is not sent.
    NoLastChunk,
    /// A peer that takes nothing is waited for without end.
    NoReaderTimeout,
    /// A reader is judged by what the kernel took for it, not by what it acknowledged.
    JudgedByTaken,
    /// A connection whose replies all fit into the kernel counts as idle, whether they are read or not.
    UnreadIsIdle,
    /// A peer that closes while a stream is silent is not noticed.
    PeerCloseUnseen,
    /// The kernel is not asked whether the peer of a silent stream is still there.
    NotKeptAlive,
    /// The rest of a file that is not what it was is taken for sent.
    ChangedTakenForSent,
    /// Pages that were fetched are not sent.
    FetchedForgotten,
    /// A connection is watched for room while what it must send is fetched.
    WatchedWhileFetched,
    /// What could not be fetched is read by the loop itself.
    UnreadSent,
    /// What was fetched is waited for by the loop at any time after.
    FetchedForGood,
    /// A part of a file is sent though it is of another version than the client has.
    IfRangeIgnored,
    /// A form of a file is sent under the header lines of another one.
    FormMistaken,
    /// A reply that waits for the access log leaves before its line is written.
    ReplyBeforeItsLine,
    /// The field Host goes before the authority of an absolute target.
    FieldBeforeTarget,
    /// A port is taken for a part of a host's name.
    PortKept,
    /// Of the names with a star the shortest is taken.
    ShortestStar,
    /// A name with a star goes before the name as it stands.
    StarBeforeName,
    /// A name with a star is taken for what it is below, too.
    StarIsItself,
    /// An answer that comes later has the lines of another host.
    AnswerOfAnotherHost,
    /// Files are sent without the lines of their host.
    LinesForgotten,
    /// A host's line is sent beside a handler's of the same name.
    LineTwice,
    /// Which error page is sent is another host's choice.
    PageOfAnotherHost,
    /// An error page is sent in a coding that nobody has asked for.
    PageEncoded,
    /// A request whose body is refused is answered as for a name that is nobody's.
    RefusedAsAnybodys,
    /// A file goes before a redirect.
    FilesBeforeRedirects,
    /// Of the redirects the shortest is taken.
    ShortestRedirect,
    /// A redirect does not keep the query.
    QueryLost,
    /// What a redirect takes of a path is not escaped anew.
    RestUnescaped,
    /// New files are put in the place of another host's.
    TableOfAnotherSite,
    /// Of a host's folders the one with the shortest path is looked into.
    ShortestPrefix,
    /// An address that has rested has no burst any more.
    NotRefilled,
    /// An address that finds no place in the table is refused.
    FullTableRefuses,
    /// An address that finds no place takes that of one with connections.
    PlaceTaken,
    /// The place of a connection that has ended is not given back to its address.
    PlaceKept,
    /// The place of a connection that had none is given back.
    PlaceGivenTwice,
    /// Addresses of one /64 are told apart.
    WholeAddressCounted,
    /// A proxy that is trusted is limited itself.
    ProxyLimited,
    /// The field of a peer that is not trusted is believed.
    AnybodyBelieved,
    /// A field is read from its beginning, which its client writes.
    FirstOfField,
    /// An address gets one answer more than its burst.
    OneTooMany,
    /// Who asks too often loses its connection.
    LimitedIsClosed,
    /// An upload that is too many is not told when to come again.
    UploadNotTold,
    /// A connection without a right header of its proxy goes on.
    WrongHeaderPassed,
    /// A connection whose proxy is late with its header is answered.
    LateHeaderAnswered,
}

#[cfg(test)]
impl Fault {
    /// Every fault.
    pub(crate) const ALL: [Fault; 66] = [
        Fault::DeadlineNotArmed,
        Fault::NearestInThePast,
        Fault::ShortWriteLost,
        Fault::ReplyDoubled,
        Fault::BodyByteLost,
        Fault::AnswerAfterClose,
        Fault::LaterToSuccessor,
        Fault::LaterToNextRequest,
        Fault::ReaderStarved,
        Fault::InputForgotten,
        Fault::BudgetLeaked,
        Fault::WakeLost,
        Fault::NoAnswerTimeout,
        Fault::IdleKeptInDrain,
        Fault::CloseNotSaid,
        Fault::RetiredClosesIdle,
        Fault::OrderLost,
        Fault::ClosedTooEarly,
        Fault::NoLinger,
        Fault::ReadOnAfterRefusal,
        Fault::CalledTooEarly,
        Fault::NoLastChunk,
        Fault::NoReaderTimeout,
        Fault::JudgedByTaken,
        Fault::UnreadIsIdle,
        Fault::PeerCloseUnseen,
        Fault::NotKeptAlive,
        Fault::ChangedTakenForSent,
        Fault::FetchedForgotten,
        Fault::WatchedWhileFetched,
        Fault::UnreadSent,
        Fault::FetchedForGood,
        Fault::IfRangeIgnored,
        Fault::FormMistaken,
        Fault::ReplyBeforeItsLine,
        Fault::FieldBeforeTarget,
        Fault::PortKept,
        Fault::ShortestStar,
        Fault::StarBeforeName,
        Fault::StarIsItself,
        Fault::AnswerOfAnotherHost,
        Fault::LinesForgotten,
        Fault::LineTwice,
        Fault::PageOfAnotherHost,
        Fault::PageEncoded,
        Fault::RefusedAsAnybodys,
        Fault::FilesBeforeRedirects,
        Fault::ShortestRedirect,
        Fault::QueryLost,
        Fault::RestUnescaped,
        Fault::TableOfAnotherSite,
        Fault::ShortestPrefix,
        Fault::NotRefilled,
        Fault::FullTableRefuses,
        Fault::PlaceTaken,
        Fault::PlaceKept,
        Fault::PlaceGivenTwice,
        Fault::WholeAddressCounted,
        Fault::ProxyLimited,
        Fault::AnybodyBelieved,
        Fault::FirstOfField,
        Fault::OneTooMany,
        Fault::LimitedIsClosed,
        Fault::UploadNotTold,
        Fault::WrongHeaderPassed,
        Fault::LateHeaderAnswered,
    ];
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Whether this fault is planted in this thread.
#[cfg(test)]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.with(|planted| planted.get() == Some(fault))
}

/// Never: faults are planted by tests only.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn planted(_fault: Fault) -> bool {
    false
}

/// Plants a fault in this thread.
#[cfg(test)]
pub(crate) fn plant(fault: Fault) {
    PLANTED.with(|planted| planted.set(Some(fault)));
}

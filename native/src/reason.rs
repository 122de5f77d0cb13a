//! Why a line is rejected: a closed list, in the order in which the reasons are checked.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    LineTooLong,
    InvalidUtf8,
    NotJson,
    TooDeep,
    TrailingCharacters,
    NotAnObject,
    LoneSurrogate,
    DuplicateKey,
}

impl Reason {
    pub const ALL: [Reason; 8] = [
        Reason::LineTooLong,
        Reason::InvalidUtf8,
        Reason::NotJson,
        Reason::TooDeep,
        Reason::TrailingCharacters,
        Reason::NotAnObject,
        Reason::LoneSurrogate,
        Reason::DuplicateKey,
    ];

    /// The reason as callers see it. It is data: it is stored in the quarantine and in results.
    pub fn text(self) -> &'static str {
        match self {
            Reason::LineTooLong => "line too long",
            Reason::InvalidUtf8 => "invalid UTF-8",
            Reason::NotJson => "not JSON",
            Reason::TooDeep => "too deep",
            Reason::TrailingCharacters => "trailing characters",
            Reason::NotAnObject => "not an object",
            Reason::LoneSurrogate => "lone surrogate",
            Reason::DuplicateKey => "duplicate key",
        }
    }
}

//! A line that was cut off a block of bytes.

/// What was cut off a block: a line, or an element of an array.
pub enum NextLine<'a> {
    /// A whole line without its "\n".
    Line(&'a [u8]),
    /// The same, in the carry buffer.
    Carried,
    /// A line that is longer than the limit, and its bytes.
    TooLong(u64),
    /// No line of this split: the start of a line, or the end of a line that belongs to the previous split.
    Nothing,
}

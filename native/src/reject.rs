//! Rejected lines, and the bounded sample of them that is kept.

use crate::reason::Reason;

/// The text of a longer line is not kept: source, offset and length locate it.
pub const MAX_KEPT_LINE_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Byte offset of the line in the (inflated) file.
    pub offset: u64,
    /// Bytes, without the "\n".
    pub length: u64,
    pub reason: Reason,
    /// The line verbatim; None if it is not kept.
    pub line: Option<Vec<u8>>,
    /// The first bytes of a split's first reject if it is not kept, by which a file of another format is recognised.
    pub head: Vec<u8>,
}

/// The number of further rejects of one split that are kept.
pub struct RejectSample {
    remaining_count: usize,
    remaining_bytes: usize,
}

impl RejectSample {
    pub fn new(max_count: usize, max_bytes: usize) -> Self {
        Self { remaining_count: max_count, remaining_bytes: max_bytes }
    }

    /// The reject to keep, with the line if it fits; None if the sample is full. For a too long line, `line` has the
    /// first bytes.
    pub fn admit(&mut self, reason: Reason, offset: u64, length: u64, line: &[u8]) -> Option<Reject> {
        self.remaining_count = self.remaining_count.checked_sub(1)?;
        let fits = reason != Reason::LineTooLong && line.len() <= MAX_KEPT_LINE_BYTES.min(self.remaining_bytes);
        let kept = fits.then_some(line);
        self.remaining_bytes -= kept.map_or(0, <[u8]>::len);
        Some(Reject { offset, length, reason, line: kept.map(<[u8]>::to_vec), head: Vec::new() })
    }
}

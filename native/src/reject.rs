//! Lines that are no rows: counted by reason, and a bounded sample of them kept.

use crate::reason::Reason;

/// A longer line is kept by reference: source, offset and length say where it is.
pub const MAX_KEPT_LINE: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    pub offset: u64,
    /// Bytes, without the "\n".
    pub length: u64,
    pub reason: Reason,
    pub line: Option<Vec<u8>>,
}

/// What is left of one split's sample.
pub struct Sample {
    lines: usize,
    bytes: usize,
}

impl Sample {
    pub fn new(lines: usize, bytes: usize) -> Self {
        Self { lines, bytes }
    }

    /// The reject as it goes into the sample; None if the sample is full, so that it is only counted.
    pub fn admit(&mut self, reason: Reason, offset: u64, length: u64, line: Option<&[u8]>) -> Option<Reject> {
        self.lines = self.lines.checked_sub(1)?;
        let kept = line.filter(|line| line.len() <= MAX_KEPT_LINE.min(self.bytes));
        self.bytes -= kept.map_or(0, <[u8]>::len);
        Some(Reject { offset, length, reason, line: kept.map(<[u8]>::to_vec) })
    }
}

//! A split: the lines of one file that start in a range of bytes. It cuts blocks into lines and counts.

use crate::inflate::InflateLimits;
use crate::input::{Block, Input};
use crate::reason::Reason;
use crate::reject::{Reject, RejectSample};
use std::collections::BTreeMap;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// lines = rows + blank lines + rejects.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Counts {
    pub lines: u64,
    pub rows: u64,
    pub blank_lines: u64,
    pub rejects: BTreeMap<Reason, u64>,
    /// Bytes of all lines, newlines included.
    pub bytes: u64,
}

pub struct Split {
    pub source: String,
    /// The file's time of arrival, for the provenance columns.
    pub arrived_at: Option<String>,
    pub input: Input,
    pub counts: Counts,
    pub sample: RejectSample,
    pub first_reject: Option<Reject>,
    /// Why the file could not be read: a message for the operator.
    pub error: Option<String>,
    pub done: bool,
    end: Option<u64>,
    max_line_bytes: usize,
    /// The byte offset of the current line.
    line_start: u64,
    /// The current line starts before the range: it belongs to the previous split.
    skipping: bool,
    /// The start of a line that ends in a later block.
    carry: Vec<u8>,
    /// Bytes of the current line that are not kept: it is too long, or it is skipped.
    discarded: u64,
}

/// What was cut off a block.
pub enum NextLine<'a> {
    /// A whole line without its "\n".
    Line(&'a [u8]),
    /// A whole line without its "\n", which is in the carry buffer.
    Carried,
    /// A line that is longer than the limit, and its bytes.
    TooLong(u64),
    /// No line of this split: the start of a line, or the end of a line that belongs to the previous split.
    Nothing,
}

impl Split {
    /// `range` is the offset of its first byte, and the offset after its last byte; None for the end of the file.
    pub fn new(
        source: String,
        arrived_at: Option<String>,
        range: (u64, Option<u64>),
        max_line_bytes: usize,
        sample: RejectSample,
        limits: InflateLimits,
    ) -> Self {
        let (start, end) = range;
        Self {
            source,
            arrived_at,
            input: Input::new(start == 0, end.is_none(), limits),
            counts: Counts::default(),
            sample,
            first_reject: None,
            error: None,
            done: end.is_some_and(|end| end <= start),
            end,
            max_line_bytes,
            line_start: start.saturating_sub(1),
            skipping: start > 0,
            carry: Vec::new(),
            discarded: 0,
        }
    }

    /// The byte offset of the current line.
    pub fn line_offset(&self) -> u64 {
        self.line_start
    }

    /// Whether the next line starts after the range.
    ///
    /// While a line of the previous split is skipped, the next one starts after a newline that is not read yet. So a split
    /// in which no line starts ends with its range: a file without newlines is read twice, however many splits it has.
    pub fn is_past_end(&self) -> bool {
        let next_line = if self.skipping { self.line_start + self.discarded + 1 } else { self.line_start };
        self.end.is_some_and(|end| next_line >= end)
    }

    /// Cuts the next line, or the start of it, off the bytes from `position` on.
    pub fn next_line<'a>(&mut self, bytes: &'a [u8], position: &mut usize) -> NextLine<'a> {
        let rest = &bytes[*position..];
        let Some(length) = memchr::memchr(b'\n', rest) else {
            *position = bytes.len();
            self.carry_over(rest);
            return NextLine::Nothing;
        };
        *position += length + 1;
        let piece = &rest[..length];
        if self.skipping {
            self.skipping = false;
            self.line_start += self.discarded + length as u64 + 1;
            self.discarded = 0;
            return NextLine::Nothing;
        }
        if self.carry.is_empty() && self.discarded == 0 {
            return if length > self.max_line_bytes { NextLine::TooLong(length as u64) } else { NextLine::Line(piece) };
        }
        self.carry_over(piece);
        self.carried_line()
    }

    /// The line at the end of the file, which may lack its "\n".
    pub fn last_line(&mut self) -> NextLine<'static> {
        if self.skipping || (self.carry.is_empty() && self.discarded == 0) {
            NextLine::Nothing
        } else {
            self.carried_line()
        }
    }

    fn carried_line(&self) -> NextLine<'static> {
        if self.discarded > 0 { NextLine::TooLong(self.discarded) } else { NextLine::Carried }
    }

    fn carry_over(&mut self, piece: &[u8]) {
        if self.skipping || self.discarded > 0 || self.carry.len() + piece.len() > self.max_line_bytes {
            self.discarded += (self.carry.len() + piece.len()) as u64;
            self.carry = Vec::new();
        } else {
            self.carry.extend_from_slice(piece);
        }
    }

    pub fn take_carry(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.carry)
    }

    /// Returns the buffer of `take_carry`, so that its memory is reused.
    pub fn reuse_carry(&mut self, mut carry: Vec<u8>) {
        carry.clear();
        self.carry = carry;
    }

    /// Counts the current line, which is processed; the next line is the current one.
    pub fn advance(&mut self, length: u64, newline: bool) {
        let bytes = length + u64::from(newline);
        self.counts.lines += 1;
        self.counts.bytes += bytes;
        self.line_start += bytes;
        self.discarded = 0;
    }

    /// The line without a byte order mark at the start of the file; None if it is blank.
    pub fn content<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = if self.line_start == 0 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        line.iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).then_some(line)
    }

    /// Counts the current line as a reject; Some if it is part of the sample.
    pub fn reject(&mut self, reason: Reason, length: u64, line: Option<&[u8]>) -> Option<Reject> {
        *self.counts.rejects.entry(reason).or_default() += 1;
        let reject = self.sample.admit(reason, self.line_start, length, line);
        if self.counts.rejects.len() == 1 && self.counts.rejects.values().sum::<u64>() == 1 {
            self.first_reject.clone_from(&reject);
        }
        reject
    }

    /// Keeps the rest of a block for the next call of `read`.
    pub fn keep_rest(&mut self, block: Block) {
        if block.position < (*block.bytes).as_ref().len() {
            self.input.put_back(block);
        }
    }
}

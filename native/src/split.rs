//! One range of lines of one file: cuts blocks into lines, owns those that start in the range, counts everything.

use crate::inflate::Limits;
use crate::input::{Block, Input};
use crate::reason::Reason;
use crate::reject::{Reject, Sample};
use std::collections::BTreeMap;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Default, Debug, PartialEq, Eq)]
pub struct Counts {
    pub lines: u64,
    pub rows: u64,
    pub blank_lines: u64,
    pub rejects: BTreeMap<Reason, u64>,
    pub bytes: u64,
}

pub struct Split {
    pub source: String,
    /// When the file arrived, for the provenance columns.
    pub arrived_at: Option<String>,
    pub input: Input,
    pub counts: Counts,
    pub sample: Sample,
    pub first_reject: Option<Reject>,
    pub error: Option<String>,
    pub done: bool,
    end: Option<u64>,
    max_line_bytes: usize,
    /// Offset of the current line's first byte.
    line_start: u64,
    /// The line that ends before the range begins is somebody else's.
    skipping: bool,
    /// The beginning of a line whose end is in a later block.
    carry: Vec<u8>,
    /// Bytes of the current line that went by unkept because it is too long.
    discarded: u64,
}

/// What the cutter found at the front of a block.
pub enum Cut<'a> {
    /// A whole line, without its "\n"; `Carried` means that it stands in `carry`.
    Line(&'a [u8]),
    Carried,
    TooLong(u64),
    /// Nothing to judge: part of a line, or a line of the range before.
    Nothing,
}

impl Split {
    pub fn new(
        source: String,
        arrived_at: Option<String>,
        range: (u64, Option<u64>),
        max_line_bytes: usize,
        sample: Sample,
        limits: Limits,
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

    /// Offset of the current line.
    pub fn offset(&self) -> u64 {
        self.line_start
    }

    /// The next line starts behind the range.
    pub fn is_past_end(&self) -> bool {
        !self.skipping && self.end.is_some_and(|end| self.line_start >= end)
    }

    /// Takes the next line, or what there is of it, off the block.
    pub fn cut<'a>(&mut self, bytes: &'a [u8], at: &mut usize) -> Cut<'a> {
        let rest = &bytes[*at..];
        let Some(length) = memchr::memchr(b'\n', rest) else {
            *at = bytes.len();
            self.hold(rest);
            return Cut::Nothing;
        };
        *at += length + 1;
        let piece = &rest[..length];
        if self.skipping {
            self.skipping = false;
            self.line_start += self.discarded + length as u64 + 1;
            self.discarded = 0;
            return Cut::Nothing;
        }
        if self.carry.is_empty() && self.discarded == 0 {
            return if length > self.max_line_bytes { Cut::TooLong(length as u64) } else { Cut::Line(piece) };
        }
        self.hold(piece);
        self.held()
    }

    /// The last line of the file may lack its "\n".
    pub fn cut_last(&mut self) -> Cut<'static> {
        if self.skipping || (self.carry.is_empty() && self.discarded == 0) { Cut::Nothing } else { self.held() }
    }

    fn held(&self) -> Cut<'static> {
        if self.discarded > 0 { Cut::TooLong(self.discarded) } else { Cut::Carried }
    }

    fn hold(&mut self, piece: &[u8]) {
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

    pub fn give_back_carry(&mut self, mut carry: Vec<u8>) {
        carry.clear();
        self.carry = carry;
    }

    /// The current line was judged: on to the next.
    pub fn advance(&mut self, length: u64, newline: bool) {
        let whole = length + u64::from(newline);
        self.counts.lines += 1;
        self.counts.bytes += whole;
        self.line_start += whole;
        self.discarded = 0;
    }

    /// The line as the parser sees it: without a byte order mark at the start of the file; None if it is blank.
    pub fn content<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = if self.line_start == 0 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        line.iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).then_some(line)
    }

    /// Counts a reject; Some if it goes into the sample.
    pub fn reject(&mut self, reason: Reason, length: u64, line: Option<&[u8]>) -> Option<Reject> {
        *self.counts.rejects.entry(reason).or_default() += 1;
        let reject = self.sample.admit(reason, self.line_start, length, line);
        if self.counts.rejects.len() == 1 && self.counts.rejects.values().sum::<u64>() == 1 {
            self.first_reject.clone_from(&reject);
        }
        reject
    }

    /// The rest of a block is for later.
    pub fn keep(&mut self, block: Block) {
        if block.at < (*block.bytes).as_ref().len() {
            self.input.put_back(block);
        }
    }
}

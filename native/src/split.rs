//! A split: the lines of one file that start in a range of bytes, or the elements of its array. It cuts blocks and counts.

use crate::elements::Elements;
use crate::inflate::InflateLimits;
use crate::input::{Block, Input};
use crate::next_line::NextLine;
use crate::reason::Reason;
use crate::reject::{MAX_KEPT_LINE_BYTES, Reject, RejectSample};
use std::collections::BTreeMap;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// lines = rows + blank lines + rejects. The elements of an array, and concatenated values, are counted as lines.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Counts {
    pub lines: u64,
    pub rows: u64,
    pub blank_lines: u64,
    pub rejects: BTreeMap<Reason, u64>,
    /// Bytes of all lines, including newlines, and of the bytes between elements.
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
    form: Form,
    /// The byte offset of the current line.
    line_start: u64,
    /// The current line starts before the range: it belongs to the previous split.
    skipping: bool,
    /// The start of a line that ends in a later block; only the first bytes if it is too long.
    carry: Vec<u8>,
    /// Bytes so far of a line that is too long or skipped.
    discarded: u64,
}

/// What a file consists of.
enum Form {
    /// Not known yet: the first byte that is not white space decides.
    Unknown(Start),
    Lines,
    Elements(Elements),
}

/// The first lines of a file, while they are blank.
struct Start {
    concatenated: bool,
    /// Bytes of a byte order mark that were found at the start of the file.
    mark_bytes: usize,
}

impl Start {
    /// The position of the first byte that is neither white space nor part of a whole byte order mark, in the current line;
    /// None if the line has no such byte, or none in these bytes. `offset` is the byte offset of the first one.
    fn find_content(&mut self, bytes: &[u8], offset: u64) -> Option<usize> {
        for (position, byte) in bytes.iter().enumerate() {
            let in_file = usize::try_from(offset).map_or(usize::MAX, |offset| offset.saturating_add(position));
            if in_file == self.mark_bytes && BYTE_ORDER_MARK.get(in_file) == Some(byte) {
                self.mark_bytes += 1;
            } else if self.has_part_of_mark() || !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(position);
            } else if *byte == b'\n' {
                return None;
            }
        }
        None
    }

    fn has_part_of_mark(&self) -> bool {
        (1..BYTE_ORDER_MARK.len()).contains(&self.mark_bytes)
    }
}

/// Whether a file with this start is not an array; false if the start is blank.
pub fn begins_with_lines(head: &[u8]) -> bool {
    let content = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    content.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).is_some_and(|byte| *byte != b'[')
}

impl Split {
    /// `range` is the offset of its first byte, and the offset after its last byte; None for the end of the file.
    /// `concatenated`: the file is a sequence of JSON values, with or without newlines between them.
    pub fn new(
        source: String,
        arrived_at: Option<String>,
        range: (u64, Option<u64>),
        max_line_bytes: usize,
        concatenated: bool,
        sample: RejectSample,
        limits: InflateLimits,
    ) -> Self {
        let (start, end) = range;
        let is_part = start > 0 || end.is_some();
        let error = (concatenated && is_part).then(|| read_in_part("concatenated JSON"));
        Self {
            source,
            arrived_at,
            input: Input::new(start == 0, end.is_none(), limits),
            counts: Counts::default(),
            sample,
            first_reject: None,
            done: error.is_some() || end.is_some_and(|end| end <= start),
            error,
            end,
            max_line_bytes,
            form: if start == 0 { Form::Unknown(Start { concatenated, mark_bytes: 0 }) } else { Form::Lines },
            line_start: start.saturating_sub(1),
            skipping: start > 0,
            carry: Vec::new(),
            discarded: 0,
        }
    }

    /// Whether it consists of elements rather than lines, by the bytes read so far.
    pub fn has_elements(&self) -> bool {
        matches!(self.form, Form::Elements(_))
    }

    /// The byte offset of the current line.
    pub fn line_offset(&self) -> u64 {
        self.line_start
    }

    /// Whether the next line starts after the range.
    ///
    /// While a line of the previous split is skipped, the next one starts after a newline that is not read yet. So a split
    /// in which no line starts ends with its range: a file without newlines is read at most twice.
    pub fn is_past_end(&self) -> bool {
        let next_line = if self.skipping { self.line_start + self.discarded + 1 } else { self.line_start };
        self.end.is_some_and(|end| next_line >= end)
    }

    /// Cuts the next line or element, or the start of it, off the bytes from `position` on.
    pub fn next_line<'a>(&mut self, bytes: &'a [u8], position: &mut usize) -> NextLine<'a> {
        if matches!(self.form, Form::Unknown(_)) {
            self.find_form(bytes, position);
        }
        if self.has_elements() { self.next_element(bytes, position) } else { self.cut_line(bytes, position) }
    }

    /// Decides what the file consists of when the first line that is not blank begins.
    fn find_form(&mut self, bytes: &[u8], position: &mut usize) {
        let Form::Unknown(start) = &mut self.form else { return };
        let read = self.line_start + self.discarded.max(self.carry.len() as u64);
        let Some(length) = start.find_content(&bytes[*position..], read) else { return };
        let (concatenated, has_part_of_mark) = (start.concatenated, start.has_part_of_mark());
        let is_array = !has_part_of_mark && bytes[*position + length] == b'[';
        self.form = Form::Lines;
        if !is_array && !concatenated {
            return;
        }
        if self.end.is_some() {
            self.error = Some(read_in_part("a JSON array"));
            self.done = true;
            *position = bytes.len();
        } else if has_part_of_mark {
            // The part is the start of the first value.
            let mut elements = Elements::new(0, true);
            let part = std::mem::take(&mut self.carry);
            elements.next(&part, &mut 0, &mut self.carry, self.max_line_bytes);
            self.counts.bytes = elements.offset();
            self.form = Form::Elements(elements);
        } else {
            *position += length;
            self.counts.bytes += read + length as u64 - self.line_start;
            self.carry.clear();
            self.discarded = 0;
            self.form = Form::Elements(Elements::new(read + length as u64, concatenated));
        }
    }

    fn next_element<'a>(&mut self, bytes: &'a [u8], position: &mut usize) -> NextLine<'a> {
        let Form::Elements(elements) = &mut self.form else { return NextLine::Nothing };
        let before = elements.offset();
        let element = elements.next(bytes, position, &mut self.carry, self.max_line_bytes);
        self.counts.bytes += elements.offset() - before;
        self.line_start = elements.start();
        if elements.lines_follow() {
            self.line_start = elements.offset();
            self.form = Form::Lines;
        }
        element
    }

    fn cut_line<'a>(&mut self, bytes: &'a [u8], position: &mut usize) -> NextLine<'a> {
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
        if self.carry.is_empty() && self.discarded == 0 && length <= self.max_line_bytes {
            return NextLine::Line(piece);
        }
        self.carry_over(piece);
        self.carried_line()
    }

    /// The line at the end of the file, which may lack its "\n", or the element that the end cuts off. Call it until it
    /// returns `Nothing`.
    pub fn last_line(&mut self) -> NextLine<'static> {
        if let Form::Elements(elements) = &mut self.form {
            let element = elements.last(&mut self.carry, self.max_line_bytes);
            self.line_start = elements.start();
            element
        } else if self.skipping || (self.carry.is_empty() && self.discarded == 0) {
            NextLine::Nothing
        } else {
            self.carried_line()
        }
    }

    fn carried_line(&self) -> NextLine<'static> {
        if self.discarded > 0 { NextLine::TooLong(self.discarded) } else { NextLine::Carried }
    }

    fn carry_over(&mut self, piece: &[u8]) {
        if self.skipping {
            self.discarded += piece.len() as u64;
            return;
        }
        let length = self.discarded.max(self.carry.len() as u64) + piece.len() as u64;
        let mut kept = piece;
        if length > self.max_line_bytes as u64 {
            self.discarded = length;
            self.carry.truncate(MAX_KEPT_LINE_BYTES);
            self.carry.shrink_to(MAX_KEPT_LINE_BYTES);
            kept = &piece[..piece.len().min(MAX_KEPT_LINE_BYTES - self.carry.len())];
        }
        self.carry.extend_from_slice(kept);
    }

    pub fn take_carry(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.carry)
    }

    /// Returns the buffer of `take_carry`, so that its memory is reused.
    pub fn reuse_carry(&mut self, mut carry: Vec<u8>) {
        carry.clear();
        self.carry = carry;
    }

    /// Counts the current line as processed, and makes the next line the current one.
    pub fn advance(&mut self, length: u64, newline: bool) {
        self.counts.lines += 1;
        if self.has_elements() {
            return;
        }
        let bytes = length + u64::from(newline);
        self.counts.bytes += bytes;
        self.line_start += bytes;
        self.discarded = 0;
    }

    /// The line without a byte order mark at the start of the file; None if it is blank. An element is never blank.
    pub fn content<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        if self.has_elements() {
            return Some(line);
        }
        let line = if self.line_start == 0 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        line.iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).then_some(line)
    }

    /// Counts the current line as a reject; Some if it is part of the sample.
    pub fn reject(&mut self, reason: Reason, length: u64, line: &[u8]) -> Option<Reject> {
        *self.counts.rejects.entry(reason).or_default() += 1;
        let mut reject = self.sample.admit(reason, self.line_start, length, line);
        if self.counts.rejects.len() == 1 && self.counts.rejects.values().sum::<u64>() == 1 {
            if let Some(first) = reject.as_mut().filter(|reject| reject.line.is_none()) {
                first.head.extend_from_slice(&line[..line.len().min(MAX_KEPT_LINE_BYTES)]);
            }
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

fn read_in_part(form: &str) -> String {
    format!("{form} opened in part: it can only be read whole")
}

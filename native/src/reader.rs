//! Reads splits and fills batches: it connects input, lines, parser and table.

use crate::inflate::InflateLimits;
use crate::input::{Chunk, NextBlock};
use crate::next_line::NextLine;
use crate::reason::Reason;
use crate::reject::{Reject, RejectSample};
use crate::row::RowParser;
use crate::split::Split;
use crate::table::{Batch, Table};
use std::sync::Arc;

/// The parameters of the Python class `Reader`.
#[derive(Clone)]
pub struct ReaderOptions {
    pub known_columns: Vec<String>,
    pub column_limit: usize,
    pub max_line_bytes: usize,
    pub concatenated: bool,
    pub flush_bytes: usize,
    pub reject_sample_count: usize,
    pub reject_sample_bytes: usize,
    pub provenance: bool,
    pub inflate_limits: InflateLimits,
}

pub struct Reader {
    options: ReaderOptions,
    table: Table,
    parser: RowParser,
    split: Option<Split>,
    /// Sampled rejects of all splits, each with its source.
    rejects: Vec<(Arc<str>, Reject)>,
    /// The source of the current split.
    source: Arc<str>,
}

impl Reader {
    pub fn new(options: ReaderOptions) -> Self {
        let table = Table::new(options.known_columns.clone(), options.column_limit, options.provenance);
        Self { options, table, parser: RowParser::default(), split: None, rejects: Vec::new(), source: "".into() }
    }

    /// The open split.
    pub fn split(&mut self) -> Option<&mut Split> {
        self.split.as_mut()
    }

    /// Opens a split; `range` as in `Split::new`.
    pub fn open(&mut self, source: &str, arrived_at: Option<String>, range: (u64, Option<u64>)) {
        let options = &self.options;
        let sample = RejectSample::new(options.reject_sample_count, options.reject_sample_bytes);
        self.source = source.into();
        let (max_line_bytes, concatenated) = (options.max_line_bytes, options.concatenated);
        let limits = options.inflate_limits;
        self.split =
            Some(Split::new(source.to_owned(), arrived_at, range, max_line_bytes, concatenated, sample, limits));
    }

    /// Takes the next bytes of the file; ignores them if the split is done.
    pub fn feed(&mut self, chunk: Chunk) {
        if let Some(split) = self.split.as_mut().filter(|split| !split.done) {
            split.input.feed(chunk);
        }
    }

    /// Reads the fed bytes; returns a batch as soon as the columns are full, None if the split is done or needs input.
    pub fn read(&mut self) -> Option<Batch> {
        let mut split = self.split.take()?;
        let is_full = self.read_split(&mut split);
        self.split = Some(split);
        if is_full { self.table.take_batch() } else { None }
    }

    /// Closes the split; its rows stay in the columns.
    pub fn close(&mut self) -> Option<Split> {
        self.split.take()
    }

    /// The rows that no batch has returned yet; None if there are none.
    pub fn flush(&mut self) -> Option<Batch> {
        self.table.take_batch()
    }

    /// The sampled rejects since the last call, each with its source.
    pub fn take_rejects(&mut self) -> Vec<(Arc<str>, Reject)> {
        std::mem::take(&mut self.rejects)
    }

    /// Returns whether the columns are full.
    fn read_split(&mut self, split: &mut Split) -> bool {
        while !split.done {
            if self.is_full() {
                return true;
            }
            match split.input.next_block() {
                Ok(NextBlock::Block(mut block)) => {
                    self.read_block(split, (*block.bytes).as_ref(), &mut block.position);
                    split.keep_rest(block);
                }
                Ok(NextBlock::NeedsInput) => return false,
                Ok(NextBlock::End) => {
                    loop {
                        let line = split.last_line();
                        if matches!(line, NextLine::Nothing) {
                            break;
                        }
                        self.process_next(split, line, false);
                    }
                    split.done = true;
                }
                Err(error) => {
                    split.error = Some(error);
                    split.done = true;
                }
            }
        }
        self.is_full()
    }

    fn is_full(&self) -> bool {
        self.table.size() >= self.options.flush_bytes
    }

    fn read_block(&mut self, split: &mut Split, bytes: &[u8], position: &mut usize) {
        self.table.reserve();
        while *position < bytes.len() && !self.is_full() {
            if split.is_past_end() {
                split.done = true;
                *position = bytes.len();
                return;
            }
            let line = split.next_line(bytes, position);
            self.process_next(split, line, true);
        }
        split.done |= split.is_past_end();
    }

    fn process_next(&mut self, split: &mut Split, line: NextLine<'_>, newline: bool) {
        match line {
            NextLine::Nothing => {}
            NextLine::Line(line) => self.process_line(split, line, newline),
            NextLine::Carried => {
                let carry = split.take_carry();
                self.process_line(split, &carry, newline);
                split.reuse_carry(carry);
            }
            NextLine::TooLong(length) => {
                let head = split.take_carry();
                let reject = split.reject(Reason::LineTooLong, length, &head);
                split.reuse_carry(head);
                self.add_to_sample(reject);
                split.advance(length, newline);
            }
        }
    }

    fn process_line(&mut self, split: &mut Split, line: &[u8], newline: bool) {
        match split.content(line) {
            None => split.counts.blank_lines += 1,
            Some(content) => match self.parser.parse(content, &mut self.table) {
                Ok(()) => {
                    self.table.commit(&split.source, split.arrived_at.as_deref(), split.line_offset());
                    split.counts.rows += 1;
                }
                Err(reason) => {
                    let reject = split.reject(reason, line.len() as u64, line);
                    self.add_to_sample(reject);
                }
            },
        }
        split.advance(line.len() as u64, newline);
    }

    fn add_to_sample(&mut self, reject: Option<Reject>) {
        self.rejects.extend(reject.map(|reject| (Arc::clone(&self.source), reject)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::Counts;

    const FILE: &[u8] =
        b"\xef\xbb\xbf{\"a\":1}\n\n{\"a\":2}\r\nbroken\n{\"a\":3333333333333333333333333333}\n \t\n{\"b\":4}";

    fn reader() -> Reader {
        Reader::new(ReaderOptions {
            known_columns: Vec::new(),
            column_limit: 1000,
            max_line_bytes: 20,
            concatenated: false,
            flush_bytes: 1 << 20,
            reject_sample_count: 100,
            reject_sample_bytes: 1000,
            provenance: true,
            inflate_limits: InflateLimits { max_expansion: 200, max_inflated_bytes: 1 << 30 },
        })
    }

    fn read_range(reader: &mut Reader, start: usize, end: Option<usize>, chunk: usize) -> Counts {
        reader.open("file", None, (start as u64, end.map(|end| end as u64)));
        for bytes in FILE[start.saturating_sub(1)..].chunks(chunk) {
            reader.feed(Box::new(bytes.to_vec()));
            assert!(reader.read().is_none());
        }
        reader.split().unwrap().input.end();
        assert!(reader.read().is_none());
        let split = reader.close().unwrap();
        assert!(split.done && split.error.is_none());
        split.counts
    }

    #[test]
    fn every_line_is_in_exactly_one_split() {
        for size in 1..FILE.len() + 2 {
            for chunk in [1, 3, FILE.len()] {
                let mut reader = reader();
                let (mut lines, mut bytes) = (0, 0);
                for start in (0..FILE.len()).step_by(size) {
                    let counts = read_range(&mut reader, start, Some(start + size), chunk);
                    lines += counts.lines;
                    bytes += counts.bytes;
                }
                assert_eq!((lines, bytes), (7, FILE.len() as u64));
                let batch = reader.flush().unwrap();
                assert_eq!(
                    (batch.rows, batch.columns[3].as_ref().unwrap().iter().collect::<Vec<_>>()),
                    (3, vec![&b"0"[..], b"12", b"66"])
                );
                let reasons: Vec<_> = reader.take_rejects().into_iter().map(|(_, reject)| reject.reason).collect();
                assert_eq!(reasons, [Reason::NotJson, Reason::LineTooLong]);
            }
        }
    }

    #[test]
    fn every_line_of_a_file_is_counted_by_its_outcome() {
        let counts = read_range(&mut reader(), 0, None, 7);
        assert_eq!((counts.lines, counts.rows, counts.blank_lines), (7, 3, 2));
        assert_eq!(counts.rejects.into_iter().collect::<Vec<_>>(), [(Reason::LineTooLong, 1), (Reason::NotJson, 1)]);
    }
}

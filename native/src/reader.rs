//! Splits in, batches out: ties input, lines, parser and table together.

use crate::inflate::Limits;
use crate::input::{Chunk, Next};
use crate::reason::Reason;
use crate::reject::{Reject, Sample};
use crate::row::RowParser;
use crate::split::{Cut, Split};
use crate::table::{Batch, Table};
use std::sync::Arc;

#[derive(Clone)]
pub struct Options {
    pub known_columns: Vec<String>,
    pub column_limit: usize,
    pub max_line_bytes: usize,
    pub flush_bytes: usize,
    pub sample_lines: usize,
    pub sample_bytes: usize,
    pub provenance: bool,
    pub limits: Limits,
}

pub struct Reader {
    options: Options,
    table: Table,
    parser: RowParser,
    split: Option<Split>,
    rejects: Vec<(Arc<str>, Reject)>,
    source: Arc<str>,
}

impl Reader {
    pub fn new(options: Options) -> Self {
        let table = Table::new(options.known_columns.clone(), options.column_limit, options.provenance);
        Self { options, table, parser: RowParser::default(), split: None, rejects: Vec::new(), source: "".into() }
    }

    pub fn split(&mut self) -> Option<&mut Split> {
        self.split.as_mut()
    }

    pub fn open(&mut self, source: &str, arrived_at: Option<String>, (start, end): (u64, Option<u64>)) {
        let options = &self.options;
        let sample = Sample::new(options.sample_lines, options.sample_bytes);
        self.source = source.into();
        let (longest, limits) = (options.max_line_bytes, options.limits);
        self.split = Some(Split::new(source.to_owned(), arrived_at, (start, end), longest, sample, limits));
    }

    pub fn feed(&mut self, chunk: Chunk) {
        if let Some(split) = self.split.as_mut().filter(|split| !split.done) {
            split.input.feed(chunk);
        }
    }

    /// Reads what was fed; a batch as soon as the columns are full, None when more input is needed or none is.
    pub fn read(&mut self) -> Option<Batch> {
        let mut split = self.split.take()?;
        let full = self.read_split(&mut split);
        self.split = Some(split);
        if full { self.table.take() } else { None }
    }

    pub fn close(&mut self) -> Option<Split> {
        self.split.take()
    }

    pub fn flush(&mut self) -> Option<Batch> {
        self.table.take()
    }

    pub fn take_rejects(&mut self) -> Vec<(Arc<str>, Reject)> {
        std::mem::take(&mut self.rejects)
    }

    /// True when the columns are full.
    fn read_split(&mut self, split: &mut Split) -> bool {
        while !split.done {
            if self.table.size() >= self.options.flush_bytes {
                return true;
            }
            match split.input.next_block() {
                Ok(Next::Block(mut block)) => {
                    self.read_block(split, (*block.bytes).as_ref(), &mut block.at);
                    split.keep(block);
                }
                Ok(Next::NeedsInput) => return false,
                Ok(Next::End) => {
                    let cut = split.cut_last();
                    self.judge(split, cut, false);
                    split.done = true;
                }
                Err(error) => {
                    split.error = Some(error);
                    split.done = true;
                }
            }
        }
        self.table.size() >= self.options.flush_bytes
    }

    fn read_block(&mut self, split: &mut Split, bytes: &[u8], at: &mut usize) {
        self.table.reserve();
        while *at < bytes.len() && self.table.size() < self.options.flush_bytes {
            if split.is_past_end() {
                split.done = true;
                *at = bytes.len();
                return;
            }
            let cut = split.cut(bytes, at);
            self.judge(split, cut, true);
        }
        split.done = split.is_past_end();
    }

    fn judge(&mut self, split: &mut Split, cut: Cut<'_>, newline: bool) {
        match cut {
            Cut::Nothing => {}
            Cut::Line(line) => self.judge_line(split, line, newline),
            Cut::Carried => {
                let carry = split.take_carry();
                self.judge_line(split, &carry, newline);
                split.give_back_carry(carry);
            }
            Cut::TooLong(length) => {
                let reject = split.reject(Reason::LineTooLong, length, None);
                self.remember(reject);
                split.advance(length, newline);
            }
        }
    }

    fn judge_line(&mut self, split: &mut Split, line: &[u8], newline: bool) {
        match split.content(line) {
            None => split.counts.blank_lines += 1,
            Some(content) => match self.parser.parse(content, &mut self.table) {
                Ok(()) => {
                    self.table.commit(&split.source, split.arrived_at.as_deref(), split.offset());
                    split.counts.rows += 1;
                }
                Err(reason) => {
                    let reject = split.reject(reason, line.len() as u64, Some(line));
                    self.remember(reject);
                }
            },
        }
        split.advance(line.len() as u64, newline);
    }

    fn remember(&mut self, reject: Option<Reject>) {
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
        Reader::new(Options {
            known_columns: Vec::new(),
            column_limit: 1000,
            max_line_bytes: 20,
            flush_bytes: 1 << 20,
            sample_lines: 100,
            sample_bytes: 1000,
            provenance: true,
            limits: Limits { expansion: 200, inflated: 1 << 30 },
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
    fn the_whole_file_is_counted_by_kind() {
        let counts = read_range(&mut reader(), 0, None, 7);
        assert_eq!((counts.lines, counts.rows, counts.blank_lines), (7, 3, 2));
        assert_eq!(counts.rejects.into_iter().collect::<Vec<_>>(), [(Reason::LineTooLong, 1), (Reason::NotJson, 1)]);
    }
}

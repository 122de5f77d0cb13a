//! Megabytes of NDJSON per second and thread, bytes to columns: `cargo run --release --example speed [-- flat]`.
//!
//! The columns are thrown away batch by batch. Each figure is the median of several rounds, the kinds interleaved.

use _native::inflate::Limits;
use _native::reader::{Options, Reader};
use std::fmt::Write;
use std::time::Instant;

const FILE_BYTES: usize = 128 << 20;
const CHUNK_BYTES: usize = 8 << 20;
const ROUNDS: usize = 5;

type Row = fn(&mut Chance, &mut String);

const KINDS: [(&str, Row); 6] = [
    ("flat", flat),
    ("nested", nested),
    ("shuffled", shuffled),
    ("sparse", sparse),
    ("wide", wide),
    ("unicode", unicode),
];

/// Xorshift: the same rows every time, without a crate.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn text(&mut self, length: u64) -> String {
        (0..length).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}

fn file(row: Row) -> Vec<u8> {
    let (mut chance, mut text) = (Chance(7), String::with_capacity(FILE_BYTES + 4096));
    while text.len() < FILE_BYTES {
        row(&mut chance, &mut text);
        text.push('\n');
    }
    text.into_bytes()
}

fn member(text: &mut String, first: bool, key: &str, value: &str) {
    let _ = write!(text, "{}\"{key}\":{value}", if first { '{' } else { ',' });
}

fn flat(chance: &mut Chance, text: &mut String) {
    for column in 0..16 {
        let value = match column % 4 {
            0 => chance.below(1 << 40).to_string(),
            1 => format!("\"{}\"", chance.text(20)),
            2 => format!("{}.{:02}", chance.below(10_000), chance.below(100)),
            _ => format!("\"{} {}\"", chance.text(12), chance.text(18)),
        };
        member(text, column == 0, &format!("field_{column:02}"), &value);
    }
    text.push('}');
}

fn nested(chance: &mut Chance, text: &mut String) {
    for column in 0..46 {
        let value = match column % 6 {
            0 => chance.below(1 << 40).to_string(),
            1 => format!("\"{}\"", chance.text(24)),
            2 => format!("{{\"id\":{},\"name\":\"{}\",\"on\":true}}", chance.below(99_999), chance.text(10)),
            3 => format!("\"{} \\n {}\"", chance.text(14), chance.text(14)),
            4 => format!("[{},{},{{\"k\":\"{}\"}}]", chance.below(999), chance.below(999), chance.text(8)),
            _ => ["true", "false", "null"][chance.below(3) as usize].to_owned(),
        };
        member(text, column == 0, &format!("userField{column:02}"), &value);
    }
    text.push('}');
}

fn sparse(chance: &mut Chance, text: &mut String) {
    let start = chance.below(25);
    for column in 0..20 {
        let value = format!("\"{}\"", chance.text(10));
        member(text, column == 0, &format!("attribute_{}", start + column * 25), &value);
    }
    text.push('}');
}

fn shuffled(chance: &mut Chance, text: &mut String) {
    let mut order: Vec<u64> = (0..16).collect();
    (1..order.len()).rev().for_each(|index| order.swap(index, chance.below(index as u64 + 1) as usize));
    for (position, column) in order.into_iter().enumerate() {
        let value = format!("\"{}\"", chance.text(16));
        member(text, position == 0, &format!("field_{column:02}"), &value);
    }
    text.push('}');
}

fn wide(chance: &mut Chance, text: &mut String) {
    for column in 0..1000 {
        let value = chance.below(1 << 30).to_string();
        member(text, column == 0, &format!("column_{column}"), &value);
    }
    text.push('}');
}

fn unicode(chance: &mut Chance, text: &mut String) {
    for column in 0..16 {
        let words: String = (0..12).map(|_| ["ä", "é", "名", "前", "x", "😀"][chance.below(6) as usize]).collect();
        member(text, column == 0, &format!("field_{column:02}"), &format!("\"{words}\""));
    }
    text.push('}');
}

fn megabytes_per_second(file: &[u8]) -> f64 {
    let limits = Limits { expansion: 200, inflated: u64::MAX };
    let mut reader = Reader::new(Options {
        known_columns: Vec::new(),
        column_limit: 1000,
        max_line_bytes: 16 << 20,
        flush_bytes: 64 << 20,
        sample_lines: 1000,
        sample_bytes: 4 << 20,
        provenance: false,
        limits,
    });
    let chunks: Vec<Vec<u8>> = file.chunks(CHUNK_BYTES).map(<[u8]>::to_vec).collect();
    let started = Instant::now();
    reader.open("file", None, (0, None));
    for chunk in chunks {
        reader.feed(Box::new(chunk));
        while reader.read().is_some() {}
    }
    if let Some(split) = reader.split() {
        split.input.end();
    }
    while reader.read().is_some() {}
    drop(reader.flush());
    let seconds = started.elapsed().as_secs_f64();
    let counts = reader.close().map(|split| split.counts).unwrap_or_default();
    assert_eq!(counts.rows, counts.lines);
    file.len() as f64 / 1e6 / seconds
}

fn main() {
    let wanted = std::env::args().nth(1);
    let kinds: Vec<(&str, Vec<u8>)> = KINDS
        .into_iter()
        .filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name))
        .map(|(name, row)| (name, file(row)))
        .collect();
    let mut figures = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for ((_, file), figures) in kinds.iter().zip(&mut figures) {
            figures.push(megabytes_per_second(file));
        }
    }
    for ((name, file), figures) in kinds.iter().zip(&mut figures) {
        figures.sort_by(f64::total_cmp);
        let rows = memchr::memchr_iter(b'\n', file).count();
        println!("{name:9} {:6.0} MB/s  ({} bytes a row)", figures[ROUNDS / 2], file.len() / rows);
    }
}

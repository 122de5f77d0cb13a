//! The speed of the reader: megabytes of NDJSON per second to columns, with one thread.
//!
//! `cargo run --release --example speed [-- flat]`. The columns are dropped batch by batch. Each figure is the median of
//! several rounds; the shapes are measured in turn.

use _native::inflate::InflateLimits;
use _native::reader::{Reader, ReaderOptions};
use std::fmt::Write;
use std::time::Instant;

const FILE_BYTES: usize = 128 << 20;
const CHUNK_BYTES: usize = 8 << 20;
const ROUNDS: usize = 5;

type WriteRow = fn(&mut Random, &mut String);

const SHAPES: [(&str, WriteRow); 6] = [
    ("flat", flat),
    ("nested", nested),
    ("shuffled", shuffled),
    ("sparse", sparse),
    ("wide", wide),
    ("unicode", unicode),
];

/// Xorshift: the same rows in every run, without a crate.
struct Random(u64);

impl Random {
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

fn make_file(write_row: WriteRow) -> Vec<u8> {
    let (mut random, mut text) = (Random(7), String::with_capacity(FILE_BYTES + 4096));
    while text.len() < FILE_BYTES {
        write_row(&mut random, &mut text);
        text.push('\n');
    }
    text.into_bytes()
}

fn push_member(text: &mut String, first: bool, key: &str, value: &str) {
    let _ = write!(text, "{}\"{key}\":{value}", if first { '{' } else { ',' });
}

fn flat(random: &mut Random, text: &mut String) {
    for column in 0..16 {
        let value = match column % 4 {
            0 => random.below(1 << 40).to_string(),
            1 => format!("\"{}\"", random.text(20)),
            2 => format!("{}.{:02}", random.below(10_000), random.below(100)),
            _ => format!("\"{} {}\"", random.text(12), random.text(18)),
        };
        push_member(text, column == 0, &format!("field_{column:02}"), &value);
    }
    text.push('}');
}

fn nested(random: &mut Random, text: &mut String) {
    for column in 0..46 {
        let value = match column % 6 {
            0 => random.below(1 << 40).to_string(),
            1 => format!("\"{}\"", random.text(24)),
            2 => format!("{{\"id\":{},\"name\":\"{}\",\"on\":true}}", random.below(99_999), random.text(10)),
            3 => format!("\"{} \\n {}\"", random.text(14), random.text(14)),
            4 => format!("[{},{},{{\"k\":\"{}\"}}]", random.below(999), random.below(999), random.text(8)),
            _ => ["true", "false", "null"][random.below(3) as usize].to_owned(),
        };
        push_member(text, column == 0, &format!("userField{column:02}"), &value);
    }
    text.push('}');
}

fn sparse(random: &mut Random, text: &mut String) {
    let start = random.below(25);
    for column in 0..20 {
        let value = format!("\"{}\"", random.text(10));
        push_member(text, column == 0, &format!("attribute_{}", start + column * 25), &value);
    }
    text.push('}');
}

fn shuffled(random: &mut Random, text: &mut String) {
    let mut order: Vec<u64> = (0..16).collect();
    (1..order.len()).rev().for_each(|index| order.swap(index, random.below(index as u64 + 1) as usize));
    for (position, column) in order.into_iter().enumerate() {
        let value = format!("\"{}\"", random.text(16));
        push_member(text, position == 0, &format!("field_{column:02}"), &value);
    }
    text.push('}');
}

fn wide(random: &mut Random, text: &mut String) {
    for column in 0..1000 {
        let value = random.below(1 << 30).to_string();
        push_member(text, column == 0, &format!("column_{column}"), &value);
    }
    text.push('}');
}

fn unicode(random: &mut Random, text: &mut String) {
    for column in 0..16 {
        let words: String = (0..12).map(|_| ["ä", "é", "名", "前", "x", "😀"][random.below(6) as usize]).collect();
        push_member(text, column == 0, &format!("field_{column:02}"), &format!("\"{words}\""));
    }
    text.push('}');
}

fn megabytes_per_second(file: &[u8]) -> f64 {
    let inflate_limits = InflateLimits { max_expansion: 200, max_inflated_bytes: u64::MAX };
    let mut reader = Reader::new(ReaderOptions {
        known_columns: Vec::new(),
        column_limit: 1000,
        max_line_bytes: 16 << 20,
        concatenated: false,
        flush_bytes: 64 << 20,
        reject_sample_count: 1000,
        reject_sample_bytes: 4 << 20,
        provenance: false,
        inflate_limits,
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
    let only = std::env::args().nth(1);
    let files: Vec<(&str, Vec<u8>)> = SHAPES
        .into_iter()
        .filter(|(shape, _)| only.as_deref().is_none_or(|only| only == *shape))
        .map(|(shape, write_row)| (shape, make_file(write_row)))
        .collect();
    let mut figures_by_file = vec![Vec::new(); files.len()];
    for _ in 0..ROUNDS {
        for ((_, file), figures) in files.iter().zip(&mut figures_by_file) {
            figures.push(megabytes_per_second(file));
        }
    }
    for ((shape, file), figures) in files.iter().zip(&mut figures_by_file) {
        figures.sort_by(f64::total_cmp);
        let rows = memchr::memchr_iter(b'\n', file).count();
        println!("{shape:9} {:6.0} MB/s  ({} bytes a row)", figures[ROUNDS / 2], file.len() / rows);
    }
}

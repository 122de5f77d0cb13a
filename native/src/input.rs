//! The bytes of one file as uncompressed blocks: as they were fed, or inflated.

use crate::decompressor::Codec;
use crate::inflate::{InflateLimits, Inflater, MAGIC_BYTES};
use crate::inflate_thread::{InflateThread, Inflated};

pub const INFLATED_BLOCK_BYTES: usize = 256 << 10;
/// Inflated bytes after which a gzip file gets a thread of its own, which would be a waste for a small file or a sample
/// of a large one. bzip2 takes so much longer than the parser, and zstd so much less, that a thread gains nothing.
const BYTES_BEFORE_THREAD: u64 = if cfg!(test) { 1 << 16 } else { 16 << 20 };

/// Bytes whose owner can be a Python object.
pub type Chunk = Box<dyn AsRef<[u8]> + Send + Sync>;

/// A chunk and how many of its bytes are read.
pub struct Block {
    pub bytes: Chunk,
    pub position: usize,
}

pub enum NextBlock {
    Block(Block),
    NeedsInput,
    End,
}

enum Stage {
    /// The first bytes, while they are too few to detect a codec.
    Head(Vec<u8>),
    Uncompressed,
    Inflating(Box<Inflater>),
    /// A large gzip file.
    InThread(InflateThread),
}

pub struct Input {
    stage: Stage,
    limits: InflateLimits,
    whole_file: bool,
    /// The last fed bytes that are not yet inflated or handed out.
    fed: Option<Block>,
    /// A block that was handed out and put back.
    put_back: Option<Block>,
    /// The inflater filled its output: it may have more without more input.
    may_have_more_output: bool,
    ended: bool,
}

impl Input {
    /// `at_file_start`: the first byte fed is the first byte of the file. `whole_file`: it is read to its end.
    pub fn new(at_file_start: bool, whole_file: bool, limits: InflateLimits) -> Self {
        let stage = if at_file_start { Stage::Head(Vec::new()) } else { Stage::Uncompressed };
        Self { stage, limits, whole_file, fed: None, put_back: None, may_have_more_output: false, ended: false }
    }

    /// None if the file is not compressed, or if the codec is not detected yet.
    pub fn codec(&self) -> Option<Codec> {
        match &self.stage {
            Stage::Inflating(inflater) => Some(inflater.codec()),
            Stage::InThread(_) => Some(Codec::Gzip),
            _ => None,
        }
    }

    pub fn needs_input(&self) -> bool {
        if let Stage::InThread(thread) = &self.stage {
            return self.put_back.is_none() && thread.needs_input();
        }
        self.fed.is_none() && self.put_back.is_none() && !self.may_have_more_output && !self.ended
    }

    /// The next bytes of the file. Call it only if `needs_input`.
    pub fn feed(&mut self, bytes: Chunk) {
        let block = Block { bytes, position: 0 };
        match &mut self.stage {
            Stage::InThread(thread) => thread.feed(block),
            _ => self.fed = Some(block),
        }
    }

    /// The file has no more bytes.
    pub fn end(&mut self) {
        self.ended = true;
        if let Stage::InThread(thread) = &mut self.stage {
            thread.end();
        }
    }

    /// Puts back a block that was not read to its end: it is the next block again.
    pub fn put_back(&mut self, block: Block) {
        self.put_back = Some(block);
    }

    /// The next block of uncompressed bytes. The error is a message for the operator and final.
    pub fn next_block(&mut self) -> Result<NextBlock, String> {
        if let Some(block) = self.put_back.take() {
            return Ok(NextBlock::Block(block));
        }
        if matches!(self.stage, Stage::Head(_)) {
            self.detect_codec()?;
        }
        if let Stage::Inflating(inflater) = &mut self.stage {
            let mut output = vec![0; INFLATED_BLOCK_BYTES];
            while self.fed.is_some() || self.may_have_more_output {
                let input = self.fed.as_ref().map_or(&[][..], |block| &(*block.bytes).as_ref()[block.position..]);
                let (read, written) = inflater.inflate(input, &mut output)?;
                let drained = read == input.len();
                self.may_have_more_output = written == output.len();
                match &mut self.fed {
                    Some(block) if !drained => block.position += read,
                    _ => self.fed = None,
                }
                if written > 0 {
                    output.truncate(written);
                    return Ok(NextBlock::Block(Block { bytes: Box::new(output), position: 0 }));
                }
            }
            if self.ended {
                inflater.finish()?;
            } else {
                self.move_to_thread();
            }
        } else if let Stage::InThread(thread) = &mut self.stage {
            while !thread.needs_input() {
                match thread.next() {
                    Inflated::Bytes(bytes) => {
                        return Ok(NextBlock::Block(Block { bytes: Box::new(bytes), position: 0 }));
                    }
                    Inflated::Drained => {}
                    Inflated::End => return Ok(NextBlock::End),
                    Inflated::Error(error) => return Err(error),
                }
            }
            return Ok(NextBlock::NeedsInput);
        } else if let (Stage::Uncompressed, Some(block)) = (&self.stage, self.fed.take()) {
            return Ok(NextBlock::Block(block));
        }
        Ok(if self.ended { NextBlock::End } else { NextBlock::NeedsInput })
    }

    /// Once a gzip file is large, the rest of it is inflated while these bytes are parsed.
    fn move_to_thread(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Uncompressed) {
            Stage::Inflating(inflater)
                if inflater.codec() == Codec::Gzip && inflater.inflated_bytes() >= BYTES_BEFORE_THREAD =>
            {
                InflateThread::start(inflater).map_or_else(Stage::Inflating, Stage::InThread)
            }
            stage => stage,
        };
    }

    /// Leaves the head stage as soon as there are enough bytes, or the file has ended.
    fn detect_codec(&mut self) -> Result<(), String> {
        let Stage::Head(head) = &mut self.stage else { return Ok(()) };
        if let Some(block) = &mut self.fed {
            let bytes = (*block.bytes).as_ref();
            // Nearly always the first block is long enough and is used without a copy.
            if !head.is_empty() || bytes.len() < MAGIC_BYTES {
                head.extend_from_slice(bytes);
                let joined = std::mem::take(head);
                if joined.len() < MAGIC_BYTES && !self.ended {
                    *head = joined;
                    self.fed = None;
                    return Ok(());
                }
                *block = Block { bytes: Box::new(joined), position: 0 };
            }
        } else if self.ended {
            self.fed = Some(Block { bytes: Box::new(std::mem::take(head)), position: 0 });
        } else {
            return Ok(());
        }
        let codec = self.fed.as_ref().and_then(|block| Codec::detect((*block.bytes).as_ref()));
        self.stage = match codec {
            None => Stage::Uncompressed,
            Some(codec) if self.whole_file => Stage::Inflating(Box::new(Inflater::new(codec, self.limits))),
            Some(codec) => {
                return Err(format!("{} file opened in part: a compressed file can only be read whole", codec.name()));
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LIMITS: InflateLimits = InflateLimits { max_expansion: 200, max_inflated_bytes: 1 << 30 };

    fn pack(text: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text).unwrap();
        writer.finish().unwrap()
    }

    fn text() -> Vec<u8> {
        (0..200_000_u32)
            .flat_map(|number| format!("{{\"n\":{}}}\n", number.wrapping_mul(2_654_435_761)).into_bytes())
            .collect()
    }

    /// What the input gives, and whether it had a thread.
    fn read(packed: &[u8], chunk: usize) -> (Result<Vec<u8>, String>, bool) {
        let mut input = Input::new(true, true, LIMITS);
        let (mut text, mut chunks) = (Vec::new(), packed.chunks(chunk));
        loop {
            match input.next_block() {
                Ok(NextBlock::Block(block)) => text.extend_from_slice((*block.bytes).as_ref()),
                Ok(NextBlock::NeedsInput) => {
                    assert!(input.needs_input());
                    match chunks.next() {
                        Some(bytes) => input.feed(Box::new(bytes.to_vec())),
                        None => input.end(),
                    }
                }
                Ok(NextBlock::End) => return (Ok(text), matches!(input.stage, Stage::InThread(_))),
                Err(error) => return (Err(error), matches!(input.stage, Stage::InThread(_))),
            }
        }
    }

    /// The same without a thread.
    fn inflate(packed: &[u8], chunk: usize) -> Result<Vec<u8>, String> {
        let (mut inflater, mut text) = (Inflater::new(Codec::Gzip, LIMITS), Vec::new());
        for mut bytes in packed.chunks(chunk) {
            loop {
                let mut output = vec![0; INFLATED_BLOCK_BYTES];
                let (read, written) = inflater.inflate(bytes, &mut output)?;
                bytes = &bytes[read..];
                text.extend_from_slice(&output[..written]);
                if bytes.is_empty() && written < output.len() {
                    break;
                }
            }
        }
        inflater.finish().map(|()| text)
    }

    #[test]
    fn a_large_gzip_file_gives_the_same_bytes_and_errors_in_a_thread() {
        let text = text();
        let packed = [pack(&text[..1_000_000]), pack(b""), pack(&text[1_000_000..])].concat();
        let mut corrupt = packed.clone();
        corrupt[packed.len() / 2] ^= 0x55;
        let mut checksum = packed.clone();
        checksum[packed.len() - 8] ^= 1;
        let cases = [
            packed.clone(),
            [&packed[..], &[0; 5000]].concat(),
            [&packed[..], b"garbage"].concat(),
            packed[..packed.len() - 1].to_vec(),
            packed[..packed.len() / 2].to_vec(),
            corrupt,
            checksum,
        ];
        for (number, case) in cases.iter().enumerate() {
            for chunk in [20_000, 100_000, 400_000] {
                let (read, in_thread) = read(case, chunk);
                assert!(in_thread, "{number}");
                assert_eq!(read, inflate(case, chunk), "{number}");
                assert_eq!(read.is_ok(), number < 2, "{number}");
            }
        }
        assert_eq!(read(&packed, 20_000).0.unwrap(), text);
    }

    #[test]
    fn a_small_file_and_another_codec_have_no_thread() {
        assert_eq!(read(&pack(b"{}\n"), 10), (Ok(b"{}\n".to_vec()), false));
        let zstd = zstd::encode_all(&text()[..], 1).unwrap();
        assert_eq!(read(&zstd, 20_000), (Ok(text()), false));
    }

    #[test]
    fn an_input_that_is_dropped_ends_its_thread() {
        let packed = pack(&text());
        let mut input = Input::new(true, true, LIMITS);
        for bytes in packed.chunks(20_000) {
            input.feed(Box::new(bytes.to_vec()));
            while !matches!(input.next_block().unwrap(), NextBlock::NeedsInput) {
                if matches!(input.stage, Stage::InThread(_)) {
                    // Blocks wait for the parser, and bytes for the thread: the test ends.
                    return;
                }
            }
        }
        panic!("no thread");
    }
}

//! The bytes of one file as uncompressed blocks: as they were fed, or inflated.

use crate::decompressor::Codec;
use crate::inflate::{InflateLimits, Inflater, MAGIC_BYTES};

const INFLATED_BLOCK_BYTES: usize = 256 << 10;

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
}

pub struct Input {
    stage: Stage,
    limits: InflateLimits,
    whole_file: bool,
    /// The bytes fed last, as far as they are not inflated or handed out.
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
            _ => None,
        }
    }

    pub fn needs_input(&self) -> bool {
        self.fed.is_none() && self.put_back.is_none() && !self.may_have_more_output && !self.ended
    }

    /// The next bytes of the file. Call it only if `needs_input`.
    pub fn feed(&mut self, bytes: Chunk) {
        self.fed = Some(Block { bytes, position: 0 });
    }

    /// The file has no more bytes.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Returns a block that was not read to its end: it is the next block again.
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
            }
        } else if let (Stage::Uncompressed, Some(block)) = (&self.stage, self.fed.take()) {
            return Ok(NextBlock::Block(block));
        }
        Ok(if self.ended { NextBlock::End } else { NextBlock::NeedsInput })
    }

    /// Leaves the head stage as soon as there are enough bytes, or the file has no more.
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

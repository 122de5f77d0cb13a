//! The bytes of one file in blocks: as they were fed, or inflated.

use crate::inflate::{Codec, Inflater, Limits, MARK_BYTES};

const INFLATED_BLOCK: usize = 256 << 10;

/// Bytes whose owner may be a Python object.
pub type Chunk = Box<dyn AsRef<[u8]> + Send + Sync>;

/// A run of plain bytes, and how much of it was read.
pub struct Block {
    pub bytes: Chunk,
    pub at: usize,
}

pub enum Next {
    Block(Block),
    NeedsInput,
    End,
}

enum Stage {
    /// The first bytes, while they are too few to tell a codec.
    Head(Vec<u8>),
    Plain,
    Inflating(Box<Inflater>),
}

pub struct Input {
    stage: Stage,
    limits: Limits,
    whole_file: bool,
    fed: Option<Block>,
    ready: Option<Block>,
    maybe_more: bool,
    ended: bool,
}

impl Input {
    /// `at_file_start`: the first byte fed is the first of the file. `whole_file`: it will be read to its end.
    pub fn new(at_file_start: bool, whole_file: bool, limits: Limits) -> Self {
        let stage = if at_file_start { Stage::Head(Vec::new()) } else { Stage::Plain };
        Self { stage, limits, whole_file, fed: None, ready: None, maybe_more: false, ended: false }
    }

    pub fn codec(&self) -> Option<Codec> {
        match &self.stage {
            Stage::Inflating(inflater) => Some(inflater.codec()),
            _ => None,
        }
    }

    pub fn needs_input(&self) -> bool {
        self.fed.is_none() && self.ready.is_none() && !self.maybe_more && !self.ended
    }

    pub fn feed(&mut self, bytes: Chunk) {
        self.fed = Some(Block { bytes, at: 0 });
    }

    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Hands back a block that was not read to its end.
    pub fn put_back(&mut self, block: Block) {
        self.ready = Some(block);
    }

    /// The next block of plain bytes; the error is a sentence for people and final.
    pub fn next_block(&mut self) -> Result<Next, String> {
        if let Some(block) = self.ready.take() {
            return Ok(Next::Block(block));
        }
        if matches!(self.stage, Stage::Head(_)) {
            self.detect()?;
        }
        if let Stage::Inflating(inflater) = &mut self.stage {
            let mut room = vec![0; INFLATED_BLOCK];
            while self.fed.is_some() || self.maybe_more {
                let input = self.fed.as_ref().map_or(&[][..], |block| &(*block.bytes).as_ref()[block.at..]);
                let (taken, written) = inflater.inflate(input, &mut room)?;
                let drained = taken == input.len();
                self.maybe_more = written == room.len();
                match &mut self.fed {
                    Some(block) if !drained => block.at += taken,
                    _ => self.fed = None,
                }
                if written > 0 {
                    room.truncate(written);
                    return Ok(Next::Block(Block { bytes: Box::new(room), at: 0 }));
                }
            }
            if self.ended {
                inflater.finish()?;
            }
        } else if let (Stage::Plain, Some(block)) = (&self.stage, self.fed.take()) {
            return Ok(Next::Block(block));
        }
        Ok(if self.ended { Next::End } else { Next::NeedsInput })
    }

    /// Leaves the head stage as soon as the first bytes are there.
    fn detect(&mut self) -> Result<(), String> {
        let Stage::Head(head) = &mut self.stage else { return Ok(()) };
        if let Some(block) = &mut self.fed {
            let bytes = (*block.bytes).as_ref();
            if head.is_empty() && bytes.len() >= MARK_BYTES {
                // The usual case, without a copy.
            } else {
                head.extend_from_slice(bytes);
                let joined = std::mem::take(head);
                if joined.len() < MARK_BYTES && !self.ended {
                    *head = joined;
                    self.fed = None;
                    return Ok(());
                }
                *block = Block { bytes: Box::new(joined), at: 0 };
            }
        } else if self.ended {
            self.fed = Some(Block { bytes: Box::new(std::mem::take(head)), at: 0 });
        } else {
            return Ok(());
        }
        let codec = self.fed.as_ref().and_then(|block| Codec::detect((*block.bytes).as_ref()));
        self.stage = match codec {
            None => Stage::Plain,
            Some(codec) if self.whole_file => Stage::Inflating(Box::new(Inflater::new(codec, self.limits))),
            Some(codec) => {
                return Err(format!("{} file opened as a part: it can only be read whole", codec.name()));
            }
        };
        Ok(())
    }
}

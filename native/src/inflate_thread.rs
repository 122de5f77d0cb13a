//! Inflates in a second thread while the first one parses: the two take about as long as each other.

use crate::inflate::Inflater;
use crate::input::{Block, INFLATED_BLOCK_BYTES};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Maximum number of inflated blocks that wait for the parser.
const MAX_WAITING_BLOCKS: usize = 4;
/// Maximum number of fed blocks that are not fully inflated: the second one is ready when the first one ends.
const MAX_FED_BLOCKS: usize = 2;

pub enum Inflated {
    Bytes(Vec<u8>),
    /// A fed block is fully inflated.
    Drained,
    /// The file has no more bytes.
    End,
    /// A message for the operator; nothing follows it.
    Error(String),
}

pub struct InflateThread {
    /// None after the last block.
    fed: Option<SyncSender<Block>>,
    /// None while the thread is dropped: it ends when it finds no receiver.
    /// The mutex is never locked: it makes a receiver that a Python class can hold.
    inflated: Option<Mutex<Receiver<Inflated>>>,
    fed_blocks: usize,
    thread: Option<JoinHandle<()>>,
}

impl InflateThread {
    /// Returns the inflater if the system has no thread left.
    pub fn start(inflater: Box<Inflater>) -> Result<Self, Box<Inflater>> {
        let (fed, blocks) = sync_channel(MAX_FED_BLOCKS);
        let (results, inflated) = sync_channel(MAX_WAITING_BLOCKS);
        let (given, taken) = sync_channel::<Box<Inflater>>(1);
        let work = move || {
            if let Ok(inflater) = taken.recv() {
                // After an error the parser is gone, and no result is awaited.
                let _ = inflate_all(*inflater, &blocks, &results);
            }
        };
        match Builder::new().name("inflate".to_owned()).spawn(work) {
            Err(_) => Err(inflater),
            Ok(thread) => {
                given.send(inflater).map_err(|unsent| unsent.0)?;
                Ok(Self { fed: Some(fed), inflated: Some(Mutex::new(inflated)), fed_blocks: 0, thread: Some(thread) })
            }
        }
    }

    pub fn needs_input(&self) -> bool {
        self.fed.is_some() && self.fed_blocks < MAX_FED_BLOCKS
    }

    pub fn feed(&mut self, block: Block) {
        if let Some(fed) = &self.fed {
            // After an error, which waits to be received, no block is taken.
            let _ = fed.send(block);
            self.fed_blocks += 1;
        }
    }

    /// The file has no more bytes.
    pub fn end(&mut self) {
        self.fed = None;
    }

    /// Waits for the next bytes. Call it only if `needs_input` is false.
    pub fn next(&mut self) -> Inflated {
        let receiver = self.inflated.as_mut().and_then(|inflated| inflated.get_mut().ok());
        let received = receiver.and_then(|receiver| receiver.recv().ok());
        let next = received.expect("the inflating thread reports its end");
        if matches!(next, Inflated::Drained) {
            self.fed_blocks -= 1;
        }
        next
    }
}

impl Drop for InflateThread {
    fn drop(&mut self) {
        self.fed = None;
        self.inflated = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn inflate_all(
    mut inflater: Inflater,
    blocks: &Receiver<Block>,
    results: &SyncSender<Inflated>,
) -> Result<(), SendError<Inflated>> {
    for mut block in blocks {
        loop {
            let mut output = vec![0; INFLATED_BLOCK_BYTES];
            let input = &(*block.bytes).as_ref()[block.position..];
            let (read, written) = match inflater.inflate(input, &mut output) {
                Ok(step) => step,
                Err(error) => return results.send(Inflated::Error(error)),
            };
            let drained = read == input.len() && written < output.len();
            block.position += read;
            if written > 0 {
                output.truncate(written);
                results.send(Inflated::Bytes(output))?;
            }
            if drained {
                break;
            }
        }
        results.send(Inflated::Drained)?;
    }
    results.send(match inflater.finish() {
        Ok(()) => Inflated::End,
        Err(error) => Inflated::Error(error),
    })
}

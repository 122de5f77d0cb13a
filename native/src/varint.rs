//! Numbers as Parquet writes them.

/// An unsigned LEB128: seven bits in each byte, the lowest first.
pub fn push_varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

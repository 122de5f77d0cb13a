//! Column names over `[a-z0-9_]`: a JSON key is encoded, and a name is decoded to its key.

use sha2::{Digest, Sha256};
use std::fmt::Write;

pub const RESCUED: &str = "_rescued";
pub const SOURCE: &str = "_source";
pub const ARRIVED_AT: &str = "_arrived_at";
pub const OFFSET: &str = "_offset";

/// The columns that a reader adds, in no particular order. No key has one of these names.
pub const SYSTEM: [&str; 4] = [RESCUED, SOURCE, ARRIVED_AT, OFFSET];

/// Spark's Parquet reader fails for a text column of this name (`ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME`).
const SPARK_ROW_INDEX: &str = "_tmp_metadata_row_index";
/// Partition columns, system columns and Spark's: a key whose name would be one of these gets `__` appended.
const RESERVED: [&str; 7] = ["date", "hour", RESCUED, SOURCE, OFFSET, ARRIVED_AT, SPARK_ROW_INDEX];

/// The column name of the empty key.
const EMPTY_KEY_NAME: &str = "__0_";
/// In characters, which are bytes: names are ASCII. The Glue Data Catalog allows 255 bytes for a column name.
const MAX_NAME_LENGTH: usize = 200;
/// A hashed name is this many characters of the encoded key, `HASH_MARK`, `HASH_DIGITS` of the key's SHA-256, `_`.
const HASHED_PREFIX_LENGTH: usize = 160;
const HASH_MARK: &str = "__1";
const HASH_DIGITS: usize = 32;

/// The column name of a key. It depends on the key alone.
pub fn column_name(key: &str) -> String {
    if key.is_empty() {
        return EMPTY_KEY_NAME.to_owned();
    }
    let mut name = encode(key);
    if RESERVED.contains(&name.as_str()) {
        name.push_str("__");
    }
    // An encoded key in the shape of a hashed name is hashed too, so that the shape alone tells hashed names from others.
    // (The prefix may end inside an escape, which the hash mark after it seems to complete.)
    if name.len() <= MAX_NAME_LENGTH && !is_hashed(&name) {
        return name;
    }
    name.truncate(HASHED_PREFIX_LENGTH);
    name.push_str(HASH_MARK);
    for byte in &Sha256::digest(key.as_bytes())[..HASH_DIGITS / 2] {
        push_hex(&mut name, u32::from(*byte), 2);
    }
    name.push('_');
    name
}

fn encode(key: &str) -> String {
    let mut name = String::with_capacity(key.len() + 8);
    let mut characters = key.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            'a'..='z' | '0'..='9' => name.push(character),
            'A'..='Z' => {
                name.push_str("__");
                name.push(character.to_ascii_lowercase());
            }
            '_' if matches!(characters.peek(), None | Some('a'..='z' | '0'..='9')) => name.push('_'),
            other => {
                name.push_str("__0");
                push_hex(&mut name, u32::from(other), 1);
                name.push('_');
            }
        }
    }
    name
}

fn push_hex(name: &mut String, number: u32, digits: usize) {
    // Writing to a String cannot fail.
    let _ = write!(name, "{number:0digits$x}");
}

/// The key with this name; None if no key has this name, or if the name is hashed.
pub fn original_key(name: &str) -> Option<String> {
    let key = if is_hashed(name) { None } else { decode(name) }?;
    (column_name(&key) == name).then_some(key)
}

/// Whether a key may have this name: it can be decoded, or it has the shape of a hashed name.
pub fn is_column_name(name: &str) -> bool {
    is_hashed(name) || original_key(name).is_some()
}

fn is_hashed(name: &str) -> bool {
    let name = name.as_bytes();
    name.len() == HASHED_PREFIX_LENGTH + HASH_MARK.len() + HASH_DIGITS + 1
        && name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && name[HASHED_PREFIX_LENGTH..].starts_with(HASH_MARK.as_bytes())
        && name[HASHED_PREFIX_LENGTH + HASH_MARK.len()..name.len() - 1]
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && name.ends_with(b"_")
}

fn decode(name: &str) -> Option<String> {
    if name == EMPTY_KEY_NAME {
        return Some(String::new());
    }
    let mut key = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let Some(escaped) = rest.strip_prefix("__") else {
            key.push(character);
            rest = &rest[character.len_utf8()..];
            continue;
        };
        rest = match escaped.as_bytes().first() {
            None => escaped,
            Some(letter @ b'a'..=b'z') => {
                key.push(char::from(letter.to_ascii_uppercase()));
                &escaped[1..]
            }
            Some(b'0') => {
                let (digits, after) = escaped[1..].split_once('_')?;
                key.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                after
            }
            Some(_) => return None,
        };
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clause_of_the_rule_is_encoded_and_decoded() {
        for (key, name) in [
            ("user_id", "user_id"),
            ("userId", "user__id"),
            ("ID", "__i__d"),
            ("a b", "a__020_b"),
            ("\u{f6}", "__0f6_"),
            ("\u{1F600}", "__01f600_"),
            ("", "__0_"),
            ("\0", "__00_"),
            ("_", "_"),
            ("__", "__05f__"),
            ("a_B", "a__05f___b"),
            ("_id", "_id"),
            ("date", "date__"),
            ("Date", "__date"),
            ("hour", "hour__"),
            ("_rescued", "_rescued__"),
            ("_arrived_at", "_arrived_at__"),
            ("_tmp_metadata_row_index", "_tmp_metadata_row_index__"),
        ] {
            assert_eq!(column_name(key), name, "{key:?}");
            assert_eq!(original_key(name).as_deref(), Some(key), "{name:?}");
        }
    }

    #[test]
    fn a_name_that_no_key_has_is_not_decoded() {
        for name in ["Foo", "a b", "date", "a__", "__0zz_", "__0041_", "__061_", "__2", "__0", "a___", "", "__0+41_"] {
            assert_eq!(original_key(name), None, "{name:?}");
        }
    }

    #[test]
    fn long_names_end_in_a_hash_and_stay_distinct() {
        let (first, second) = ("x".repeat(201), "x".repeat(202));
        assert_eq!(column_name(&"x".repeat(200)).len(), 200);
        assert_eq!(column_name(&first).len(), 196);
        assert_ne!(column_name(&first), column_name(&second));
        assert_eq!(original_key(&column_name(&first)), None);
        assert!(is_column_name(&column_name(&first)));
    }

    #[test]
    fn a_hashed_name_cut_inside_an_escape_is_not_another_key() {
        let name = column_name(&"\u{435}".repeat(40));
        assert_eq!(&name[154..163], "__0435__1");
        assert_eq!(original_key(&name), None);
        let lookalike = decode(&name).unwrap();
        assert_eq!(encode(&lookalike), name);
        assert_ne!(column_name(&lookalike), name);
    }
}

//! The reversible rule from a JSON key to a column name over `[a-z0-9_]`, and back.

use sha2::{Digest, Sha256};
use std::fmt::Write;

pub const RESCUED: &str = "_rescued";
pub const SOURCE: &str = "_source";
pub const ARRIVED_AT: &str = "_arrived_at";
pub const OFFSET: &str = "_offset";

/// Partition columns and our own columns: a key that would take one of these names gets `__` appended.
const RESERVED: [&str; 6] = ["date", "hour", RESCUED, SOURCE, OFFSET, ARRIVED_AT];

/// Names are ASCII, so characters and bytes are the same number.
const MAX_NAME: usize = 200;
const HASHED_HEAD: usize = 160;
const HASH_DIGITS: usize = 32;

pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

pub fn column_name(key: &str) -> String {
    if key.is_empty() {
        return "__0_".to_owned();
    }
    let mut name = encode(key);
    if is_reserved(&name) {
        name.push_str("__");
    }
    // A plain name in the shape of a hashed one is hashed as well: so the two never meet, and the shape alone tells them
    // apart. (The head may be cut inside of an escape, which the "__1" behind it could seem to complete.)
    if name.len() <= MAX_NAME && !is_hashed(&name) {
        return name;
    }
    name.truncate(HASHED_HEAD);
    name.push_str("__1");
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

/// The key whose name this is; None for a name that no key gives and for a hashed one.
pub fn original_key(name: &str) -> Option<String> {
    let key = if is_hashed(name) { None } else { decode(name) }?;
    (column_name(&key) == name).then_some(key)
}

/// Whether some key may have this name: the key itself, or its hash stands in it.
pub fn is_column_name(name: &str) -> bool {
    is_hashed(name) || original_key(name).is_some()
}

fn is_hashed(name: &str) -> bool {
    let name = name.as_bytes();
    name.len() == HASHED_HEAD + 3 + HASH_DIGITS + 1
        && name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        && &name[HASHED_HEAD..HASHED_HEAD + 3] == b"__1"
        && name[HASHED_HEAD + 3..name.len() - 1].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && name.ends_with(b"_")
}

fn decode(name: &str) -> Option<String> {
    if name == "__0_" {
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
    fn each_clause_of_the_rule_has_its_case() {
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
        ] {
            assert_eq!(column_name(key), name, "{key:?}");
            assert_eq!(original_key(name).as_deref(), Some(key), "{name:?}");
        }
    }

    #[test]
    fn names_that_no_key_gives_are_refused() {
        for name in ["Foo", "a b", "date", "a__", "__0zz_", "__0041_", "__061_", "__2", "__0", "a___", "", "__0+41_"] {
            assert_eq!(original_key(name), None, "{name:?}");
        }
    }

    #[test]
    fn long_names_end_in_a_hash_and_stay_apart() {
        let (one, other) = ("x".repeat(201), "x".repeat(202));
        assert_eq!(column_name(&"x".repeat(200)).len(), 200);
        assert_eq!(column_name(&one).len(), 196);
        assert_ne!(column_name(&one), column_name(&other));
        assert_eq!(original_key(&column_name(&one)), None);
        assert!(is_column_name(&column_name(&one)));
    }

    #[test]
    fn a_hashed_name_cut_inside_of_an_escape_leads_to_no_other_key() {
        let name = column_name(&"\u{435}".repeat(40));
        assert_eq!(&name[154..163], "__0435__1");
        assert_eq!(original_key(&name), None);
        let lookalike = decode(&name).unwrap();
        assert_eq!(encode(&lookalike), name);
        assert_ne!(column_name(&lookalike), name);
    }
}

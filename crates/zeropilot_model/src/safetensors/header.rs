//! One header.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::dtype::Dtype;

/// The longest header the format allows.
pub const MOST_HEADER_BYTES: u64 = 100_000_000;

/// Bytes that hold the length of the header.
const LENGTH_BYTES: usize = 8;

/// The member that is no tensor.
const METADATA: &str = "__metadata__";

/// A tensor in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTensor {
    /// Its name.
    pub name: String,
    /// Its number format.
    pub dtype: Dtype,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its elements.
    pub elements: u64,
}

/// The tensors of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// In the order of their data.
    pub tensors: Vec<StoredTensor>,
    /// Bytes of all data.
    pub data_bytes: u64,
}

/// Why a header cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The bytes end before the header does.
    #[error("the file ends before its header does")]
    TooShort,
    /// The header says it is longer than the format allows.
    #[error("the size of the header is {0} bytes, but at most {MOST_HEADER_BYTES} are allowed")]
    TooLong(u64),
    /// The header is no JSON of the right form.
    #[error("the header is malformed: {message}")]
    NotAHeader {
        /// What the reader says.
        message: String,
    },
    /// A name stands twice.
    #[error("the tensor `{0}` appears twice")]
    Duplicate(String),
    /// A number format that is not known.
    #[error("the tensor `{name}` has the unknown data type `{dtype}`")]
    UnknownDtype {
        /// The tensor.
        name: String,
        /// Its format.
        dtype: String,
    },
    /// Shape and data do not fit each other.
    #[error("the data of `{0}` does not match the size of its shape")]
    WrongLength(String),
    /// Data of two tensors overlap, or something lies between them.
    #[error("the data of `{0}` does not start where the previous tensor ends")]
    Gap(String),
}

#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

/// The members in their order: a map would lose duplicates.
struct Members(Vec<(String, RawTensor)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        map.next_value::<serde::de::IgnoredAny>()?;
                    } else {
                        members.push((name, map.next_value()?));
                    }
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// The length of a header, from the first eight bytes of its file.
///
/// # Errors
///
/// If there are fewer than eight bytes, or the length is impossible.
pub fn header_length(file: &[u8]) -> Result<u64, HeaderError> {
    let bytes = file.first_chunk::<LENGTH_BYTES>().ok_or(HeaderError::TooShort)?;
    let length = u64::from_le_bytes(*bytes);
    if length > MOST_HEADER_BYTES { Err(HeaderError::TooLong(length)) } else { Ok(length) }
}

/// Reads the header from the beginning of a file; what follows it is not looked at.
///
/// # Errors
///
/// If the header is not one, or contradicts itself.
pub fn parse_header(file: &[u8]) -> Result<Header, HeaderError> {
    let length = usize::try_from(header_length(file)?).map_err(|_| HeaderError::TooShort)?;
    let json = file[LENGTH_BYTES..].get(..length).ok_or(HeaderError::TooShort)?;
    let Members(mut members) = serde_json::from_slice(json)
        .map_err(|error| HeaderError::NotAHeader { message: error.to_string() })?;
    let mut names = BTreeSet::new();
    if let Some((name, _)) = members.iter().find(|(name, _)| !names.insert(name.as_str())) {
        return Err(HeaderError::Duplicate(name.clone()));
    }
    members.sort_by_key(|(_, tensor)| tensor.data_offsets);
    let mut header = Header::default();
    for (name, raw) in members {
        let (begin, end) = raw.data_offsets;
        if begin != header.data_bytes || end < begin {
            return Err(HeaderError::Gap(name));
        }
        header.tensors.push(checked(name, raw)?);
        header.data_bytes = end;
    }
    Ok(header)
}

fn checked(name: String, raw: RawTensor) -> Result<StoredTensor, HeaderError> {
    let Some(dtype) = Dtype::from_safetensors(&raw.dtype) else {
        return Err(HeaderError::UnknownDtype { name, dtype: raw.dtype });
    };
    let (begin, end) = raw.data_offsets;
    let elements = raw.shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size));
    let bits = elements.and_then(|elements| elements.checked_mul(dtype.bits()));
    let data_bits = (end - begin).checked_mul(8);
    match (elements, bits) {
        (Some(elements), Some(bits)) if Some(bits) == data_bits => {
            Ok(StoredTensor { name, dtype, shape: raw.shape, elements })
        }
        _ => Err(HeaderError::WrongLength(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(json: &str) -> Vec<u8> {
        [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat()
    }

    #[test]
    fn names_shapes_and_formats_are_read_without_the_data() {
        let json = r#"{"__metadata__":{"format":"pt"},
            "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
            "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}"#;
        let header = parse_header(&file(json)).unwrap();
        let names: Vec<&str> = header.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(header.tensors[1].shape, [2, 3]);
        assert_eq!(header.data_bytes, 16);
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let one = |inner: &str| parse_header(&file(&format!(r#"{{"a":{inner}}}"#))).unwrap_err();
        let huge = r#"{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]}"#;
        assert_eq!(one(huge), HeaderError::WrongLength("a".to_owned()));
        let gap = r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#;
        assert_eq!(one(gap), HeaderError::Gap("a".to_owned()));
        let backwards = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}"#;
        assert_eq!(one(backwards), HeaderError::WrongLength("a".to_owned()));
        let unknown = r#"{"dtype":"F3","shape":[1],"data_offsets":[0,4]}"#;
        assert!(matches!(one(unknown), HeaderError::UnknownDtype { .. }));
        let twice = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
            "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
        assert_eq!(parse_header(&file(twice)), Err(HeaderError::Duplicate("a".to_owned())));
    }

    #[test]
    fn a_length_from_hell_is_refused_before_anything_is_reserved() {
        assert_eq!(parse_header(&u64::MAX.to_le_bytes()), Err(HeaderError::TooLong(u64::MAX)));
        assert_eq!(parse_header(&[1, 2, 3]), Err(HeaderError::TooShort));
        assert_eq!(parse_header(&100_u64.to_le_bytes()), Err(HeaderError::TooShort));
    }
}

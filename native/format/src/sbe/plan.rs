//! What to read where, as Python has compiled it (`codecs/payload_plan.py` has the same shapes).

/// A primitive type of SBE as it stands in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    Char,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
}

impl Primitive {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "char" => Self::Char,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uint8" => Self::Uint8,
            "uint16" => Self::Uint16,
            "uint32" => Self::Uint32,
            "uint64" => Self::Uint64,
            "float" => Self::Float,
            "double" => Self::Double,
            _ => return None,
        })
    }

    pub fn size(self) -> usize {
        match self {
            Self::Char | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }
}

/// How bytes become characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Characters {
    /// UTF-8 or a subset such as ASCII; an invalid byte becomes its number, as `\\xe9`.
    Utf8,
    /// ISO-8859-1: each byte is the character of that number.
    Latin1,
    /// Not characters, or of an encoding that is not known here.
    Bytes,
}

/// The kind of column that an SBE field is decoded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Number,
    /// A mantissa, times a power of ten: of the column, or of its child, the exponent.
    Decimal,
    /// A time since 1970 in UTC: as a decimal of seconds. The child is the unit, the exponent
    /// without its sign.
    Timestamp,
    /// Days since 1970.
    Date,
    /// An array of numbers.
    Numbers,
    /// A char, or an array of bytes: up to the first NUL where it is characters.
    Text(Characters),
    /// A number with names, as its name.
    Enum,
    /// A number whose bits have names, as a struct of booleans.
    Set,
    Struct,
}

pub fn parse_characters(name: &str) -> Option<Characters> {
    Some(match name {
        "utf-8" => Characters::Utf8,
        "latin-1" => Characters::Latin1,
        "bytes" => Characters::Bytes,
        _ => return None,
    })
}

/// A column of fixed size: a field of a block or a member of a composite.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub since_version: u64,
    /// From the first byte of the block.
    pub offset: usize,
    /// How many bodies further out that block is, of an exponent.
    pub level: usize,
    pub primitive: Primitive,
    /// Elements; 1 where it is no array.
    pub length: usize,
    pub big_endian: bool,
    /// The bytes of one element, least significant first, that mean null.
    pub null: Option<Vec<u8>>,
    /// The bytes of a constant, which is not in the block.
    pub constant: Option<Vec<u8>>,
    /// The values of an enum (as unsigned numbers), or the bits of a set.
    pub names: Vec<(u64, String)>,
    pub children: Vec<Column>,
    /// Digits of a decimal; 0 where numbers have the type of their primitive.
    pub precision: u8,
    /// Digits after the point of a decimal or, of a timestamp, of its seconds: 6 or 9.
    pub scale: i8,
    /// Power of ten of a decimal's mantissa, or of a timestamp in seconds.
    pub exponent: i16,
}

/// An unsigned number in a header: of a message, a group or variable data.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct HeaderNumber {
    pub offset: usize,
    pub primitive: Primitive,
    pub big_endian: bool,
}

impl HeaderNumber {
    /// Read it from the bytes of its header; `None` where they do not reach.
    #[inline]
    pub fn read(self, header: &[u8]) -> Option<u64> {
        Some(match self.primitive.size() {
            1 => u64::from(u8::from_le_bytes(self.word(header)?)),
            2 => u64::from(u16::from_le_bytes(self.word(header)?)),
            4 => u64::from(u32::from_le_bytes(self.word(header)?)),
            _ => u64::from_le_bytes(self.word(header)?),
        })
    }

    /// Its bytes, least significant first.
    #[inline]
    fn word<const N: usize>(self, header: &[u8]) -> Option<[u8; N]> {
        let bytes = header.get(self.offset..self.offset.checked_add(N)?)?;
        let mut word: [u8; N] = bytes.try_into().ok()?;
        if self.big_endian {
            word.reverse();
        }
        Some(word)
    }
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Header {
    pub size: usize,
    pub block_length: HeaderNumber,
    pub template_id: HeaderNumber,
    pub schema_id: HeaderNumber,
    pub version: HeaderNumber,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct VarData {
    pub name: String,
    pub since_version: u64,
    pub length: HeaderNumber,
    pub header_size: usize,
    pub characters: Characters,
    /// Whether it is a column; if not, it is only stepped over.
    pub wanted: bool,
}

/// The body of a message or of a group entry: a block, then groups, then variable data.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Body {
    pub columns: Vec<Column>,
    /// Pairs of a version and the bytes that a block of that version, or newer, has at least;
    /// both ascending.
    pub extents: Vec<(u64, usize)>,
    pub groups: Vec<Group>,
    pub var_data: Vec<VarData>,
}

impl Body {
    /// Whether columns of it, or of groups in it, have their exponent in a block further out.
    pub fn needs_outer(&self) -> bool {
        let is_outside = |column: &Column| column.children.iter().any(|child| child.level > 0);
        self.columns.iter().any(is_outside)
            || self.groups.iter().any(|group| group.body.needs_outer())
    }

    /// The bytes that a block of this version must have for its fields to be within it.
    #[inline]
    pub fn extent(&self, version: u64) -> usize {
        self.extents
            .iter()
            .rev()
            .find(|(since, _)| *since <= version)
            .map_or(0, |(_, bytes)| *bytes)
    }
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Group {
    pub name: String,
    pub since_version: u64,
    pub header_size: usize,
    pub block_length: HeaderNumber,
    pub count: HeaderNumber,
    pub body: Body,
    /// Whether it is a column; if not, it is only stepped over.
    pub wanted: bool,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Message {
    pub name: String,
    pub template_id: u64,
    pub body: Body,
}

#[derive(Clone, Debug)]
#[cfg_attr(feature = "python", derive(pyo3::FromPyObject))]
pub struct Plan {
    pub schema_id: u64,
    pub header: Header,
    pub messages: Vec<Message>,
    /// Whether the fields of the only message are the columns; otherwise each message is one.
    pub flat: bool,
}

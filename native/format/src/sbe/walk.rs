//! One pass over the payloads: where each block, group entry and piece of variable data lies.

use super::plan::{Body, Group, Header, Message, Plan};

/// A place in the data: `start..start + length`. `None` where the sender's version has none.
pub type Place = Option<(usize, usize)>;

/// The blocks of a message, or of the entries of a group, and what follows them.
#[derive(Debug, Default)]
pub struct Blocks {
    /// First byte of each block, which is as long as its version's fields need.
    pub starts: Vec<usize>,
    /// Acting version of each block.
    pub versions: Vec<u64>,
    /// No block has an older version; `u64::MAX` without blocks.
    pub oldest: u64,
    pub groups: Vec<Entries>,
    pub var_data: Vec<Vec<Place>>,
}

/// The entries of a group, in the order of the blocks that they belong to.
#[derive(Debug)]
pub struct Entries {
    /// Arrow's layout: block `i` has the entries `offsets[i]..offsets[i + 1]`.
    pub offsets: Vec<i32>,
    /// Whether the version of each block knows the group.
    pub known: Vec<bool>,
    pub blocks: Blocks,
}

impl Blocks {
    fn new(body: &Body) -> Self {
        Self {
            starts: Vec::new(),
            versions: Vec::new(),
            oldest: u64::MAX,
            groups: body.groups.iter().map(Entries::new).collect(),
            var_data: body.var_data.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Forget all blocks after the first `length`, and what belongs to them.
    fn truncate(&mut self, length: usize) {
        self.starts.truncate(length);
        self.versions.truncate(length);
        for entries in &mut self.groups {
            entries.offsets.truncate(length + 1);
            entries.known.truncate(length);
            let last = entries.offsets.last().copied().unwrap_or(0);
            entries.blocks.truncate(last as usize);
        }
        for places in &mut self.var_data {
            places.truncate(length);
        }
    }
}

impl Entries {
    fn new(group: &Group) -> Self {
        Self {
            offsets: vec![0],
            known: Vec::new(),
            blocks: Blocks::new(&group.body),
        }
    }
}

/// The payloads of one message of the plan.
#[derive(Debug)]
pub struct Found {
    /// Row of each payload, ascending.
    pub rows: Vec<u32>,
    pub blocks: Blocks,
}

/// Which message of the plan a payload is.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Message(usize),
    /// A message of another schema, or of a template that the plan leaves out.
    Other,
}

/// Collects the places of all payloads of a batch.
pub struct Walk<'a> {
    plan: &'a Plan,
    data: &'a [u8],
    pub found: Vec<Found>,
    /// The message of the payload before: most often the next one is of the same.
    last: usize,
}

impl<'a> Walk<'a> {
    /// `data` has all the payloads; places count from its beginning.
    pub fn new(plan: &'a Plan, data: &'a [u8]) -> Self {
        Self {
            plan,
            data,
            found: plan
                .messages
                .iter()
                .map(|message| Found {
                    rows: Vec::new(),
                    blocks: Blocks::new(&message.body),
                })
                .collect(),
            last: 0,
        }
    }

    /// Take in the payload `start..end`. An error describes what is wrong, and nothing of
    /// the payload is stored.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "`message` returns a valid index; the caller's range is within the data"
    )]
    pub fn payload(&mut self, row: u32, start: usize, end: usize) -> Result<Outcome, String> {
        let Some(payload) = self.data.get(start..end) else {
            return Err("payload lies outside of its column".to_owned());
        };
        let header = read_header(&self.plan.header, payload)?;
        if header.schema_id != self.plan.schema_id {
            return Ok(Outcome::Other);
        }
        let Some((index, message)) = self.message(header.template_id) else {
            return Ok(Outcome::Other);
        };
        let found = &mut self.found[index];
        let before = found.blocks.starts.len();
        let mut cursor = Cursor {
            data: &self.data[..end],
            begin: start,
            position: start + self.plan.header.size,
            version: header.version,
            entries_left: payload.len(),
        };
        let walked = cursor.body(
            &message.name,
            &message.body,
            header.block_length,
            &mut found.blocks,
        );
        if let Err(problem) = walked {
            found.blocks.truncate(before);
            return Err(problem);
        }
        found.rows.push(row);
        Ok(Outcome::Message(index))
    }

    #[inline]
    fn message(&mut self, template_id: u64) -> Option<(usize, &'a Message)> {
        let messages = &self.plan.messages;
        if messages.get(self.last)?.template_id != template_id {
            self.last = messages
                .iter()
                .position(|message| message.template_id == template_id)?;
        }
        Some((self.last, messages.get(self.last)?))
    }
}

struct ReadHeader {
    block_length: u64,
    template_id: u64,
    schema_id: u64,
    version: u64,
}

#[inline]
fn read_header(header: &Header, payload: &[u8]) -> Result<ReadHeader, String> {
    let read = || {
        let bytes = payload.get(..header.size)?;
        Some(ReadHeader {
            block_length: header.block_length.read(bytes)?,
            template_id: header.template_id.read(bytes)?,
            schema_id: header.schema_id.read(bytes)?,
            version: header.version.read(bytes)?,
        })
    };
    read().ok_or_else(|| {
        format!(
            "a payload of {} bytes has no whole message header ({} bytes)",
            payload.len(),
            header.size
        )
    })
}

/// Goes through one payload.
struct Cursor<'a> {
    /// Up to the end of the payload.
    data: &'a [u8],
    begin: usize,
    position: usize,
    version: u64,
    /// Each group entry has separate bytes, so there are at most so many more of them. Entries
    /// that have none are allowed, but no more than that: they would take memory without end.
    entries_left: usize,
}

impl Cursor<'_> {
    fn take(&mut self, length: u64, name: &str, what: &str) -> Result<usize, String> {
        let start = self.position;
        let left = self.data.len() - start;
        match usize::try_from(length) {
            Ok(length) if length <= left => {
                self.position += length;
                Ok(start)
            }
            _ => Err(format!(
                "{name}: {what} of {length} bytes at byte {} ends after the payload, which has \
                 {} bytes",
                start - self.begin,
                self.data.len() - self.begin
            )),
        }
    }

    #[inline]
    fn body(
        &mut self,
        name: &str,
        body: &Body,
        block_length: u64,
        blocks: &mut Blocks,
    ) -> Result<(), String> {
        let extent = body.extent(self.version);
        if block_length < extent as u64 {
            return Err(format!(
                "{name}: a block of {block_length} bytes at byte {} is too short for the fields \
                 of version {}, which take {extent}",
                self.position - self.begin,
                self.version
            ));
        }
        let start = self.take(block_length, name, "a block")?;
        blocks.starts.push(start);
        blocks.versions.push(self.version);
        blocks.oldest = blocks.oldest.min(self.version);
        for (group, entries) in body.groups.iter().zip(&mut blocks.groups) {
            self.group(group, entries)?;
        }
        for (data, places) in body.var_data.iter().zip(&mut blocks.var_data) {
            if self.version < data.since_version {
                if data.wanted {
                    places.push(None);
                }
                continue;
            }
            let header = self.take(data.header_size as u64, &data.name, "a length")?;
            let header = self.data.get(header..self.position).unwrap_or_default();
            let length = data.length.read(header).unwrap_or(u64::MAX);
            let start = self.take(length, &data.name, "variable data")?;
            if data.wanted {
                places.push(Some((start, self.position - start)));
            }
        }
        Ok(())
    }

    fn group(&mut self, group: &Group, entries: &mut Entries) -> Result<(), String> {
        let known = self.version >= group.since_version;
        if known {
            let start = self.take(group.header_size as u64, &group.name, "a group header")?;
            let header = self.data.get(start..self.position).unwrap_or_default();
            let (Some(block_length), Some(count)) =
                (group.block_length.read(header), group.count.read(header))
            else {
                return Err(format!("{}: no dimensions in its header", group.name));
            };
            for _ in 0..count {
                self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| {
                    format!(
                        "{}: more group entries ({count} here) than the payload has bytes ({})",
                        group.name,
                        self.data.len() - self.begin
                    )
                })?;
                self.body(&group.name, &group.body, block_length, &mut entries.blocks)?;
            }
        }
        entries.known.push(known);
        let length = i32::try_from(entries.blocks.starts.len())
            .map_err(|_| format!("{}: too many entries for one batch", group.name))?;
        entries.offsets.push(length);
        Ok(())
    }
}

//! A plan at work: batches of payloads into columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::columns::{body_fields, message_columns, presence};
use super::decoded::{Decoded, Kept, Malformed};
use super::plan::Plan;
use super::values::{Escaped, Unfit, strings};
use super::walk::{Outcome, Walk};
use crate::errors::InvalidArgument;

/// Decodes payloads of the messages of a plan.
pub struct Decoder {
    plan: Plan,
    template_column: Option<String>,
    pub error_column: Option<String>,
    pub schema: SchemaRef,
}

impl Decoder {
    /// A decoder with the columns of the plan and, if named, those of templates and of errors.
    pub fn new(
        plan: Plan,
        template_column: Option<String>,
        error_column: Option<String>,
    ) -> Result<Self, InvalidArgument> {
        if plan.flat && plan.messages.len() != 1 {
            return Err(InvalidArgument("a flat plan has one message".into()));
        }
        let schema = schema(&plan, template_column.as_deref(), error_column.as_deref());
        Ok(Self {
            plan,
            template_column,
            error_column,
            schema,
        })
    }

    /// Decode payloads. One with a value that does not fit its column is malformed, too.
    pub fn decode(
        &self,
        payloads: &BinaryArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> Result<Decoded, ArrowError> {
        let mut unfit = BTreeMap::new();
        let decoded = self.decode_all_but(&unfit, payloads, malformed, keep_others)?;
        for (row, text) in decoded.unfit {
            let kept = decoded.decoded.kept.chosen.as_ref();
            let payload = kept.map_or(Some(row), |kept| kept.get(row).map(|at| *at as usize));
            if let Some(payload) = payload {
                unfit.entry(payload).or_insert(text);
            }
        }
        if unfit.is_empty() {
            return Ok(decoded.decoded);
        }
        let decoded = self.decode_all_but(&unfit, payloads, malformed, keep_others)?;
        Ok(decoded.decoded)
    }

    /// Decode payloads, but those for which it is known that they are malformed, and why.
    #[expect(
        clippy::indexing_slicing,
        reason = "Arrow has one offset more than rows"
    )]
    fn decode_all_but(
        &self,
        known: &BTreeMap<usize, String>,
        payloads: &BinaryArray,
        malformed: Malformed,
        keep_others: bool,
    ) -> Result<Attempt, ArrowError> {
        let data = payloads.value_data();
        let offsets = payloads.value_offsets();
        let mut walk = Walk::new(&self.plan, data);
        let mut templates = self
            .template_column
            .as_ref()
            .map(|_| Vec::with_capacity(payloads.len()));
        let mut kept = Kept::default();
        let mut problems: Vec<(usize, String)> = Vec::new();
        for payload in 0..payloads.len() {
            let mut template = None;
            if payloads.is_valid(payload) {
                // Offsets of Arrow are never negative, and a batch has fewer than 2^31 rows.
                let (start, end) = (offsets[payload] as usize, offsets[payload + 1] as usize);
                let outcome = match known.get(&payload) {
                    Some(problem) => Err(problem.clone()),
                    None => walk.payload(kept.rows as u32, start, end),
                };
                match outcome {
                    Ok(Outcome::Message(index)) => template = Some(index),
                    Ok(Outcome::Other) if keep_others => {}
                    Ok(Outcome::Other) => {
                        kept.leave_out();
                        continue;
                    }
                    Err(problem) => {
                        problems.push((payload, problem));
                        match malformed {
                            Malformed::Fail => break,
                            Malformed::Drop => {
                                kept.leave_out();
                                continue;
                            }
                            Malformed::Null => {}
                        }
                    }
                }
            }
            kept.keep(payload);
            if let Some(templates) = &mut templates {
                templates.push(template);
            }
        }
        let rows = kept.rows;
        let mut columns: Vec<ArrayRef> = Vec::new();
        if let Some(templates) = templates {
            let messages = &self.plan.messages;
            columns.push(strings(templates.iter().map(|index| {
                messages.get((*index)?).map(|message| message.name.as_str())
            }))?);
        }
        let mut unfit = Vec::new();
        let escaped = Escaped::default();
        for (message, found) in self.plan.messages.iter().zip(&walk.found) {
            let built = message_columns(message, found, data, rows, &mut unfit, &escaped)?;
            if self.plan.flat {
                columns.extend(built);
            } else if !built.is_empty() {
                let fields = body_fields(&message.body);
                let present = presence(found, rows);
                columns.push(Arc::new(StructArray::try_new(fields, built, present)?));
            }
        }
        if self.error_column.is_some() {
            // Only `decode` has that column, where each payload is a row.
            let mut next = problems.iter().peekable();
            let texts: Vec<Option<&str>> = (0..rows)
                .map(|row| {
                    next.next_if(|(bad, _)| *bad == row)
                        .map(|(_, problem)| problem.as_str())
                })
                .collect();
            columns.push(strings(texts.into_iter())?);
        }
        let batch = RecordBatch::try_new_with_options(
            self.schema.clone(),
            columns,
            &RecordBatchOptions::new().with_row_count(Some(rows)),
        )?;
        let decoded = Decoded {
            batch,
            kept,
            problems,
            escaped: escaped.into_inner(),
        };
        Ok(Attempt { decoded, unfit })
    }
}

/// Decoded payloads, and the values that do not fit their columns, by row.
struct Attempt {
    decoded: Decoded,
    unfit: Vec<Unfit>,
}

fn schema(plan: &Plan, template_column: Option<&str>, error_column: Option<&str>) -> SchemaRef {
    let text = |name: &str| Arc::new(Field::new(name, DataType::Utf8, true));
    let mut fields = Vec::new();
    fields.extend(template_column.map(text));
    for message in &plan.messages {
        let body = body_fields(&message.body);
        if plan.flat {
            fields.extend(body.iter().cloned());
        } else if !body.is_empty() {
            let data_type = DataType::Struct(body);
            fields.push(Arc::new(Field::new(&message.name, data_type, true)));
        }
    }
    fields.extend(error_column.map(text));
    Arc::new(Schema::new(fields))
}

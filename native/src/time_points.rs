//! Points of a recording's time index, taken apart for Python, which describes their format
//! (`catalog/time_index/file.py`) and looks times and positions up in them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const POINT_LENGTH: usize = 32;
const CHECKED_LENGTH: usize = 28;
const ESTIMATE: u32 = 1;

#[derive(Default, Debug, PartialEq)]
struct Points {
    times: Vec<i64>,
    positions: Vec<i64>,
    estimates: Vec<u8>,
    /// Why the file is of no use; empty when it is.
    damage: String,
}

fn long(bytes: &[u8]) -> i64 {
    bytes.try_into().map(i64::from_le_bytes).unwrap_or_default()
}

fn int(bytes: &[u8]) -> u32 {
    bytes.try_into().map(u32::from_le_bytes).unwrap_or_default()
}

/// Read the points from `begin` on. Points at the end that fail their checksum are the rest of a
/// crash and are left out; followed by a good point they are damage.
#[expect(clippy::indexing_slicing, reason = "chunks of POINT_LENGTH bytes")]
fn decode(file: &[u8], begin: usize) -> Points {
    let body = file.get(begin..).unwrap_or_default();
    let mut points = Points::default();
    let mut bad = None;
    let mut last_position = 0;
    for (index, point) in body.chunks_exact(POINT_LENGTH).enumerate() {
        let position = long(&point[8..16]);
        if crc32fast::hash(&point[..CHECKED_LENGTH]) != int(&point[CHECKED_LENGTH..]) {
            bad = bad.or(Some(begin + index * POINT_LENGTH));
        } else if let Some(offset) = bad {
            points.damage = format!("the point at offset {offset} is damaged");
            break;
        } else if position < last_position {
            points.damage = format!("its positions go back to {position}");
            break;
        } else {
            points.times.push(long(&point[..8]));
            points.positions.push(position);
            points
                .estimates
                .push(u8::from(int(&point[20..24]) & ESTIMATE != 0));
            last_position = position;
        }
    }
    points
}

fn to_bytes(numbers: &[i64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

type Columns<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    String,
);

#[pyfunction]
pub fn decode_time_points<'py>(py: Python<'py>, data: &[u8], begin: usize) -> Columns<'py> {
    let (times, positions, points) = py.detach(|| {
        let points = decode(data, begin);
        (to_bytes(&points.times), to_bytes(&points.positions), points)
    });
    (
        PyBytes::new(py, &times),
        PyBytes::new(py, &positions),
        PyBytes::new(py, &points.estimates),
        points.damage,
    )
}

/// For each number the largest up to it, and the smallest from it on.
fn extremes(numbers: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let mut so_far = i64::MIN;
    let largest = numbers.iter().map(|&number| {
        so_far = so_far.max(number);
        so_far
    });
    let largest = largest.collect();
    let mut from_here = i64::MAX;
    let smallest = numbers.iter().rev().map(|&number| {
        from_here = from_here.min(number);
        from_here
    });
    let mut smallest: Vec<i64> = smallest.collect();
    smallest.reverse();
    (largest, smallest)
}

/// The numbers of 64 bits in an array of bytes, in the machine's order.
fn from_bytes(bytes: &[u8]) -> PyResult<Vec<i64>> {
    if !bytes.len().is_multiple_of(8) {
        return Err(PyValueError::new_err(format!(
            "{} bytes are not an array of 64-bit numbers: expected a multiple of 8",
            bytes.len()
        )));
    }
    Ok(bytes
        .chunks_exact(8)
        .map(|bytes| bytes.try_into().map(i64::from_ne_bytes).unwrap_or_default())
        .collect())
}

#[pyfunction]
pub fn running_extremes<'py>(
    py: Python<'py>,
    numbers: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (largest, smallest) = py.detach(|| -> PyResult<_> {
        let (largest, smallest) = extremes(&from_bytes(numbers)?);
        Ok((to_bytes(&largest), to_bytes(&smallest)))
    })?;
    Ok((PyBytes::new(py, &largest), PyBytes::new(py, &smallest)))
}

const NS_PER_US: i64 = 1000;

/// The microseconds of the last point at or before each position; both are ascending. There are
/// none for positions before the first point.
fn last_times(times: &[i64], positions: &[i64], wanted: &[i64]) -> Vec<i64> {
    let mut points = positions.iter().zip(times).peekable();
    let mut last = None;
    wanted
        .iter()
        .filter_map(|wanted| {
            while let Some((_, time)) = points.next_if(|(position, _)| *position <= wanted) {
                last = Some(time.div_euclid(NS_PER_US));
            }
            last
        })
        .collect()
}

#[pyfunction]
pub fn last_times_us<'py>(
    py: Python<'py>,
    times: &[u8],
    positions: &[u8],
    wanted: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let found = py.detach(|| -> PyResult<_> {
        let (times, positions) = (from_bytes(times)?, from_bytes(positions)?);
        Ok(to_bytes(&last_times(
            &times,
            &positions,
            &from_bytes(wanted)?,
        )))
    })?;
    Ok(PyBytes::new(py, &found))
}

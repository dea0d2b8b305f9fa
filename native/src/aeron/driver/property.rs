//! A property of the C driver: its value as C's setters take it, by the kinds of values.

use super::last_error;
use crate::errors::{Error, Result};
use rusteron_media_driver::bindings as d;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStringExt;
use std::ptr::{null, null_mut};

pub(super) type Context = *mut d::aeron_driver_context_t;
type Setter<T> = unsafe extern "C" fn(Context, T) -> c_int;
type Getter<T> = unsafe extern "C" fn(Context) -> T;

/// Setter of a strategy, of its arguments, and getter of the strategy's name.
type IdleStrategy = (
    Setter<*const c_char>,
    Setter<*const c_char>,
    Getter<*const c_char>,
);

pub(super) struct Property<'a> {
    pub context: Context,
    /// All properties, by the names of their variables.
    pub given: &'a BTreeMap<String, (&'a str, CString)>,
    pub name: &'a str,
    pub value: &'a CStr,
}

/// A table of properties: the variable, the kind of its value, the C driver's setter, and the range.
/// Returns from the function if the variable is in it.
macro_rules! setters {
    ($property:ident, $variable:ident:
     $($name:literal $kind:ident $setter:ident $(($($range:tt)*))?;)*) => {
        match $variable {
            $($name => return $property.$kind(d::$setter $(, $($range)*)?),)*
            _ => {}
        }
    };
}
pub(super) use setters;

impl Property<'_> {
    pub fn call<T>(&self, set: Setter<T>, value: T) -> Result<()> {
        // SAFETY: the context is valid while `apply` runs; what the value points at is copied by C
        // or outlives the context.
        self.done(unsafe { set(self.context, value) })
    }

    pub fn done(&self, result: c_int) -> Result<()> {
        if result < 0 {
            Err(self.refused())
        } else {
            Ok(())
        }
    }

    fn refused(&self) -> Error {
        last_error(&format!(
            "cannot configure the media driver: {}",
            self.shown()
        ))
    }

    fn shown(&self) -> String {
        format!("{}={}", self.name, self.value.to_string_lossy())
    }

    pub fn expected(&self, what: &str) -> Error {
        invalid(format!("{}: expected {what}", self.shown()))
    }

    pub fn only_in_environment(&self, variable: &str) -> Result<()> {
        Err(invalid(format!(
            "{}: the driver reads it from the environment only; set {variable} before this \
             process starts",
            self.name
        )))
    }

    pub fn text(&self, set: Setter<*const c_char>) -> Result<()> {
        self.call(set, self.value.as_ptr())
    }

    pub fn flag(&self, set: Setter<bool>) -> Result<()> {
        match self.value.to_bytes() {
            b"true" | b"on" | b"1" => self.call(set, true),
            b"false" | b"off" | b"0" => self.call(set, false),
            _ => Err(self.expected("true or false")),
        }
    }

    pub fn choice<T: Copy>(&self, set: Setter<T>, choices: &[(&str, T)]) -> Result<()> {
        let is_given = |(name, _): &&(&str, T)| name.as_bytes() == self.value.to_bytes();
        if let Some((_, value)) = choices.iter().find(is_given) {
            return self.call(set, *value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Err(self.expected(&format!("one of {}", names.join(", "))))
    }

    pub fn count<T: TryFrom<i64>>(&self, set: Setter<T>, range: RangeInclusive<i64>) -> Result<()> {
        let expected = || self.expected(&format!("an integer {}", shown(&range)));
        let value = self.integer(range.clone())?;
        self.call(set, value.try_into().map_err(|_| expected())?)
    }

    /// Decimal, or with C's prefixes hexadecimal or octal.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Result<i64> {
        let mut end = null_mut();
        // SAFETY: the text is NUL-terminated, and `end` points into it afterwards.
        let (value, is_whole) = unsafe {
            let value = libc::strtoll(self.value.as_ptr(), &mut end, 0);
            (value, !self.value.is_empty() && *end == 0)
        };
        if is_whole && range.contains(&value) {
            Ok(value)
        } else {
            Err(self.expected(&format!("an integer {}", shown(&range))))
        }
    }

    pub fn size<T: TryFrom<i64>>(&self, set: Setter<T>, range: RangeInclusive<i64>) -> Result<()> {
        let expected = || self.expected(&format!("a size such as 64k {}", shown(&range)));
        let value = self
            .parsed(d::aeron_parse_size64, &range)
            .ok_or_else(expected)?;
        self.call(set, value.try_into().map_err(|_| expected())?)
    }

    pub fn duration(&self, set: Setter<u64>, least_ns: i64) -> Result<()> {
        self.call(set, self.duration_ns(least_ns)?)
    }

    pub fn threshold(&self, set: unsafe extern "C" fn(Context, u64) -> i64) -> Result<()> {
        let value = self.duration_ns(0)?;
        // SAFETY: the context is valid while `apply` runs. This cannot fail.
        unsafe { set(self.context, value) };
        Ok(())
    }

    fn duration_ns(&self, least_ns: i64) -> Result<u64> {
        let range = least_ns..=i64::MAX;
        let value = self.parsed(d::aeron_parse_duration_ns, &range);
        value
            .and_then(|value| value.try_into().ok())
            .ok_or_else(|| self.expected(&format!("a duration such as 500ms {} ns", shown(&range))))
    }

    fn parsed(
        &self,
        parse: unsafe extern "C" fn(*const c_char, *mut u64) -> c_int,
        range: &RangeInclusive<i64>,
    ) -> Option<i64> {
        let mut value = 0;
        // SAFETY: the text is NUL-terminated, and `value` a place for the result.
        let result = unsafe { parse(self.value.as_ptr(), &mut value) };
        let value = i64::try_from(value).ok()?;
        (result >= 0 && range.contains(&value)).then_some(value)
    }

    pub fn ports(&self, set: unsafe extern "C" fn(Context, u16, u16) -> c_int) -> Result<()> {
        let (mut low, mut high) = (0, 0);
        // SAFETY: the text is NUL-terminated, and the context is valid while `apply` runs.
        let result = unsafe {
            match d::aeron_parse_port_range(self.value.as_ptr(), &mut low, &mut high) {
                0.. => set(self.context, low, high),
                failed => failed,
            }
        };
        self.done(result)
    }

    /// Look up a function by the name that the C driver has for it, or by that of its symbol. `F`
    /// is an optional function, `None` by default.
    pub fn load<F: Default + PartialEq>(
        &self,
        load: unsafe extern "C" fn(*const c_char) -> F,
    ) -> Result<F> {
        // SAFETY: the text is NUL-terminated.
        let function = unsafe { load(self.value.as_ptr()) };
        if function == F::default() {
            return Err(self.refused());
        }
        Ok(function)
    }

    /// Set a strategy together with its arguments, of which C makes its state.
    pub fn idle_strategy(
        &self,
        variable: &str,
        (set, set_arguments, name): IdleStrategy,
    ) -> Result<()> {
        let variable = variable.trim_end_matches("_INIT_ARGS");
        // SAFETY: the context is valid while `apply` runs. C frees its name when it gets another,
        // so that is copied.
        let by_default = || unsafe { CStr::from_ptr(name(self.context)).to_owned() };
        let strategy = self.value_of(variable).unwrap_or_else(by_default);
        let arguments = self.value_of(&format!("{variable}_INIT_ARGS"));
        self.call(
            set_arguments,
            arguments.as_ref().map_or(null(), |text| text.as_ptr()),
        )?;
        self.call(set, strategy.as_ptr())
    }

    /// The value of a property, else that of its environment variable.
    fn value_of(&self, variable: &str) -> Option<CString> {
        if let Some((_, value)) = self.given.get(variable) {
            return Some(value.clone());
        }
        CString::new(std::env::var_os(variable)?.into_vec()).ok()
    }
}

pub(super) fn invalid(message: String) -> Error {
    Error::Aeron {
        code: libc::EINVAL,
        message: format!("cannot configure the media driver: {message}"),
    }
}

fn shown(range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (least, i64::MAX) => format!("of at least {least}"),
        (least, most) => format!("from {least} to {most}"),
    }
}

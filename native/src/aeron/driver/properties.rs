//! Properties of the C driver, set through its context.
//!
//! Left alone, the C driver takes all properties from environment variables. Those cannot be
//! changed in a process with several threads: any of them may be reading one. Names, syntax and
//! ranges are those of the C driver; a value that it would replace with a default is refused here.

use super::super::c_string;
use super::property::{Context, Property, invalid, setters};
use crate::errors::Result;
use rusteron_media_driver::bindings as d;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

const INT_MAX: i64 = i32::MAX as i64;
const TERM_MAX: i64 = 1 << 30;
const DATA_HEADER: i64 = 32;
const UDP_PAYLOAD_MAX: i64 = 65_504;
const MICROSECOND: i64 = 1_000;
const MEBIBYTE: i64 = 1 << 20;
const RING_TRAILER: i64 = size_of::<d::aeron_rb_descriptor_t>() as i64;
const BROADCAST_TRAILER: i64 = size_of::<d::aeron_broadcast_descriptor_t>() as i64;

unsafe extern "C" {
    fn aeron_driver_termination_validator_load(
        name: *const c_char,
    ) -> d::aeron_driver_termination_validator_func_t;
}

/// Set all properties; names that the C driver does not have are ignored.
///
/// Returns the values, of which C retains some: they must outlive the context.
///
/// # Safety
/// `context` was initialised, and has no driver yet.
pub(super) unsafe fn apply(
    context: Context,
    properties: &BTreeMap<String, String>,
) -> Result<Vec<CString>> {
    let mut given = BTreeMap::new();
    for (name, value) in properties {
        given.insert(variable(name), (name.as_str(), c_string(value, name)?));
    }
    for (variable, (name, value)) in &given {
        let property = Property {
            context,
            given: &given,
            name,
            value,
        };
        property.set(variable)?;
    }
    // SAFETY: the context is valid, as promised by the caller.
    unsafe { check(context)? };
    Ok(given.into_values().map(|(_, value)| value).collect())
}

/// The environment variable by which the C driver knows a property: `aeron.dir` is `AERON_DIR`.
fn variable(property: &str) -> String {
    property.replace(['.', '-'], "_").to_uppercase()
}

/// Check what the C driver checks when it reads several variables that belong together.
///
/// # Safety
/// `context` is valid.
unsafe fn check(context: Context) -> Result<()> {
    // SAFETY: as promised by the caller; names are NUL-terminated.
    let (delay_ns, ratio, has_interface, has_name) = unsafe {
        let name = d::aeron_driver_context_get_resolver_name(context);
        (
            d::aeron_driver_context_get_nak_unicast_delay_ns(context),
            d::aeron_driver_context_get_nak_unicast_retry_delay_ratio(context),
            !d::aeron_driver_context_get_resolver_interface(context).is_null(),
            !name.is_null() && !CStr::from_ptr(name).is_empty(),
        )
    };
    if has_interface && !has_name {
        let message = "aeron.driver.resolver.interface needs aeron.driver.resolver.name";
        return Err(invalid(message.into()));
    }
    if u128::from(delay_ns) * u128::from(ratio) > i64::MAX as u128 {
        return Err(invalid(format!(
            "aeron.nak.unicast.delay ({delay_ns} ns) * aeron.nak.unicast.retry.delay.ratio \
             ({ratio}) exceeds {} ns",
            i64::MAX
        )));
    }
    Ok(())
}

impl Property<'_> {
    /// Set the property with the C driver's setter, unless its name is unknown.
    fn set(&self, variable: &str) -> Result<()> {
        setters! { self, variable:
            // Directory, threads and idle strategies.
            "AERON_DIR" text aeron_driver_context_set_dir;
            "AERON_DIR_WARN_IF_EXISTS" flag aeron_driver_context_set_dir_warn_if_exists;
            "AERON_DIR_DELETE_ON_START" flag aeron_driver_context_set_dir_delete_on_start;
            "AERON_DIR_DELETE_ON_SHUTDOWN" flag aeron_driver_context_set_dir_delete_on_shutdown;
            "AERON_PRINT_CONFIGURATION" flag aeron_driver_context_set_print_configuration;
            "AERON_ENABLE_EXPERIMENTAL_FEATURES"
                flag aeron_driver_context_set_enable_experimental_features;
            "AERON_CONDUCTOR_CPU_AFFINITY"
                count aeron_driver_context_set_conductor_cpu_affinity (-1..=255);
            "AERON_RECEIVER_CPU_AFFINITY"
                count aeron_driver_context_set_receiver_cpu_affinity (-1..=255);
            "AERON_SENDER_CPU_AFFINITY"
                count aeron_driver_context_set_sender_cpu_affinity (-1..=255);
            "AERON_DRIVER_NATIVE_RESOURCE_AGENT_CPU_AFFINITY"
                count aeron_driver_context_set_native_resource_agent_cpu_affinity (-1..=255);
            "AERON_THREAD_AFFINITY_USE_CPUSET_OFFSETS"
                flag aeron_driver_context_set_thread_affinity_use_cpuset_offsets;
            "AERON_THREAD_AFFINITY_FAIL_ON_VALIDATION_ERRORS"
                flag aeron_driver_context_set_thread_affinity_fail_on_validation_errors;

            // Buffers and files.
            "AERON_CONDUCTOR_BUFFER_LENGTH"
                size aeron_driver_context_set_to_conductor_buffer_length (MEBIBYTE + RING_TRAILER..=INT_MAX);
            "AERON_CLIENTS_BUFFER_LENGTH"
                size aeron_driver_context_set_to_clients_buffer_length (MEBIBYTE + BROADCAST_TRAILER..=INT_MAX);
            "AERON_COUNTERS_BUFFER_LENGTH"
                size aeron_driver_context_set_counters_buffer_length (MEBIBYTE..=500 * MEBIBYTE);
            "AERON_ERROR_BUFFER_LENGTH"
                size aeron_driver_context_set_error_buffer_length (4 * MEBIBYTE..=INT_MAX);
            "AERON_LOSS_REPORT_BUFFER_LENGTH"
                size aeron_driver_context_set_loss_report_buffer_length (1_024..=INT_MAX);
            "AERON_TERM_BUFFER_LENGTH"
                size aeron_driver_context_set_term_buffer_length (1_024..=INT_MAX);
            "AERON_IPC_TERM_BUFFER_LENGTH"
                size aeron_driver_context_set_ipc_term_buffer_length (1_024..=INT_MAX);
            "AERON_TERM_BUFFER_SPARSE_FILE" flag aeron_driver_context_set_term_buffer_sparse_file;
            "AERON_PERFORM_STORAGE_CHECKS" flag aeron_driver_context_set_perform_storage_checks;
            "AERON_LOW_FILE_STORE_WARNING_THRESHOLD"
                size aeron_driver_context_set_low_file_store_warning_threshold (0..=i64::MAX);
            "AERON_FILE_PAGE_SIZE" size aeron_driver_context_set_file_page_size (4_096..=INT_MAX);

            // Publications, subscriptions and clients.
            "AERON_MTU_LENGTH"
                size aeron_driver_context_set_mtu_length (DATA_HEADER..=UDP_PAYLOAD_MAX);
            "AERON_IPC_MTU_LENGTH"
                size aeron_driver_context_set_ipc_mtu_length (DATA_HEADER..=UDP_PAYLOAD_MAX);
            "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH"
                size aeron_driver_context_set_ipc_publication_term_window_length (0..=TERM_MAX);
            "AERON_PUBLICATION_TERM_WINDOW_LENGTH"
                size aeron_driver_context_set_publication_term_window_length (0..=TERM_MAX);
            "AERON_RCV_INITIAL_WINDOW_LENGTH"
                size aeron_driver_context_set_rcv_initial_window_length (256..=INT_MAX);
            "AERON_SPIES_SIMULATE_CONNECTION"
                flag aeron_driver_context_set_spies_simulate_connection;
            "AERON_RELIABLE_STREAM" flag aeron_driver_context_set_reliable_stream;
            "AERON_TETHER_SUBSCRIPTIONS" flag aeron_driver_context_set_tether_subscriptions;
            "AERON_REJOIN_STREAM" flag aeron_driver_context_set_rejoin_stream;
            "AERON_DRIVER_CONNECT" flag aeron_driver_context_set_connect_enabled;
            "AERON_DRIVER_STREAM_SESSION_LIMIT"
                count aeron_driver_context_set_stream_session_limit (1..=INT_MAX);
            "AERON_DRIVER_RESOURCE_FREE_LIMIT"
                count aeron_driver_context_set_resource_free_limit (1..=INT_MAX);

            // Times.
            "AERON_DRIVER_TIMEOUT" count aeron_driver_context_set_driver_timeout_ms (0..=i64::MAX);
            "AERON_CLIENT_LIVENESS_TIMEOUT"
                duration aeron_driver_context_set_client_liveness_timeout_ns (MICROSECOND);
            "AERON_PUBLICATION_LINGER_TIMEOUT"
                duration aeron_driver_context_set_publication_linger_timeout_ns (MICROSECOND);
            "AERON_PUBLICATION_UNBLOCK_TIMEOUT"
                duration aeron_driver_context_set_publication_unblock_timeout_ns (MICROSECOND);
            "AERON_PUBLICATION_CONNECTION_TIMEOUT"
                duration aeron_driver_context_set_publication_connection_timeout_ns (MICROSECOND);
            "AERON_IMAGE_LIVENESS_TIMEOUT"
                duration aeron_driver_context_set_image_liveness_timeout_ns (MICROSECOND);
            "AERON_RCV_STATUS_MESSAGE_TIMEOUT"
                duration aeron_driver_context_set_rcv_status_message_timeout_ns (MICROSECOND);
            "AERON_TIMER_INTERVAL"
                duration aeron_driver_context_set_timer_interval_ns (MICROSECOND);
            "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT"
                duration aeron_driver_context_set_counters_free_to_reuse_timeout_ns (0);
            "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT"
                duration aeron_driver_context_set_untethered_window_limit_timeout_ns (0);
            "AERON_UNTETHERED_LINGER_TIMEOUT"
                duration aeron_driver_context_set_untethered_linger_timeout_ns (0);
            "AERON_UNTETHERED_RESTING_TIMEOUT"
                duration aeron_driver_context_set_untethered_resting_timeout_ns (0);
            "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD"
                threshold aeron_driver_context_set_conductor_cycle_threshold_ns;
            "AERON_DRIVER_SENDER_CYCLE_THRESHOLD"
                threshold aeron_driver_context_set_sender_cycle_threshold_ns;
            "AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD"
                threshold aeron_driver_context_set_receiver_cycle_threshold_ns;
            "AERON_DRIVER_NAME_RESOLVER_THRESHOLD"
                threshold aeron_driver_context_set_name_resolver_threshold_ns;
        }
        match variable {
            // Directory, threads and idle strategies.
            "AERON_THREADING_MODE" => self.choice(
                d::aeron_driver_context_set_threading_mode,
                &[
                    (
                        "SHARED",
                        d::aeron_threading_mode_t::AERON_THREADING_MODE_SHARED,
                    ),
                    (
                        "SHARED_NETWORK",
                        d::aeron_threading_mode_t::AERON_THREADING_MODE_SHARED_NETWORK,
                    ),
                    (
                        "DEDICATED",
                        d::aeron_threading_mode_t::AERON_THREADING_MODE_DEDICATED,
                    ),
                ],
            ),
            "AERON_THREAD_NAMING" => self.choice(
                d::aeron_driver_context_set_thread_naming,
                &[
                    (
                        "classic",
                        d::aeron_thread_naming_t::AERON_THREAD_NAMING_CLASSIC,
                    ),
                    ("new", d::aeron_thread_naming_t::AERON_THREAD_NAMING_NEW),
                ],
            ),
            "AERON_CONDUCTOR_IDLE_STRATEGY" | "AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS" => self
                .idle_strategy(
                    variable,
                    (
                        d::aeron_driver_context_set_conductor_idle_strategy,
                        d::aeron_driver_context_set_conductor_idle_strategy_init_args,
                        d::aeron_driver_context_get_conductor_idle_strategy,
                    ),
                ),
            "AERON_SENDER_IDLE_STRATEGY" | "AERON_SENDER_IDLE_STRATEGY_INIT_ARGS" => self
                .idle_strategy(
                    variable,
                    (
                        d::aeron_driver_context_set_sender_idle_strategy,
                        d::aeron_driver_context_set_sender_idle_strategy_init_args,
                        d::aeron_driver_context_get_sender_idle_strategy,
                    ),
                ),
            "AERON_RECEIVER_IDLE_STRATEGY" | "AERON_RECEIVER_IDLE_STRATEGY_INIT_ARGS" => self
                .idle_strategy(
                    variable,
                    (
                        d::aeron_driver_context_set_receiver_idle_strategy,
                        d::aeron_driver_context_set_receiver_idle_strategy_init_args,
                        d::aeron_driver_context_get_receiver_idle_strategy,
                    ),
                ),
            "AERON_SHARED_IDLE_STRATEGY" | "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS" => self
                .idle_strategy(
                    variable,
                    (
                        d::aeron_driver_context_set_shared_idle_strategy,
                        d::aeron_driver_context_set_shared_idle_strategy_init_args,
                        d::aeron_driver_context_get_shared_idle_strategy,
                    ),
                ),
            "AERON_SHAREDNETWORK_IDLE_STRATEGY" | "AERON_SHAREDNETWORK_IDLE_STRATEGY_INIT_ARGS" => {
                self.idle_strategy(
                    variable,
                    (
                        d::aeron_driver_context_set_sharednetwork_idle_strategy,
                        d::aeron_driver_context_set_sharednetwork_idle_strategy_init_args,
                        d::aeron_driver_context_get_sharednetwork_idle_strategy,
                    ),
                )
            }
            "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY"
            | "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY_INIT_ARGS" => self.idle_strategy(
                variable,
                (
                    d::aeron_driver_context_set_native_resource_agent_idle_strategy,
                    d::aeron_driver_context_set_native_resource_agent_idle_strategy_init_args,
                    d::aeron_driver_context_get_native_resource_agent_idle_strategy,
                ),
            ),
            "AERON_AGENT_ON_START_FUNCTION" => {
                let function = self.load(d::aeron_agent_on_start_load)?;
                // SAFETY: the context is valid while `apply` runs.
                self.done(unsafe {
                    d::aeron_driver_context_set_agent_on_start_function(
                        self.context,
                        function,
                        null_mut(),
                    )
                })
            }
            "AERON_DRIVER_TERMINATION_VALIDATOR" => {
                let function = self.load(aeron_driver_termination_validator_load)?;
                // SAFETY: as above.
                self.done(unsafe {
                    d::aeron_driver_context_set_driver_termination_validator(
                        self.context,
                        function,
                        null_mut(),
                    )
                })
            }

            // Publications, subscriptions and clients.
            "AERON_PUBLICATION_RESERVED_SESSION_ID_LOW" => self.count(
                d::aeron_driver_context_set_publication_reserved_session_id_low,
                i32::MIN.into()..=INT_MAX,
            ),
            "AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH" => self.count(
                d::aeron_driver_context_set_publication_reserved_session_id_high,
                i32::MIN.into()..=INT_MAX,
            ),

            // Times.
            _ => self.set_of_network(variable),
        }
    }
}

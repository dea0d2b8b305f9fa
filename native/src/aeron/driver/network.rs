//! Properties of the C driver that concern the network: sockets, loss, flow control and names.

use super::property::{Property, setters};
use crate::errors::Result;
use rusteron_media_driver::bindings as d;

const INT_MAX: i64 = i32::MAX as i64;
const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000_000;

/// Beginnings of variables that only the environment can set: test tools, logging, plug-ins.
const ONLY_IN_ENVIRONMENT: [&str; 5] = [
    "AERON_CONDUCTOR_UDP_CHANNEL_",
    "AERON_CUBICCONGESTIONCONTROL_",
    "AERON_DEBUG_",
    "AERON_EVENT_LOG",
    "AERON_UDP_CHANNEL_",
];

impl Property<'_> {
    /// As `set`, for the network.
    pub fn set_of_network(&self, variable: &str) -> Result<()> {
        setters! { self, variable:
            "AERON_SOCKET_SO_RCVBUF" size aeron_driver_context_set_socket_so_rcvbuf (0..=INT_MAX);
            "AERON_SOCKET_SO_SNDBUF" size aeron_driver_context_set_socket_so_sndbuf (0..=INT_MAX);
            "AERON_SOCKET_MULTICAST_TTL"
                count aeron_driver_context_set_socket_multicast_ttl (0..=255);
            "AERON_SOCKET_TOS" count aeron_driver_context_set_socket_tos (-1..=255);
            "AERON_SEND_TO_STATUS_POLL_RATIO"
                count aeron_driver_context_set_send_to_status_poll_ratio (1..=INT_MAX);
            "AERON_RECEIVER_POLL_TO_SLOW_WORK_RATIO"
                count aeron_driver_context_set_receiver_poll_to_slow_work_ratio (1..=INT_MAX);
            "AERON_RECEIVER_IO_VECTOR_CAPACITY"
                count aeron_driver_context_set_receiver_io_vector_capacity (1..=64);
            "AERON_SENDER_IO_VECTOR_CAPACITY"
                count aeron_driver_context_set_sender_io_vector_capacity (1..=64);
            "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND"
                count aeron_driver_context_set_network_publication_max_messages_per_send (1..=64);
            "AERON_UDP_CHANNEL_TRANSPORT_POLLER_ITERATION_THRESHOLD"
                count aeron_driver_context_set_udp_channel_transport_poller_iteration_threshold (0..=i64::MAX);
            "AERON_UDP_CHANNEL_TRANSPORT_POLLER_SOCKET_POLL_LIMIT"
                count aeron_driver_context_set_udp_channel_transport_poller_socket_poll_limit (1..=16);
            "AERON_SENDER_WILDCARD_PORT_RANGE"
                ports aeron_driver_context_set_sender_wildcard_port_range;
            "AERON_RECEIVER_WILDCARD_PORT_RANGE"
                ports aeron_driver_context_set_receiver_wildcard_port_range;
            "AERON_MAX_RESEND" count aeron_driver_context_set_max_resend (1..=256);
            "AERON_RETRANSMIT_UNICAST_DELAY"
                duration aeron_driver_context_set_retransmit_unicast_delay_ns (0);
            "AERON_RETRANSMIT_UNICAST_LINGER"
                duration aeron_driver_context_set_retransmit_unicast_linger_ns (MICROSECOND);
            "AERON_NAK_MULTICAST_GROUP_SIZE"
                count aeron_driver_context_set_nak_multicast_group_size (1..=INT_MAX);
            "AERON_NAK_MULTICAST_MAX_BACKOFF"
                duration aeron_driver_context_set_nak_multicast_max_backoff_ns (MICROSECOND);
            "AERON_NAK_UNICAST_DELAY"
                duration aeron_driver_context_set_nak_unicast_delay_ns (MICROSECOND);
            "AERON_NAK_UNICAST_RETRY_DELAY_RATIO"
                count aeron_driver_context_set_nak_unicast_retry_delay_ratio (1..=i64::MAX);
            "AERON_FLOW_CONTROL_GROUP_TAG"
                count aeron_driver_context_set_flow_control_group_tag (i64::MIN..=i64::MAX);
            "AERON_FLOW_CONTROL_GROUP_MIN_SIZE"
                count aeron_driver_context_set_flow_control_group_min_size (0..=INT_MAX);
            "AERON_FLOW_CONTROL_RECEIVER_TIMEOUT"
                duration aeron_driver_context_set_flow_control_receiver_timeout_ns (0);

            // Name resolution.
            "AERON_NAME_RESOLVER_INIT_ARGS" text aeron_driver_context_set_name_resolver_init_args;
            "AERON_DRIVER_RESOLVER_NAME" text aeron_driver_context_set_resolver_name;
            "AERON_DRIVER_RESOLVER_INTERFACE" text aeron_driver_context_set_resolver_interface;
            "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR"
                text aeron_driver_context_set_resolver_bootstrap_neighbor;
            "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT"
                duration aeron_driver_context_set_resolver_neighbor_timeout_ns (MILLISECOND);
            "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL"
                duration aeron_driver_context_set_self_resolution_interval_ns (MILLISECOND);
            "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL"
                duration aeron_driver_context_set_resolver_neighbor_resolution_interval_ns (MILLISECOND);
            "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL"
                duration aeron_driver_context_set_resolver_bootstrap_neighbor_resolution_interval_ns (MILLISECOND);
            "AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL"
                duration aeron_driver_context_set_re_resolution_check_interval_ns (0);

            // The C driver has no setter for these, or reads them after its context was created.
        }
        match variable {
            "AERON_UNICAST_FLOWCONTROL_SUPPLIER" => {
                let supplier = self.load(d::aeron_flow_control_strategy_supplier_load)?;
                self.call(
                    d::aeron_driver_context_set_unicast_flowcontrol_supplier,
                    supplier,
                )
            }
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER" => {
                let supplier = self.load(d::aeron_flow_control_strategy_supplier_load)?;
                self.call(
                    d::aeron_driver_context_set_multicast_flowcontrol_supplier,
                    supplier,
                )
            }
            "AERON_CONGESTIONCONTROL_SUPPLIER" => {
                let supplier = self.load(d::aeron_congestion_control_strategy_supplier_load)?;
                self.call(
                    d::aeron_driver_context_set_congestioncontrol_supplier,
                    supplier,
                )
            }
            "AERON_RECEIVER_GROUP_CONSIDERATION" => self.choice(
                d::aeron_driver_context_set_receiver_group_consideration,
                &[
                    ("true", d::aeron_inferable_boolean_t::AERON_FORCE_TRUE),
                    ("false", d::aeron_inferable_boolean_t::AERON_FORCE_FALSE),
                    ("infer", d::aeron_inferable_boolean_t::AERON_INFER),
                ],
            ),
            "AERON_RECEIVER_GROUP_TAG" => {
                let tag = self.integer(i64::MIN..=i64::MAX)?;
                // SAFETY: the context is valid while `apply` runs.
                self.done(unsafe {
                    d::aeron_driver_context_set_receiver_group_tag(self.context, true, tag)
                })
            }

            // Name resolution.
            "AERON_NAME_RESOLVER_SUPPLIER" => {
                let supplier = self.load(d::aeron_name_resolver_supplier_load)?;
                self.call(d::aeron_driver_context_set_name_resolver_supplier, supplier)
            }

            // The C driver has no setter for these, or reads them after its context was created.
            "AERON_DRIVER_DYNAMIC_LIBRARIES" => Err(self.expected("none: it loads no libraries")),
            _ if ONLY_IN_ENVIRONMENT
                .iter()
                .any(|prefix| variable.starts_with(prefix)) =>
            {
                self.only_in_environment(variable)
            }
            _ => Ok(()),
        }
    }
}

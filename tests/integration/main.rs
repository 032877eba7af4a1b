//! One module per capability.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they skip"
)]

mod args;
mod assistant;
mod assistant_cancel;
mod assistant_state;
mod assistant_support;
mod dialects;
mod durable;
mod durable_model;
mod errors;
mod guide;
mod macro_actions;
mod macro_arguments;
mod macro_blocks;
mod macro_constraints;
mod macro_docs;
mod macro_functions;
mod macro_output;
mod macro_policy;
mod macro_results;
mod macro_set;
mod macro_signatures;
mod macro_state;
mod macro_structs;
mod macro_support;
mod macro_validate;
mod mcp_client;
mod mcp_connect;
mod mcp_everything;
mod mcp_mock;
mod mcp_server;
mod mcp_support;
mod messages;
mod models;
mod proof_schemas;
mod proof_slips;
mod proof_types;
mod provider_catalogue;
mod provider_cuts;
mod provider_faults;
mod provider_own;
mod provider_peers;
mod provider_protocols;
mod provider_recordings;
mod provider_support;
mod provider_transport;
mod registry;
mod runtime_approvals;
mod runtime_core;
mod runtime_drivers;
mod runtime_faults;
mod runtime_misbehaviour;
mod runtime_models;
mod runtime_observe;
mod runtime_record;
mod runtime_scenarios;
mod runtime_steering;
mod runtime_traces;
mod runtime_turn_tools;
mod store;
mod store_cancel;
mod store_faults;
mod store_kill;
mod store_session;
mod store_support;
mod testing_cassettes;
mod testing_models;
mod tool_builder;
mod tool_combine;
mod tool_context;
mod tool_lint;
mod trace_support;

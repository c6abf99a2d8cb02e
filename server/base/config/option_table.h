// SPDX-License-Identifier: MIT
//
// The option table: every option that the server accepts.
//
// Invariants: row i of option_table() is OptionId i for i < kOptionIdCount; the later rows are
// options of other servers without effect here.
// Thread-safe: the tables are built once, at first use, and never change.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/config/option.h"

namespace server {

const std::vector<Option>& option_table();
const Option& option_row(OptionId id);

// Finds an option by its name or an alias; both are case-insensitive. Returns the row's index in
// option_table().
std::optional<size_t> find_option(std::string_view name);

// These functions return the parts of the table that are defined in rows/.
std::vector<Option> memory_options();
std::vector<Option> cluster_options();
// Returns bind-source-addr, the options that select how SIGINT and SIGTERM end the server, and the
// options for tests.
std::vector<Option> test_options();
std::vector<Option> replica_options();
std::vector<Option> leader_options();

// Returns the directives of redis.conf 7.0 that are accepted so that existing files load. Defined
// in compatibility_table.cpp.
std::vector<Option> compatibility_options();
// Returns the options without effect from other releases of Redis and from Valkey. Defined in
// rows/newer_options.cpp.
std::vector<Option> newer_options();
// Returns the unsupported directives that restrict access, or that select a file to load. A start
// with any value but the default fails. Defined in rows/refused_options.cpp.
std::vector<Option> refused_options();
// Returns why values that are valid one by one cannot be used together; empty if they can.
// `text_of` returns the value of an option.
std::string_view combination_fault(const std::function<std::string(std::string_view)>& text_of);

// Returns the module that a directive such as `search-workers` configures; empty if it belongs to
// no known module.
std::string_view foreign_module_of(std::string_view name);

}  // namespace server

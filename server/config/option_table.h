// SPDX-License-Identifier: MIT
//
// The option table: every directive the server knows.
//
// Invariants: row i of option_table() is OptionId i for i < kOptionIdCount; after those come the
// directives that only Redis gives a meaning.
// Thread safety: the tables are built once, at first use, and never change.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/option.h"

namespace server {

const std::vector<Option>& option_table();
const Option& option_row(OptionId id);

// Finds an option by name or alias in any case. The index is the row's place in option_table().
std::optional<size_t> find_option(std::string_view name);

// The parts of the table that lie in rows/.
std::vector<Option> memory_options();
std::vector<Option> cluster_options();
// Options that Redis' tests need, and how signals end the server.
std::vector<Option> test_options();
std::vector<Option> replica_options();
std::vector<Option> leader_options();

// Directives of redis.conf 7.0 that are accepted so that existing files load. In
// compatibility_table.cpp.
std::vector<Option> compatibility_options();
// The same of other releases of Redis and of Valkey. In rows/newer_options.cpp.
std::vector<Option> newer_options();
// Directives that restrict access or choose the data, and that this server cannot carry out. Any
// value but the default ends the start. In rows/refused_options.cpp.
std::vector<Option> refused_options();
// Why values that are sound one by one cannot be used together; empty when they can. `text_of`
// returns the value of an option.
std::string_view combination_fault(const std::function<std::string(std::string_view)>& text_of);

// The module that a directive such as `search-workers` belongs to; empty for none that others have.
std::string_view foreign_module_of(std::string_view name);

}  // namespace server

// SPDX-License-Identifier: MIT
//
// history_json: converts a History to JSON, for the dashboard.
//
// Thread safety: pure functions.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>

namespace server {
class Registry;
}

namespace server::admin {

class History;

// Returns the stored values of the seconds later than `after_ms`, as {"names": […], "rows":
// [[time_ms, value, …], …]}.
boost::json::object history_json(const History& history, int64_t after_ms);

// Returns {"ends_ms": […], "commands": {name: {"calls": […], "p99": […]}}}, with one value per
// interval. Only commands that ran within the last hour are listed.
boost::json::object command_history_json(const History& history, const Registry& registry);

}  // namespace server::admin

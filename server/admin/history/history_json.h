// SPDX-License-Identifier: MIT
//
// A History as JSON, for the dashboard.
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

// {"names": […], "rows": [[time_ms, figure, …], …]}: the seconds later than `after_ms`.
boost::json::object history_json(const History& history, int64_t after_ms);

// {"ends_ms": […], "commands": {name: {"calls": […], "p99": […]}}}: of each interval, the commands
// that ran within the hour.
boost::json::object command_history_json(const History& history, const Registry& registry);

}  // namespace server::admin

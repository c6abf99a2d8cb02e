// SPDX-License-Identifier: MIT
#include "server/admin/history/history_json.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>

#include "server/admin/figures/readable.h"
#include "server/admin/history/history.h"
#include "server/dispatch/registry.h"

namespace server::admin {
namespace {

namespace json = boost::json;

// The value is rounded to four digits, which suffice for a chart and make shorter JSON than the
// full precision.
json::value short_number(float value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double rounding = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(value))));
  const double rounded = std::round(value * rounding) / rounding;
  if (std::fabs(rounded) >= 1000) return std::llround(rounded);
  return rounded;
}

bool ran(const History& history, size_t command) {
  const auto& intervals = history.commands();
  return std::any_of(intervals.begin(), intervals.end(),
                     [command](const auto& interval) { return interval[command].calls > 0; });
}

}  // namespace

json::object history_json(const History& history, int64_t after_ms) {
  json::array rows;
  for (const Moment& moment : history.moments()) {
    if (moment.time_ms <= after_ms) continue;
    json::array row;
    row.reserve(1 + kFigureCount);
    row.push_back(moment.time_ms);
    for (const float figure : moment.figures) row.push_back(short_number(figure));
    rows.push_back(std::move(row));
  }
  return {{"names", json::array(kFigureNames.begin(), kFigureNames.end())},
          {"rows", std::move(rows)}};
}

json::object command_history_json(const History& history, const Registry& registry) {
  json::array ends(history.intervals().begin(), history.intervals().end());
  json::object commands;
  for (size_t command = 0; command < registry.size(); ++command) {
    if (!ran(history, command)) continue;
    json::array calls;
    json::array percentiles;
    for (const auto& interval : history.commands()) {
      calls.push_back(short_number(interval[command].calls));
      percentiles.push_back(short_number(interval[command].percentile99_us));
    }
    commands[readable(registry.at(command).full_name)] =
        json::object{{"calls", std::move(calls)}, {"p99", std::move(percentiles)}};
  }
  return {{"ends_ms", std::move(ends)}, {"commands", std::move(commands)}};
}

}  // namespace server::admin

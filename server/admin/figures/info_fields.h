// SPDX-License-Identifier: MIT
//
// InfoField: the table of INFO's numbers, each with the name of its metric.
//
// Invariants: a metric is named once.
// Thread safety: constants.
// Source: https://github.com/oliver006/redis_exporter.
#pragma once

#include <span>
#include <string_view>

namespace server::admin {

struct InfoField {
  std::string_view name;
  std::string_view metric;
  bool is_counter = false;
  double scale = 1;
};

std::span<const InfoField> info_fields();
// INFO's fields of a replica about its leader. The leader's address is a label.
std::span<const InfoField> leader_fields();

}  // namespace server::admin

// SPDX-License-Identifier: MIT
//
// InfoField: the table of INFO's numeric fields and the metric of each field.
//
// Invariants: each metric name occurs once.
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
// Returns the fields that a replica's INFO has about its leader. The leader's address becomes a
// label.
std::span<const InfoField> leader_fields();

}  // namespace server::admin

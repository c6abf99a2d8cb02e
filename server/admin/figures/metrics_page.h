// SPDX-License-Identifier: MIT
//
// The text of /metrics.
//
// Invariants: it passes `promtool check metrics`.
// Thread safety: as Services; the figures are not of one instant.
// Source: https://prometheus.io/docs/instrumenting/exposition_formats/.
#pragma once

#include <string>

#include "server/admin/figures/filter_census.h"
#include "server/admin/figures/info_metrics.h"

namespace server {
struct Services;
}

namespace server::admin {

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// INFO's fields, but for the lists of commands and what has to look at all keys.
InfoFields read_info(Services& services);

// Null figures: there are none yet. Keys are names of filters, which not every user may see.
struct MetricsOptions {
  const CensusFigures* filters = nullptr;
  bool shows_keys = true;
};
std::string metrics_text(Services& services, const MetricsOptions& options);

}  // namespace server::admin

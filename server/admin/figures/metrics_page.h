// SPDX-License-Identifier: MIT
//
// Writes the text of the page /metrics.
//
// Invariants: the page passes `promtool check metrics`.
// Thread safety: any thread may call the functions. The values are read one after another, so they
// may be from different moments.
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

// Returns the fields of INFO and, in a cluster, of CLUSTER INFO. The lists of commands are omitted,
// and so are fields that require a walk over all keys.
InfoFields read_info(Services& services);

// `filters` is null until the first walk over all filters is complete. `shows_keys` is false if the
// user may not see the names of filters.
struct MetricsOptions {
  const CensusFigures* filters = nullptr;
  bool shows_keys = true;
};
std::string metrics_text(Services& services, const MetricsOptions& options);

}  // namespace server::admin

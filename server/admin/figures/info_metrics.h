// SPDX-License-Identifier: MIT
//
// Writes the fields of INFO as metrics, under the names of prometheus-redis-exporter, so that the
// exporter's dashboards and alerts also work here. Metrics that only Bloomery has begin with
// bloomery_.
//
// Invariants: the metric of a single field is present only if INFO has this field. Names of metrics
// and labels are valid, and label values are UTF-8.
// Thread safety: pure functions.
// Source: https://github.com/oliver006/redis_exporter; names measured on Debian's version 1.45.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace server::admin {

using Families = std::vector<prometheus::MetricFamily>;
// The fields of all sections of INFO, by their names.
using InfoFields = std::map<std::string, std::string, std::less<>>;

InfoFields parse_info(std::string_view text);
Families info_families(const InfoFields& fields);

// Returns a metric family with one value and no labels.
prometheus::MetricFamily family_of(std::string name, std::string help, prometheus::MetricType type,
                                   double value);

}  // namespace server::admin

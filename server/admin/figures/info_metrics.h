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
using Labels = std::vector<prometheus::ClientMetric::Label>;
// The fields of all sections of INFO, by their names.
using InfoFields = std::map<std::string, std::string, std::less<>>;

InfoFields parse_info(std::string_view text);
Families info_families(const InfoFields& fields);

// Adds a value to the metrics of a family of counters, of gauges or without a type.
void add_value(prometheus::MetricFamily& family, double value, Labels labels);

// Returns a metric family with one value.
prometheus::MetricFamily family_of(std::string name, std::string help, prometheus::MetricType type,
                                   double value, Labels labels = {});

}  // namespace server::admin

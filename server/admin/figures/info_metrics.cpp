// SPDX-License-Identifier: MIT
#include "server/admin/figures/info_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/number.h"
#include "server/admin/figures/info_fields.h"
#include "server/admin/figures/readable.h"

namespace server::admin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::optional<double> number_of(std::string_view text) {
  if (text == "ok" || text == "up") return 1;
  if (text == "err" || text == "down" || text == "fail") return 0;
  // These values of the field cluster_topology report faults.
  if (text == "absent" || text == "older" || text == "invalid") return 0;
  if (text.ends_with('%')) text.remove_suffix(1);
  return core::parse_double(text);
}

// promtool requires that the names of counters end in `_total`, and that no other names do. A
// metric whose name breaks this rule is untyped.
MetricType type_of(const InfoField& field) {
  const bool is_total = field.metric.ends_with("_total");
  if (field.is_counter != is_total) return MetricType::Untyped;
  return field.is_counter ? MetricType::Counter : MetricType::Gauge;
}

std::string_view value_of(const InfoFields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

// Parses the parts of "ip=10.0.0.1,port=6379" into names and values.
InfoFields parse_parts(std::string_view text) {
  InfoFields parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    parts.emplace(part.substr(0, equals), part.substr(equals + 1));
  }
  return parts;
}

void add_fields(const InfoFields& fields, std::span<const InfoField> table, const Labels& labels,
                Families& families) {
  for (const InfoField& field : table) {
    const auto value = number_of(value_of(fields, field.name));
    if (!value) continue;
    families.push_back(family_of(std::string(field.metric),
                                 fmt::format("INFO's field {}", field.name), type_of(field),
                                 *value * field.scale, labels));
  }
}

// Adds metrics of fields such as "db0:keys=2,expires=1,avg_ttl=99740". Database 0 is listed even if
// it is empty.
void add_databases(const InfoFields& fields, Families& families) {
  MetricFamily keys{"redis_db_keys", "Keys of a database", MetricType::Gauge, {}};
  MetricFamily expiring{"redis_db_keys_expiring", "Keys with an expiry", MetricType::Gauge, {}};
  MetricFamily ttl{"redis_db_avg_ttl_seconds", "Their mean time to live", MetricType::Gauge, {}};
  const auto add = [&](const std::string& name, const InfoFields& parts) {
    const auto part = [&](std::string_view which) {
      return number_of(value_of(parts, which)).value_or(0);
    };
    add_value(keys, part("keys"), {{"db", name}});
    add_value(expiring, part("expires"), {{"db", name}});
    add_value(ttl, part("avg_ttl") / 1000, {{"db", name}});
  };
  if (!fields.contains("db0")) add("db0", {});
  for (auto i = fields.lower_bound("db"); i != fields.end() && i->first.starts_with("db"); ++i) {
    if (core::parse_int64(std::string_view(i->first).substr(2)))
      add(i->first, parse_parts(i->second));
  }
  families.insert(families.end(), {std::move(keys), std::move(expiring), std::move(ttl)});
}

// Adds metrics of fields such as "slave0:ip=10.0.0.1,port=6379,state=online,offset=14,lag=1".
void add_replicas(const InfoFields& fields, Families& families) {
  MetricFamily offset{"redis_connected_slave_offset_bytes",
                      "How far a replica has acknowledged the stream",
                      MetricType::Gauge,
                      {}};
  MetricFamily lag{"redis_connected_slave_lag_seconds",
                   "Time since a replica's last acknowledgement",
                   MetricType::Gauge,
                   {}};
  for (size_t i = 0;; ++i) {
    const auto found = fields.find(fmt::format("slave{}", i));
    if (found == fields.end()) break;
    const InfoFields parts = parse_parts(found->second);
    const auto label = [&](std::string name, std::string_view part) {
      return ClientMetric::Label{std::move(name), readable(value_of(parts, part))};
    };
    const Labels labels = {label("slave_ip", "ip"), label("slave_port", "port"),
                           label("slave_state", "state")};
    const auto part = [&](std::string_view name) {
      return number_of(value_of(parts, name)).value_or(0);
    };
    add_value(offset, part("offset"), labels);
    add_value(lag, part("lag"), labels);
  }
  if (offset.metric.empty()) return;
  families.insert(families.end(), {std::move(offset), std::move(lag)});
}

// Adds metrics of a replica's link, with the leader's address as labels.
void add_leader(const InfoFields& fields, Families& families) {
  if (!fields.contains("master_host")) return;
  Labels labels = {{"master_host", readable(value_of(fields, "master_host"))},
                   {"master_port", readable(value_of(fields, "master_port"))}};
  add_fields(fields, leader_fields(), labels, families);
  labels.push_back({"read_only", std::string(value_of(fields, "slave_read_only"))});
  families.push_back(family_of("redis_slave_info", "The leader of this replica", MetricType::Gauge,
                               1, std::move(labels)));
}

// Adds metrics of fields such as "errorstat_ERR:count=3".
void add_errors(const InfoFields& fields, Families& families) {
  constexpr std::string_view kPrefix = "errorstat_";
  MetricFamily errors{"redis_errors_total", "Error replies by their code", MetricType::Counter, {}};
  for (auto i = fields.lower_bound(kPrefix); i != fields.end() && i->first.starts_with(kPrefix);
       ++i) {
    const double count = number_of(value_of(parse_parts(i->second), "count")).value_or(0);
    add_value(errors, count, {{"err", readable(i->first.substr(kPrefix.size()))}});
  }
  if (!errors.metric.empty()) families.push_back(std::move(errors));
}

void add_instance(const InfoFields& fields, Families& families) {
  Labels labels;
  for (const std::string_view name :
       {"bloomery_version", "maxmemory_policy", "os", "process_id", "redis_mode", "redis_version",
        "role", "run_id", "tcp_port"}) {
    if (fields.contains(name)) {
      labels.push_back({std::string(name), readable(value_of(fields, name))});
    }
  }
  families.push_back(family_of("redis_instance_info", "What this server is", MetricType::Gauge, 1,
                               std::move(labels)));
}

}  // namespace

InfoFields parse_info(std::string_view text) {
  InfoFields fields;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string_view::npos) continue;
    fields.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return fields;
}

void add_value(MetricFamily& family, double value, Labels labels) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  double& place = family.type == MetricType::Counter ? metric.counter.value
                  : family.type == MetricType::Gauge ? metric.gauge.value
                                                     : metric.untyped.value;
  place = value;
}

MetricFamily family_of(std::string name, std::string help, MetricType type, double value,
                       Labels labels) {
  MetricFamily family{std::move(name), std::move(help), type, {}};
  add_value(family, value, std::move(labels));
  return family;
}

Families info_families(const InfoFields& fields) {
  Families families;
  add_instance(fields, families);
  add_fields(fields, info_fields(), {}, families);
  add_databases(fields, families);
  add_replicas(fields, families);
  add_leader(fields, families);
  add_errors(fields, families);
  return families;
}

}  // namespace server::admin

// SPDX-License-Identifier: MIT
#include "server/admin/figures/metrics_page.h"

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <optional>
#include <sstream>

#include "core/clock.h"
#include "core/keyspace/key_hash.h"
#include "server/admin/figures/cluster_metrics.h"
#include "server/admin/figures/command_metrics.h"
#include "server/admin/figures/readable.h"
#include "server/admin/figures/readiness.h"
#include "server/base/latency/slow_log.h"
#include "server/base/process/process_facts.h"
#include "server/cluster/cluster_state.h"
#include "server/commands/info/info.h"
#include "server/commands/replication/cluster_description.h"
#include "server/commands/services.h"
#include "server/session/observer.h"

namespace server::admin {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

void add(Families& families, Families more) {
  families.insert(families.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
}

void add_gauge(Families& families, std::string name, std::string help, double value) {
  families.push_back(family_of(std::move(name), std::move(help), MetricType::Gauge, value));
}

void add_process(Services& services, Families& families) {
  add_gauge(families, "redis_up", "Whether this server answers", 1);
  add_gauge(families, "redis_start_time_seconds", "When this server was started",
            static_cast<double>(services.facts.started_ms) / 1000);
  add_gauge(families, "redis_config_io_threads", "Threads that serve clients",
            static_cast<double>(services.facts.io_thread_count));
  add_gauge(families, "bloomery_ready", "What /readyz says",
            unready_cause(services).empty() ? 1 : 0);
  const auto& slow_log = services.observer.slow_log();
  const auto newest = slow_log.newest(1);
  add_gauge(families, "redis_slowlog_length", "Entries of the slow log",
            static_cast<double>(slow_log.size()));
  add_gauge(families, "redis_slowlog_last_id", "Id of the newest one",
            newest.empty() ? 0 : static_cast<double>(newest.front()->id));
  add_gauge(families, "redis_last_slow_execution_duration_seconds", "How long it took",
            newest.empty() ? 0 : static_cast<double>(newest.front()->duration_us) / 1e6);
}

void add_filter_sums(const CensusFigures& figures, Families& families) {
  const auto sum = [&](std::string_view name, std::string_view help, uint64_t value) {
    add_gauge(families, std::string(name), std::string(help), static_cast<double>(value));
  };
  sum("bf_bloom_total_memory_bytes", "Bytes of all filters", figures.memory_bytes);
  sum("bf_bloom_num_objects", "Filters", figures.object_count);
  sum("bf_bloom_num_filters_across_objects", "Layers of all filters", figures.layer_count);
  sum("bf_bloom_num_items_across_objects", "Items of all filters", figures.item_count);
  sum("bf_bloom_capacity_across_objects", "Items that their layers take", figures.capacity);
}

// Shortens a long key, because the label occurs once per filter and metric: a name of megabytes
// would make a page of hundreds of megabytes.
std::string key_label(std::string_view key) {
  constexpr size_t kWholeMaxBytes = 256;
  constexpr size_t kBeginBytes = 200;
  if (key.size() <= kWholeMaxBytes) return readable(key);
  return fmt::format("{}... ({} bytes, {:016x})", readable(key.substr(0, kBeginBytes)), key.size(),
                     core::keyspace::hash_key(key, 0));
}

void add_filters(const CensusFigures& figures, Families& families) {
  const auto each = [&](std::string_view name, std::string_view help, auto value_of) {
    MetricFamily family{
        std::string(name),
        fmt::format("{}, of the {} largest filters", help, FilterCensus::kLargestMax),
        MetricType::Gauge,
        {}};
    for (const LargeFilter& filter : figures.largest) {
      const auto value = std::optional(value_of(filter));
      if (!value) continue;
      add_value(family, static_cast<double>(*value),
                {{"db", fmt::format("db{}", filter.database)}, {"key", key_label(filter.key)}});
    }
    if (!family.metric.empty()) families.push_back(std::move(family));
  };
  each("bloomery_filter_memory_bytes", "Bytes", [](auto& filter) { return filter.size_bytes; });
  each("bloomery_filter_items", "Items", [](auto& filter) { return filter.item_count; });
  each("bloomery_filter_capacity_items", "Items that the layers take",
       [](auto& filter) { return filter.capacity; });
  each("bloomery_filter_layers", "Layers", [](auto& filter) { return filter.layer_count; });
  each("bloomery_filter_fill_ratio", "Share of the bits that are set",
       [](auto& filter) { return filter.fill_ratio; });
  each("bloomery_filter_predicted_error_rate", "Chance that an absent item is found",
       [](auto& filter) { return filter.predicted_error_rate; });
  each("bloomery_filter_error_rate", "The error rate asked for",
       [](auto& filter) { return filter.error_rate; });
  // A windowed filter never becomes full, because it drops old items.
  each("bloomery_filter_items_left", "Items that fit before it grows or is full",
       [](auto& filter) { return filter.items_left; });
}

}  // namespace

InfoFields read_info(Services& services) {
  constexpr std::array<std::string_view, 10> kSections = {
      "server",      "clients", "memory",     "persistence", "stats",
      "replication", "cpu",     "errorstats", "cluster",     "keyspace"};
  const info::Source source{services, services.clock.wall_ms(), core::keyspace::Locking::kTake};
  std::string text = info::text_of(source, kSections);
  // Adds the fields of CLUSTER INFO, because Redis' INFO has almost no fields about the cluster.
  const auto view = services.cluster.latest();
  if (view != nullptr) text += cluster_info_text(*view, services.cluster);
  return parse_info(text);
}

std::string metrics_text(Services& services, const MetricsOptions& options) {
  Families families;
  add_process(services, families);
  add(families, info_families(read_info(services)));
  if (const auto view = services.cluster.latest(); view != nullptr) {
    add(families, cluster_families(*view, services.cluster.counters()));
  }
  add(families, command_families(services));
  if (options.filters != nullptr) {
    add_filter_sums(*options.filters, families);
    if (options.shows_keys) add_filters(*options.filters, families);
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return std::move(text).str();
}

}  // namespace server::admin

// SPDX-License-Identifier: MIT
//
// Directives of redis.conf 7.0 that have no effect here. Their values are stored, validated and
// shown as in Redis, so that existing files load and tools can read the values. Names, kinds,
// ranges and defaults are those that redis-server 7.0.15 reports over CONFIG GET and SET.
#include "server/base/config/inert_rows.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {
namespace {

using namespace inert;

constexpr BoolRow kBools[] = {
    {"activedefrag", "", "no", kFree},
    {"activerehashing", "", "yes", kFree},
    {"always-show-logo", "", "no", kFixed},
    {"aof-disable-auto-gc", "", "no", kFree},
    {"aof-rewrite-incremental-fsync", "", "yes", kFree},
    {"cluster-allow-pubsubshard-when-down", "", "yes", kFree},
    {"cluster-allow-replica-migration", "", "yes", kFree},
    {"cluster-replica-no-failover", "cluster-slave-no-failover", "no", kFree},
    {"cluster-require-full-coverage", "", "yes", kFree},
    {"crash-log-enabled", "", "yes", kFree},
    {"crash-memcheck-enabled", "", "yes", kFree},
    {"disable-thp", "", "yes", kFixed},
    {"dynamic-hz", "", "yes", kFree},
    {"io-threads-do-reads", "", "no", kFixed},
    {"jemalloc-bg-thread", "", "yes", kFree},
    {"lazyfree-lazy-eviction", "", "no", kFree},
    {"lazyfree-lazy-expire", "", "no", kFree},
    {"lazyfree-lazy-server-del", "", "no", kFree},
    {"lazyfree-lazy-user-del", "", "no", kFree},
    {"lazyfree-lazy-user-flush", "", "no", kFree},
    {"rdb-del-sync-files", "", "no", kFree},
    {"rdb-save-incremental-fsync", "", "yes", kFree},
    {"replica-ignore-disk-write-errors", "", "no", kFree},
    {"replica-lazy-flush", "slave-lazy-flush", "no", kFree},
    {"set-proc-title", "", "yes", kFixed},
    {"syslog-enabled", "", "no", kFixed},
    {"tls-cluster", "", "no", kFree},
};

constexpr NumberRow kIntegers[] = {
    {"active-defrag-cycle-max", "", "25", 1, 99, kFree},
    {"active-defrag-cycle-min", "", "1", 1, 99, kFree},
    {"active-defrag-max-scan-fields", "", "1000", 1, kInt64Max, kFree},
    {"active-defrag-threshold-lower", "", "10", 0, 1000, kFree},
    {"active-defrag-threshold-upper", "", "100", 0, 1000, kFree},
    {"busy-reply-threshold", "lua-time-limit", "5000", 0, kInt64Max, kFree},
    {"cluster-announce-bus-port", "", "0", 0, 65535, kFree},
    {"cluster-migration-barrier", "", "1", 0, kInt32Max, kFree},
    {"cluster-port", "", "0", 0, 65535, kFixed},
    {"cluster-replica-validity-factor", "cluster-slave-validity-factor", "10", 0, kInt32Max, kFree},
    {"hash-max-listpack-entries", "hash-max-ziplist-entries", "512", 0, kInt64Max, kFree},
    {"list-compress-depth", "", "0", 0, kInt32Max, kFree},
    {"list-max-listpack-size", "list-max-ziplist-size", "-2", kInt32Min, kInt32Max, kFree},
    {"set-max-intset-entries", "", "512", 0, kInt64Max, kFree},
    {"socket-mark-id", "", "0", 0, kUint32Max, kFixed},
    {"stream-node-max-entries", "", "100", 0, kInt64Max, kFree},
    {"zset-max-listpack-entries", "zset-max-ziplist-entries", "128", 0, kInt64Max, kFree},
};

constexpr NumberRow kSizes[] = {
    {"active-defrag-ignore-bytes", "", "104857600", 1, kInt64Max, kFree},
    {"cluster-link-sendbuf-limit", "", "0", 0, kInt64Max, kFree},
    {"hash-max-listpack-value", "hash-max-ziplist-value", "64", 0, kInt64Max, kFree},
    {"hll-sparse-max-bytes", "", "3000", 0, kInt64Max, kFree},
    {"stream-node-max-bytes", "", "4096", 0, kInt64Max, kFree},
    {"zset-max-listpack-value", "zset-max-ziplist-value", "64", 0, kInt64Max, kFree},
};

const EnumRow kEnums[] = {
    {"enable-module-command", "no", {"no", "yes", "local"}, kFixed},
    {"oom-score-adj", "no", {"no", "yes", "relative", "absolute"}, kFree},
    {"propagation-error-behavior", "ignore", {"ignore", "panic", "panic-on-replicas"}, kFree},
    {"repl-diskless-load",
     "disabled",
     {"disabled", "on-empty-db", "swapdb", "flush-before-load", "flushdb"},
     kFree},
    {"sanitize-dump-payload", "no", {"no", "yes", "clients"}, kFree},
    {"syslog-facility",
     "local0",
     {"user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"},
     kFixed},
};

constexpr TextRow kTexts[] = {
    {"aof_rewrite_cpulist", "aof-rewrite-cpulist", "", kFixed, kOneWord, kPublic},
    {"bgsave_cpulist", "bgsave-cpulist", "", kFixed, kOneWord, kPublic},
    {"bio_cpulist", "bio-cpulist", "", kFixed, kOneWord, kPublic},
    {"cluster-config-file", "", "nodes.conf", kFixed, kOneWord, kPublic},
    {"ignore-warnings", "", "", kFree, kOneWord, kPublic},
    {"proc-title-template", "", "{title} {listen-addr} {server-mode}", kFree, kOneWord, kPublic},
    {"server_cpulist", "server-cpulist", "", kFixed, kOneWord, kPublic},
    {"syslog-ident", "", "redis", kFixed, kOneWord, kPublic},
};

// Redis' test suite sets loading-process-events-interval-bytes. The option has no effect here,
// because a separate thread loads data while the I/O threads serve clients.
constexpr NumberRow kHiddenIntegers[] = {
    {"loading-process-events-interval-bytes", "", "2097152", 1024, kInt32Max, kFree},
};

Option oom_score_values() {
  return {.name = "oom-score-adj-values",
          .kind = OptionKind::kList,
          .default_text = "0 200 800",
          .multi_argument = true,
          .inert = true,
          .parser = parse_oom_score_values};
}

}  // namespace

std::vector<Option> compatibility_options() {
  std::vector<Option> options = options_of({kBools, kIntegers, kSizes, kEnums, kTexts});
  options.push_back(oom_score_values());
  for (Option& option : options_of({{}, kHiddenIntegers, {}, {}, {}})) {
    option.hidden = true;
    options.push_back(std::move(option));
  }
  return options;
}

}  // namespace server

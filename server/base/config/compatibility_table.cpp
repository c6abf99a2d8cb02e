// SPDX-License-Identifier: MIT
//
// Directives of redis.conf 7.0 that have no effect here. Their values are stored, validated and
// shown as in Redis, so that existing files load and tools can read the values. Names, kinds,
// ranges and defaults are those that redis-server 7.0.15 reports over CONFIG GET and SET.
#include "server/base/config/option_rows.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {
namespace {

using namespace rows;

std::vector<Option> redis_flags() {
  return {
      flag("activedefrag", "no"),
      flag("activerehashing", "yes"),
      flag("always-show-logo", "no", {.mutability = kImmutable}),
      flag("aof-disable-auto-gc", "no"),
      flag("aof-rewrite-incremental-fsync", "yes"),
      flag("cluster-allow-pubsubshard-when-down", "yes"),
      flag("cluster-allow-replica-migration", "yes"),
      flag("cluster-replica-no-failover", "no", {.aliases = {"cluster-slave-no-failover"}}),
      flag("cluster-require-full-coverage", "yes"),
      flag("crash-log-enabled", "yes"),
      flag("crash-memcheck-enabled", "yes"),
      flag("disable-thp", "yes", {.mutability = kImmutable}),
      flag("dynamic-hz", "yes"),
      flag("io-threads-do-reads", "no", {.mutability = kImmutable}),
      flag("jemalloc-bg-thread", "yes"),
      flag("lazyfree-lazy-eviction", "no"),
      flag("lazyfree-lazy-expire", "no"),
      flag("lazyfree-lazy-server-del", "no"),
      flag("lazyfree-lazy-user-del", "no"),
      flag("lazyfree-lazy-user-flush", "no"),
      flag("rdb-del-sync-files", "no"),
      flag("rdb-save-incremental-fsync", "yes"),
      flag("replica-ignore-disk-write-errors", "no"),
      flag("replica-lazy-flush", "no", {.aliases = {"slave-lazy-flush"}}),
      flag("set-proc-title", "yes", {.mutability = kImmutable}),
      flag("syslog-enabled", "no", {.mutability = kImmutable}),
      flag("tls-cluster", "no"),
  };
}

std::vector<Option> redis_numbers() {
  return {
      integer("active-defrag-cycle-max", "25", 1, 99),
      integer("active-defrag-cycle-min", "1", 1, 99),
      integer("active-defrag-max-scan-fields", "1000", 1, kInt64Max),
      integer("active-defrag-threshold-lower", "10", 0, 1000),
      integer("active-defrag-threshold-upper", "100", 0, 1000),
      integer("busy-reply-threshold", "5000", 0, kInt64Max, {.aliases = {"lua-time-limit"}}),
      integer("cluster-announce-bus-port", "0", 0, 65535),
      integer("cluster-migration-barrier", "1", 0, kInt32Max),
      integer("cluster-port", "0", 0, 65535, {.mutability = kImmutable}),
      integer("cluster-replica-validity-factor", "10", 0, kInt32Max,
              {.aliases = {"cluster-slave-validity-factor"}}),
      integer("hash-max-listpack-entries", "512", 0, kInt64Max,
              {.aliases = {"hash-max-ziplist-entries"}}),
      integer("list-compress-depth", "0", 0, kInt32Max),
      integer("list-max-listpack-size", "-2", kInt32Min, kInt32Max,
              {.aliases = {"list-max-ziplist-size"}}),
      integer("set-max-intset-entries", "512", 0, kInt64Max),
      integer("socket-mark-id", "0", 0, kUint32Max, {.mutability = kImmutable}),
      integer("stream-node-max-entries", "100", 0, kInt64Max),
      integer("zset-max-listpack-entries", "128", 0, kInt64Max,
              {.aliases = {"zset-max-ziplist-entries"}}),
      bytes("active-defrag-ignore-bytes", "104857600", {.min = 1}),
      bytes("cluster-link-sendbuf-limit", "0"),
      bytes("hash-max-listpack-value", "64", {.aliases = {"hash-max-ziplist-value"}}),
      bytes("hll-sparse-max-bytes", "3000"),
      bytes("stream-node-max-bytes", "4096"),
      bytes("zset-max-listpack-value", "64", {.aliases = {"zset-max-ziplist-value"}}),
  };
}

std::vector<Option> redis_texts() {
  return {
      choice("enable-module-command", "no", {"no", "yes", "local"}, {.mutability = kImmutable}),
      choice("oom-score-adj", "no", {"no", "yes", "relative", "absolute"}),
      choice("propagation-error-behavior", "ignore", {"ignore", "panic", "panic-on-replicas"}),
      choice("repl-diskless-load", "disabled",
             {"disabled", "on-empty-db", "swapdb", "flush-before-load", "flushdb"}),
      choice("sanitize-dump-payload", "no", {"no", "yes", "clients"}),
      choice(
          "syslog-facility", "local0",
          {"user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"},
          {.mutability = kImmutable}),
      text("aof_rewrite_cpulist", {.aliases = {"aof-rewrite-cpulist"}, .mutability = kImmutable}),
      text("bgsave_cpulist", {.aliases = {"bgsave-cpulist"}, .mutability = kImmutable}),
      text("bio_cpulist", {.aliases = {"bio-cpulist"}, .mutability = kImmutable}),
      text("cluster-config-file", {.default_text = "nodes.conf", .mutability = kImmutable}),
      text("ignore-warnings"),
      text("proc-title-template", {.default_text = "{title} {listen-addr} {server-mode}"}),
      text("server_cpulist", {.aliases = {"server-cpulist"}, .mutability = kImmutable}),
      text("syslog-ident", {.default_text = "redis", .mutability = kImmutable}),
      list("oom-score-adj-values", {.default_text = "0 200 800", .parser = parse_oom_score_values}),
      // Redis' test suite sets loading-process-events-interval-bytes. The option has no effect
      // here, because a separate thread loads data while the I/O threads serve clients.
      integer("loading-process-events-interval-bytes", "2097152", 1024, kInt32Max,
              {.hidden = true}),
  };
}

}  // namespace

std::vector<Option> compatibility_options() {
  return without_effect({redis_flags(), redis_numbers(), redis_texts()});
}

}  // namespace server

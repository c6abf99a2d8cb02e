// SPDX-License-Identifier: MIT
//
// The rows of options without effect that redis.conf 7.0 does not contain: options of Redis 6.2, of
// Redis 7.2 to 8.10 and of Valkey 8.0 to 9.2. Each default is that of the server that has the
// option.
#include "server/base/config/option_rows.h"
#include "server/base/config/option_table.h"

namespace server {
namespace {

using namespace rows;

std::vector<Option> newer_flags() {
  return {
      flag("auto-failover-on-shutdown", "no"),
      flag("dual-channel-replication-enabled", "no"),
      flag("enable-debug-assert", "no", {.mutability = kImmutable}),
      flag("extended-redis-compatibility", "no"),
      flag("gopher-enabled", "no"),
      // hide-user-data-from-log has no effect: the log never contains items or values. It names a
      // key only where a filter excludes replicas of another kind (foreign_replicas.cpp).
      flag("hide-user-data-from-log", "yes"),
      flag("import-mode", "no"),
      flag("io-threads-always-active", "no"),
      flag("key-memory-histograms", "no"),
      flag("lua-enable-insecure-api", "no", {.aliases = {"lua-enable-deprecated-api"}}),
      flag("mptcp", "no", {.mutability = kImmutable}),
      flag("repl-mptcp", "no"),
      flag("use-exit-on-panic", "no"),
  };
}

std::vector<Option> newer_numbers() {
  return {
      integer("active-defrag-cycle-us", "500", 0, 100'000),
      integer("array-slice-size", "4096", 0, kInt64Max),
      integer("array-sparse-kmax", "10", 0, kInt64Max),
      integer("array-sparse-kmin", "5", 0, kInt64Max),
      integer("backup-sealed-ttl", "0", 0, kInt64Max),
      integer("client-default-resp", "2", 2, 3, {.mutability = kImmutable}),
      integer("cluster-announce-client-port", "0", 0, 65535),
      integer("cluster-announce-client-tls-port", "0", 0, 65535),
      integer("cluster-blacklist-ttl", "60", 0, kInt64Max),
      integer("cluster-compatibility-sample-ratio", "0", 0, 100),
      integer("cluster-databases", "1", 1, kInt32Max, {.mutability = kImmutable}),
      integer("cluster-manual-failover-timeout", "5000", 1, kInt32Max),
      integer("cluster-message-gossip-perc", "10", 1, 100),
      integer("cluster-ping-interval", "0", 0, kInt64Max),
      integer("cluster-slot-migration-log-max-len", "1000", 0, kInt64Max),
      integer("cluster-slot-migration-max-archived-tasks", "32", 1, kInt32Max),
      integer("cluster-slot-migration-sync-buffer-drain-timeout", "60000", 0, kInt64Max),
      integer("cluster-slot-migration-write-pause-timeout", "10000", 0, kInt64Max),
      integer("commandlog-large-reply-max-len", "128", 0, kInt64Max),
      integer("commandlog-large-request-max-len", "128", 0, kInt64Max),
      integer("commandlog-reply-larger-than", "1048576", -1, kInt64Max),
      integer("commandlog-request-larger-than", "1048576", -1, kInt64Max),
      integer("events-per-io-thread", "2", 0, kInt32Max),
      integer("hash-max-template-entries", "0", 0, kInt64Max),
      integer("hash-min-template-entries", "0", 0, kInt64Max),
      integer("hash-rdb-load-max-template-entries", "0", 0, kInt64Max),
      integer("hash-rdb-load-min-template-entries", "0", 0, kInt64Max),
      integer("hash-rdb-load-template-disassembly-threshold", "0", 0, kInt64Max),
      integer("lookahead", "16", 1, kInt32Max),
      integer("min-io-threads-avoid-copy-reply", "7", 0, kInt32Max),
      integer("min-string-size-avoid-copy-reply", "16384", 0, kInt64Max),
      integer("min-string-size-avoid-copy-reply-threaded", "65536", 0, kInt64Max),
      integer("prefetch-batch-max-size", "16", 0, 128),
      integer("rdma-completion-vector", "-1", -1, 1024, {.mutability = kImmutable}),
      integer("rdma-port", "0", 0, 65535),
      integer("rdma-rx-size", "1048576", 65536, 16'777'216, {.mutability = kImmutable}),
      integer("set-max-listpack-entries", "128", 0, kInt64Max),
      integer("set-max-listpack-value", "64", 0, kInt64Max),
      integer("slowlog-entry-max-argc", "32", 2, kInt32Max),
      integer("slowlog-entry-max-string-len", "128", 1, kInt64Max),
      integer("stream-idmp-duration", "100", 0, kInt64Max),
      integer("stream-idmp-maxsize", "100", 0, kInt64Max),
      integer("tls-auto-reload-interval", "0", 0, kInt32Max),
      bytes("aof-load-corrupt-tail-max-size", "0"),
      bytes("cluster-slot-migration-handoff-max-lag-bytes", "1048576"),
      bytes("replica-full-sync-buffer-limit", "0"),
      bytes("slot-migration-max-failover-repl-bytes", "0", {.min = -1}),
  };
}

std::vector<Option> newer_texts() {
  return {
      choice("cluster-config-save-behavior", "sync", {"sync", "best-effort"}),
      choice("log-format", "legacy", {"legacy", "logfmt"}),
      choice("log-timestamp-format", "legacy", {"legacy", "iso8601", "milliseconds"}),
      choice("rdb-version-check", "strict", {"strict", "relaxed"}),
      text("backupdirname", {.default_text = "backupdir", .mutability = kImmutable}),
      text("cluster-announce-client-ipv4"),
      text("cluster-announce-client-ipv6"),
      text("cluster-announce-human-nodename"),
      list("cluster-slot-stats-enabled", {.default_text = "no"}),
      text("debug-context"),
      text("hash-seed", {.mutability = kImmutable, .sensitive = true}),
      text("locale-collate"),
      list("rdma-bind"),
      text("req-res-logfile", {.mutability = kImmutable}),
  };
}

struct ModulePrefix {
  std::string_view prefix;
  std::string_view module;
};
// Prefixes of the options of RediSearch, RedisTimeSeries and the Cuckoo filters of Redis 8, and of
// Valkey's modules. The options differ from release to release and have no meaning without the
// module, so only their prefixes are listed.
constexpr ModulePrefix kModulePrefixes[] = {
    {"search-", "search"}, {"ts-", "timeseries"},  {"cf-", "Cuckoo filters"},
    {"search.", "search"}, {"ts.", "timeseries"},  {"cf.", "Cuckoo filters"},
    {"json.", "json"},     {"ldap.", "ldap"},      {"vset-", "vector sets"},
    {"json-", "json"},     {"lua.", "lua engine"}, {"timeseries.", "timeseries"},
};

}  // namespace

std::vector<Option> newer_options() {
  return without_effect({newer_flags(), newer_numbers(), newer_texts()});
}

std::string_view foreign_module_of(std::string_view name) {
  for (const ModulePrefix& row : kModulePrefixes) {
    if (name.starts_with(row.prefix) && name.size() > row.prefix.size()) return row.module;
  }
  return {};
}

}  // namespace server

// SPDX-License-Identifier: MIT
//
// The rows of options without effect that redis.conf 7.0 does not contain: options of Redis 6.2, of
// Redis 7.2 to 8.10 and of Valkey 8.0 to 9.2. Each default is that of the server that has the
// option.
#include "server/base/config/inert_rows.h"
#include "server/base/config/option_table.h"

namespace server {
namespace {

using namespace inert;

constexpr BoolRow kNewerBools[] = {
    {"auto-failover-on-shutdown", "", "no", kFree},
    {"dual-channel-replication-enabled", "", "no", kFree},
    {"enable-debug-assert", "", "no", kFixed},
    {"extended-redis-compatibility", "", "no", kFree},
    {"gopher-enabled", "", "no", kFree},
    // hide-user-data-from-log has no effect, because the log never contains keys, items or values.
    {"hide-user-data-from-log", "", "yes", kFree},
    {"import-mode", "", "no", kFree},
    {"io-threads-always-active", "", "no", kFree},
    {"key-memory-histograms", "", "no", kFree},
    {"lua-enable-insecure-api", "lua-enable-deprecated-api", "no", kFree},
    {"mptcp", "", "no", kFixed},
    {"repl-mptcp", "", "no", kFree},
    {"use-exit-on-panic", "", "no", kFree},
};

constexpr NumberRow kNewerIntegers[] = {
    {"active-defrag-cycle-us", "", "500", 0, 100'000, kFree},
    {"array-slice-size", "", "4096", 0, kInt64Max, kFree},
    {"array-sparse-kmax", "", "10", 0, kInt64Max, kFree},
    {"array-sparse-kmin", "", "5", 0, kInt64Max, kFree},
    {"backup-sealed-ttl", "", "0", 0, kInt64Max, kFree},
    {"client-default-resp", "", "2", 2, 3, kFixed},
    {"cluster-announce-client-port", "", "0", 0, 65535, kFree},
    {"cluster-announce-client-tls-port", "", "0", 0, 65535, kFree},
    {"cluster-blacklist-ttl", "", "60", 0, kInt64Max, kFree},
    {"cluster-compatibility-sample-ratio", "", "0", 0, 100, kFree},
    {"cluster-databases", "", "1", 1, kInt32Max, kFixed},
    {"cluster-manual-failover-timeout", "", "5000", 1, kInt32Max, kFree},
    {"cluster-message-gossip-perc", "", "10", 1, 100, kFree},
    {"cluster-ping-interval", "", "0", 0, kInt64Max, kFree},
    {"cluster-slot-migration-log-max-len", "", "1000", 0, kInt64Max, kFree},
    {"cluster-slot-migration-max-archived-tasks", "", "32", 1, kInt32Max, kFree},
    {"cluster-slot-migration-sync-buffer-drain-timeout", "", "60000", 0, kInt64Max, kFree},
    {"cluster-slot-migration-write-pause-timeout", "", "10000", 0, kInt64Max, kFree},
    {"commandlog-large-reply-max-len", "", "128", 0, kInt64Max, kFree},
    {"commandlog-large-request-max-len", "", "128", 0, kInt64Max, kFree},
    {"commandlog-reply-larger-than", "", "1048576", -1, kInt64Max, kFree},
    {"commandlog-request-larger-than", "", "1048576", -1, kInt64Max, kFree},
    {"events-per-io-thread", "", "2", 0, kInt32Max, kFree},
    {"hash-max-template-entries", "", "0", 0, kInt64Max, kFree},
    {"hash-min-template-entries", "", "0", 0, kInt64Max, kFree},
    {"hash-rdb-load-max-template-entries", "", "0", 0, kInt64Max, kFree},
    {"hash-rdb-load-min-template-entries", "", "0", 0, kInt64Max, kFree},
    {"hash-rdb-load-template-disassembly-threshold", "", "0", 0, kInt64Max, kFree},
    {"lookahead", "", "16", 1, kInt32Max, kFree},
    {"min-io-threads-avoid-copy-reply", "", "7", 0, kInt32Max, kFree},
    {"min-string-size-avoid-copy-reply", "", "16384", 0, kInt64Max, kFree},
    {"min-string-size-avoid-copy-reply-threaded", "", "65536", 0, kInt64Max, kFree},
    {"prefetch-batch-max-size", "", "16", 0, 128, kFree},
    {"rdma-completion-vector", "", "-1", -1, 1024, kFixed},
    {"rdma-port", "", "0", 0, 65535, kFree},
    {"rdma-rx-size", "", "1048576", 65536, 16'777'216, kFixed},
    {"set-max-listpack-entries", "", "128", 0, kInt64Max, kFree},
    {"set-max-listpack-value", "", "64", 0, kInt64Max, kFree},
    {"slowlog-entry-max-argc", "", "32", 2, kInt32Max, kFree},
    {"slowlog-entry-max-string-len", "", "128", 1, kInt64Max, kFree},
    {"stream-idmp-duration", "", "100", 0, kInt64Max, kFree},
    {"stream-idmp-maxsize", "", "100", 0, kInt64Max, kFree},
    {"tls-auto-reload-interval", "", "0", 0, kInt32Max, kFree},
};

constexpr NumberRow kNewerSizes[] = {
    {"aof-load-corrupt-tail-max-size", "", "0", 0, kInt64Max, kFree},
    {"cluster-slot-migration-handoff-max-lag-bytes", "", "1048576", 0, kInt64Max, kFree},
    {"replica-full-sync-buffer-limit", "", "0", 0, kInt64Max, kFree},
    {"slot-migration-max-failover-repl-bytes", "", "0", -1, kInt64Max, kFree},
};

const EnumRow kNewerEnums[] = {
    {"cluster-config-save-behavior", "sync", {"sync", "best-effort"}, kFree},
    {"log-format", "legacy", {"legacy", "logfmt"}, kFree},
    {"log-timestamp-format", "legacy", {"legacy", "iso8601", "milliseconds"}, kFree},
    {"rdb-version-check", "strict", {"strict", "relaxed"}, kFree},
};

constexpr TextRow kNewerTexts[] = {
    {"backupdirname", "", "backupdir", kFixed, kOneWord, kPublic},
    {"cluster-announce-client-ipv4", "", "", kFree, kOneWord, kPublic},
    {"cluster-announce-client-ipv6", "", "", kFree, kOneWord, kPublic},
    {"cluster-announce-human-nodename", "", "", kFree, kOneWord, kPublic},
    {"cluster-slot-stats-enabled", "", "no", kFree, kSeveralWords, kPublic},
    {"debug-context", "", "", kFree, kOneWord, kPublic},
    {"hash-seed", "", "", kFixed, kOneWord, kSecret},
    {"locale-collate", "", "", kFree, kOneWord, kPublic},
    {"rdma-bind", "", "", kFree, kSeveralWords, kPublic},
    {"req-res-logfile", "", "", kFixed, kOneWord, kPublic},
};

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
  return inert::options_of({kNewerBools, kNewerIntegers, kNewerSizes, kNewerEnums, kNewerTexts});
}

std::string_view foreign_module_of(std::string_view name) {
  for (const ModulePrefix& row : kModulePrefixes) {
    if (name.starts_with(row.prefix) && name.size() > row.prefix.size()) return row.module;
  }
  return {};
}

}  // namespace server

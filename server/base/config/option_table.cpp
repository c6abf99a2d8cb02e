// SPDX-License-Identifier: MIT
#include "server/base/config/option_table.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "core/bloom/parameters.h"
#include "server/base/config/buffer_limits.h"
#include "server/base/config/special_values.h"
#include "server/base/config/words.h"

namespace server {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr Mutability kImmutable = Mutability::kImmutable;
constexpr Mutability kProtected = Mutability::kProtected;
constexpr Mutability kWithHook = Mutability::kWithHook;

std::string default_io_threads() {
  constexpr unsigned kMost = 8;
  return std::to_string(std::clamp(std::thread::hardware_concurrency(), 1U, kMost));
}

// Returns the working directory of the process; empty if the directory was removed.
std::string start_directory() {
  std::error_code error;
  return std::filesystem::current_path(error).string();
}

std::vector<std::string_view> layout_choices() {
  std::vector<std::string_view> names;
  for (const core::bloom::LayoutRow& row : core::bloom::layout_rows()) names.push_back(row.name);
  return names;
}

std::vector<Option> network_options() {
  return {
      {.name = "bind",
       .kind = OptionKind::kList,
       .default_text = "* -::*",
       .mutability = kWithHook,
       .multi_argument = true,
       .parser = parse_bind},
      {.name = "port",
       .kind = OptionKind::kInteger,
       .default_text = "6379",
       .max = 65535,
       .mutability = kWithHook},
      {.name = "unixsocket", .kind = OptionKind::kString, .mutability = kImmutable},
      {.name = "unixsocketperm",
       .kind = OptionKind::kOctal,
       .default_text = "0",
       .max = 0777,
       .mutability = kImmutable},
      {.name = "unixsocketgroup", .kind = OptionKind::kString, .mutability = kImmutable},
      {.name = "timeout", .kind = OptionKind::kInteger, .default_text = "0", .max = kInt32Max},
      {.name = "tcp-keepalive",
       .kind = OptionKind::kInteger,
       .default_text = "300",
       .max = kInt32Max},
      {.name = "tcp-backlog",
       .kind = OptionKind::kInteger,
       .default_text = "511",
       .max = kInt32Max,
       .mutability = kImmutable},
      {.name = "maxclients",
       .kind = OptionKind::kInteger,
       .default_text = "10000",
       .min = 1,
       .max = kUint32Max},
      {.name = "max-new-connections-per-cycle",
       .kind = OptionKind::kInteger,
       .default_text = "256",
       .min = 1,
       .max = 1000},
      {.name = "max-new-tls-connections-per-cycle",
       .kind = OptionKind::kInteger,
       .default_text = "256",
       .min = 1,
       .max = 1000},
      {.name = "io-threads",
       .kind = OptionKind::kInteger,
       .default_text = default_io_threads(),
       .min = 1,
       .max = 128,
       .mutability = kImmutable},
  };
}

std::vector<Option> security_options() {
  return {
      {.name = "protected-mode", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "requirepass", .kind = OptionKind::kString, .sensitive = true},
      {.name = "aclfile", .kind = OptionKind::kString, .mutability = kImmutable},
      {.name = "acllog-max-len", .kind = OptionKind::kInteger, .default_text = "128"},
      {.name = "acl-pubsub-default",
       .kind = OptionKind::kEnum,
       .default_text = "resetchannels",
       .choices = {"allchannels", "resetchannels"}},
      {.name = "enable-protected-configs",
       .kind = OptionKind::kEnum,
       .default_text = "no",
       .choices = {"no", "yes", "local"},
       .mutability = kImmutable},
  };
}

std::vector<Option> limit_options() {
  return {
      {.name = "proto-max-bulk-len",
       .kind = OptionKind::kMemory,
       .default_text = "536870912",
       .min = kMebibyte},
      {.name = "client-query-buffer-limit",
       .kind = OptionKind::kMemory,
       .default_text = "1073741824",
       .min = kMebibyte},
      {.name = "client-output-buffer-limit",
       .kind = OptionKind::kList,
       .default_text = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
       .multi_argument = true,
       .parser = parse_buffer_limits,
       .line_writer = write_buffer_limits},
  };
}

std::vector<Option> process_options() {
  return {
      {.name = "loglevel",
       .kind = OptionKind::kEnum,
       .default_text = "notice",
       .choices = {"debug", "verbose", "notice", "warning", "nothing"}},
      {.name = "logfile", .kind = OptionKind::kString, .mutability = kImmutable},
      {.name = "pidfile", .kind = OptionKind::kString, .mutability = kImmutable},
      {.name = "dir",
       .kind = OptionKind::kString,
       .default_text = start_directory(),
       .mutability = kProtected,
       .parser = parse_directory},
      {.name = "databases",
       .kind = OptionKind::kInteger,
       .default_text = "16",
       .min = 1,
       .max = kInt32Max,
       .mutability = kImmutable},
      {.name = "hz",
       .kind = OptionKind::kInteger,
       .default_text = "10",
       .max = kInt32Max,
       .parser = parse_hz},
      {.name = "daemonize",
       .kind = OptionKind::kBool,
       .default_text = "no",
       .mutability = kImmutable},
      {.name = "supervised",
       .kind = OptionKind::kEnum,
       .default_text = "no",
       .choices = {"upstart", "systemd", "auto", "no"},
       .mutability = kImmutable},
      {.name = "availability-zone", .kind = OptionKind::kString},
  };
}

std::vector<Option> persistence_options() {
  return {
      {.name = "save",
       .kind = OptionKind::kList,
       .multi_argument = true,
       .may_be_bare = true,
       .accumulates = true,
       .parser = parse_save,
       .line_writer = write_save},
      {.name = "appendonly",
       .kind = OptionKind::kBool,
       .default_text = "yes",
       .mutability = kWithHook},
      {.name = "appendfsync",
       .kind = OptionKind::kEnum,
       .default_text = "everysec",
       .choices = {"everysec", "always", "no"}},
      {.name = "appenddirname",
       .kind = OptionKind::kString,
       .default_text = "appendonlydir",
       .mutability = kImmutable,
       .parser = parse_file_name},
      {.name = "appendfilename",
       .kind = OptionKind::kString,
       .default_text = "appendonly.aof",
       .mutability = kImmutable,
       .parser = parse_file_name},
      {.name = "aof-load-truncated", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "aof-use-rdb-preamble", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "aof-timestamp-enabled", .kind = OptionKind::kBool, .default_text = "no"},
      {.name = "auto-aof-rewrite-percentage",
       .kind = OptionKind::kInteger,
       .default_text = "100",
       .max = kInt32Max},
      {.name = "auto-aof-rewrite-min-size",
       .kind = OptionKind::kMemory,
       .default_text = "67108864"},
      {.name = "no-appendfsync-on-rewrite", .kind = OptionKind::kBool, .default_text = "no"},
      {.name = "dbfilename",
       .kind = OptionKind::kString,
       .default_text = "dump.rdb",
       .mutability = kProtected,
       .parser = parse_file_name},
      {.name = "rdbcompression", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "rdbchecksum",
       .kind = OptionKind::kBool,
       .default_text = "yes",
       .mutability = kImmutable},
      {.name = "rdb-foreign-types",
       .kind = OptionKind::kEnum,
       .default_text = "refuse",
       .choices = {"refuse", "skip"}},
      {.name = "stop-writes-on-bgsave-error", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "enable-debug-command",
       .kind = OptionKind::kEnum,
       .default_text = "no",
       .choices = {"no", "yes", "local"},
       .mutability = kImmutable},
  };
}

std::vector<Option> key_event_options() {
  return {
      {.name = "notify-keyspace-events",
       .kind = OptionKind::kString,
       .parser = parse_keyspace_events},
      {.name = "tracking-table-max-keys", .kind = OptionKind::kInteger, .default_text = "1000000"},
  };
}

std::vector<Option> observation_options() {
  return {
      {.name = "slowlog-log-slower-than",
       .aliases = {"commandlog-execution-slower-than"},
       .kind = OptionKind::kInteger,
       .default_text = "10000",
       .min = -1},
      {.name = "slowlog-max-len",
       .aliases = {"commandlog-slow-execution-max-len"},
       .kind = OptionKind::kInteger,
       .default_text = "128"},
      {.name = "latency-monitor-threshold", .kind = OptionKind::kInteger, .default_text = "0"},
      {.name = "latency-tracking", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "latency-tracking-info-percentiles",
       .kind = OptionKind::kList,
       .default_text = "50 99 99.9",
       .multi_argument = true,
       .parser = parse_percentiles},
  };
}

Option tls_text(std::string_view name) {
  return {.name = name, .kind = OptionKind::kString};
}

// Setting the same path again reloads the file, because the file's content may have changed.
Option tls_file(std::string_view name) {
  return {.name = name, .kind = OptionKind::kString, .reloads = true};
}

Option tls_secret(std::string_view name) {
  return {.name = name, .kind = OptionKind::kString, .sensitive = true};
}

Option tls_flag(std::string_view name, std::string_view default_text) {
  return {.name = name, .kind = OptionKind::kBool, .default_text = std::string(default_text)};
}

Option tls_number(std::string_view name, std::string_view default_text) {
  return {.name = name,
          .kind = OptionKind::kInteger,
          .default_text = std::string(default_text),
          .max = kInt32Max};
}

std::vector<Option> tls_options() {
  return {
      {.name = "tls-port",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = 65535,
       .mutability = kWithHook},
      tls_flag("tls-replication", "no"),
      {.name = "tls-auth-clients",
       .kind = OptionKind::kEnum,
       .default_text = "yes",
       .choices = {"no", "yes", "optional"}},
      tls_file("tls-cert-file"),
      tls_file("tls-key-file"),
      tls_secret("tls-key-file-pass"),
      tls_file("tls-client-cert-file"),
      tls_file("tls-client-key-file"),
      tls_secret("tls-client-key-file-pass"),
      tls_file("tls-ca-cert-file"),
      tls_file("tls-ca-cert-dir"),
      tls_file("tls-dh-params-file"),
      tls_text("tls-protocols"),
      tls_text("tls-ciphers"),
      tls_text("tls-ciphersuites"),
      tls_flag("tls-prefer-server-ciphers", "no"),
      tls_flag("tls-session-caching", "yes"),
      tls_number("tls-session-cache-size", "20480"),
      tls_number("tls-session-cache-timeout", "300"),
  };
}

std::vector<Option> http_options() {
  return {
      {.name = "http-port",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = 65535,
       .mutability = kImmutable},
      {.name = "http-bind",
       .kind = OptionKind::kList,
       .default_text = "127.0.0.1 -::1",
       .mutability = kImmutable,
       .multi_argument = true,
       .parser = parse_bind},
      {.name = "http-tls",
       .kind = OptionKind::kBool,
       .default_text = "no",
       .mutability = kImmutable},
      {.name = "http-ready-max-lag",
       .kind = OptionKind::kInteger,
       .default_text = "30",
       .max = kInt32Max},
  };
}

std::vector<Option> bloom_options() {
  return {
      {.name = "bf-error-rate",
       .aliases = {"bf.bloom-fp-rate", "bf.bloom_fp_rate"},
       .kind = OptionKind::kFloat,
       .default_text = "0.01",
       .parser = parse_bloom_error_rate},
      {.name = "bf-initial-size",
       .aliases = {"bf.bloom-capacity", "bf.bloom_capacity"},
       .kind = OptionKind::kInteger,
       .default_text = "100",
       .min = 1,
       .max = int64_t{1} << 48,
       .parser = parse_bloom_integer},
      {.name = "bf-expansion-factor",
       .aliases = {"bf.bloom-expansion", "bf.bloom_expansion_rate"},
       .kind = OptionKind::kInteger,
       .default_text = "2",
       .max = 32768,
       .parser = parse_bloom_integer},
      {.name = "bf-tightening-ratio",
       .aliases = {"bf.bloom-tightening-ratio"},
       .kind = OptionKind::kFloat,
       .default_text = "0.5",
       .parser = parse_bloom_ratio},
      {.name = "bf-layout",
       .kind = OptionKind::kEnum,
       .default_text = std::string(core::bloom::layout_name(core::bloom::kDefaultLayout)),
       .choices = layout_choices()},
      {.name = "bf-native-version",
       .kind = OptionKind::kInteger,
       .default_text = std::to_string(core::bloom::kNativeVersionMax),
       .min = core::bloom::kNativeVersionMin,
       .max = core::bloom::kNativeVersionMax},
      {.name = "bf-exists-missing-key",
       .kind = OptionKind::kEnum,
       .default_text = "zero",
       .choices = {"zero", "nil"}},
      {.name = "bf.bloom-memory-usage-limit", .kind = OptionKind::kMemory, .default_text = "0"},
      {.name = "bf.bloom_max_filters",
       .kind = OptionKind::kInteger,
       .default_text = std::to_string(core::bloom::kMaxLayers),
       .min = 1,
       .max = kInt32Max},
      {.name = "bf.bloom-use-random-seed", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "bf.bloom-defrag-enabled", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "bf.bloom_large_item_threshold",
       .kind = OptionKind::kMemory,
       .default_text = "4096"},
  };
}

std::vector<Option> build_table() {
  std::vector<Option> table;
  for (auto make :
       {network_options, security_options, limit_options, memory_options, process_options,
        persistence_options, key_event_options, replica_options, leader_options, cluster_options,
        observation_options, tls_options, http_options, bloom_options, test_options}) {
    const auto rows = make();
    table.insert(table.end(), rows.begin(), rows.end());
  }
  assert(table.size() == kOptionIdCount);
  for (auto make : {compatibility_options, newer_options, refused_options}) {
    const auto rows = make();
    table.insert(table.end(), rows.begin(), rows.end());
  }
  return table;
}

std::unordered_map<std::string_view, size_t> build_index() {
  std::unordered_map<std::string_view, size_t> index;
  const auto& table = option_table();
  for (size_t i = 0; i < table.size(); ++i) {
    [[maybe_unused]] bool fresh = index.emplace(table[i].name, i).second;
    assert(fresh);
    for (const auto alias : table[i].aliases) {
      fresh = index.emplace(alias, i).second;
      assert(fresh);
    }
  }
  return index;
}

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = build_table();
  return table;
}

const Option& option_row(OptionId id) {
  return option_table()[static_cast<size_t>(id)];
}

std::optional<size_t> find_option(std::string_view name) {
  static const auto index = build_index();
  const auto found = index.find(lower_case(name));
  if (found == index.end()) return std::nullopt;
  return found->second;
}

}  // namespace server

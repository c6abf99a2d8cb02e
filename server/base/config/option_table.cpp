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
#include "server/base/config/option_rows.h"
#include "server/base/config/special_values.h"
#include "server/base/config/words.h"

namespace server {
namespace {

using namespace rows;

constexpr int64_t kMebibyte = int64_t{1} << 20;

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

// Returns the options on clients: addresses, security, and limits on buffers.
std::vector<Option> client_options() {
  return {
      list("bind", {.default_text = "* -::*", .mutability = kWithHook, .parser = parse_bind}),
      integer("port", "6379", 0, 65535, {.mutability = kWithHook}),
      text("unixsocket", {.mutability = kImmutable}),
      row(OptionKind::kOctal, "unixsocketperm", "0", {.max = 0777, .mutability = kImmutable}),
      text("unixsocketgroup", {.mutability = kImmutable}),
      integer("timeout", "0", 0, kInt32Max),
      integer("tcp-keepalive", "300", 0, kInt32Max),
      integer("tcp-backlog", "511", 0, kInt32Max, {.mutability = kImmutable}),
      integer("maxclients", "10000", 1, kUint32Max),
      integer("max-new-connections-per-cycle", "256", 1, 1000),
      integer("max-new-tls-connections-per-cycle", "256", 1, 1000),
      integer("io-threads", default_io_threads(), 1, 128, {.mutability = kImmutable}),
      flag("protected-mode", "yes"),
      text("requirepass", {.sensitive = true}),
      text("aclfile", {.mutability = kImmutable}),
      integer("acllog-max-len", "128", 0, kInt64Max),
      choice("acl-pubsub-default", "resetchannels", {"allchannels", "resetchannels"}),
      choice("enable-protected-configs", "no", {"no", "yes", "local"}, {.mutability = kImmutable}),
      bytes("proto-max-bulk-len", "536870912", {.min = kMebibyte}),
      bytes("client-query-buffer-limit", "1073741824", {.min = kMebibyte}),
      list("client-output-buffer-limit",
           {.default_text = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
            .parser = parse_buffer_limits,
            .line_writer = write_buffer_limits}),
  };
}

std::vector<Option> process_options() {
  return {
      choice("loglevel", "notice", {"debug", "verbose", "notice", "warning", "nothing"}),
      text("logfile", {.mutability = kImmutable}),
      text("pidfile", {.mutability = kImmutable}),
      text(
          "dir",
          {.default_text = start_directory(), .mutability = kProtected, .parser = parse_directory}),
      integer("databases", "16", 1, kInt32Max, {.mutability = kImmutable}),
      integer("hz", "10", 0, kInt32Max, {.parser = parse_hz}),
      flag("daemonize", "no", {.mutability = kImmutable}),
      choice("supervised", "no", {"upstart", "systemd", "auto", "no"}, {.mutability = kImmutable}),
      text("availability-zone"),
  };
}

std::vector<Option> persistence_options() {
  return {
      list("save", {.may_be_bare = true,
                    .accumulates = true,
                    .parser = parse_save,
                    .line_writer = write_save}),
      flag("appendonly", "yes", {.mutability = kWithHook}),
      choice("appendfsync", "everysec", {"everysec", "always", "no"}),
      text("appenddirname",
           {.default_text = "appendonlydir", .mutability = kImmutable, .parser = parse_file_name}),
      text("appendfilename",
           {.default_text = "appendonly.aof", .mutability = kImmutable, .parser = parse_file_name}),
      flag("aof-load-truncated", "yes"),
      flag("aof-use-rdb-preamble", "yes"),
      flag("aof-timestamp-enabled", "no"),
      integer("auto-aof-rewrite-percentage", "100", 0, kInt32Max),
      bytes("auto-aof-rewrite-min-size", "67108864"),
      flag("no-appendfsync-on-rewrite", "no"),
      text("dbfilename",
           {.default_text = "dump.rdb", .mutability = kProtected, .parser = parse_file_name}),
      flag("rdbcompression", "yes"),
      flag("rdbchecksum", "yes", {.mutability = kImmutable}),
      choice("rdb-foreign-types", "refuse", {"refuse", "skip"}),
      flag("stop-writes-on-bgsave-error", "yes"),
      choice("enable-debug-command", "no", {"no", "yes", "local"}, {.mutability = kImmutable}),
  };
}

std::vector<Option> key_event_options() {
  return {
      text("notify-keyspace-events", {.parser = parse_keyspace_events}),
      integer("tracking-table-max-keys", "1000000", 0, kInt64Max),
  };
}

std::vector<Option> observation_options() {
  return {
      integer("slowlog-log-slower-than", "10000", -1, kInt64Max,
              {.aliases = {"commandlog-execution-slower-than"}}),
      integer("slowlog-max-len", "128", 0, kInt64Max,
              {.aliases = {"commandlog-slow-execution-max-len"}}),
      integer("latency-monitor-threshold", "0", 0, kInt64Max),
      flag("latency-tracking", "yes"),
      list("latency-tracking-info-percentiles",
           {.default_text = "50 99 99.9", .parser = parse_percentiles}),
  };
}

// Setting the path of a TLS file again reloads the file, because the file's content may have
// changed.
std::vector<Option> tls_options() {
  return {
      integer("tls-port", "0", 0, 65535, {.mutability = kWithHook}),
      flag("tls-replication", "no"),
      choice("tls-auth-clients", "yes", {"no", "yes", "optional"}),
      text("tls-cert-file", {.reloads = true}),
      text("tls-key-file", {.reloads = true}),
      text("tls-key-file-pass", {.sensitive = true}),
      text("tls-client-cert-file", {.reloads = true}),
      text("tls-client-key-file", {.reloads = true}),
      text("tls-client-key-file-pass", {.sensitive = true}),
      text("tls-ca-cert-file", {.reloads = true}),
      text("tls-ca-cert-dir", {.reloads = true}),
      text("tls-dh-params-file", {.reloads = true}),
      text("tls-protocols"),
      text("tls-ciphers"),
      text("tls-ciphersuites"),
      flag("tls-prefer-server-ciphers", "no"),
      flag("tls-session-caching", "yes"),
      integer("tls-session-cache-size", "20480", 0, kInt32Max),
      integer("tls-session-cache-timeout", "300", 0, kInt32Max),
  };
}

std::vector<Option> http_options() {
  return {
      integer("http-port", "0", 0, 65535, {.mutability = kImmutable}),
      list("http-bind",
           {.default_text = "127.0.0.1 -::1", .mutability = kImmutable, .parser = parse_bind}),
      flag("http-tls", "no", {.mutability = kImmutable}),
      integer("http-ready-max-lag", "30", 0, kInt32Max),
  };
}

std::vector<Option> bloom_options() {
  return {
      row(OptionKind::kFloat, "bf-error-rate", "0.01",
          {.aliases = {"bf.bloom-fp-rate", "bf.bloom_fp_rate"}, .parser = parse_bloom_error_rate}),
      integer(
          "bf-initial-size", "100", 1, int64_t{1} << 48,
          {.aliases = {"bf.bloom-capacity", "bf.bloom_capacity"}, .parser = parse_bloom_integer}),
      integer("bf-expansion-factor", "2", 0, 32768,
              {.aliases = {"bf.bloom-expansion", "bf.bloom_expansion_rate"},
               .parser = parse_bloom_integer}),
      row(OptionKind::kFloat, "bf-tightening-ratio", "0.5",
          {.aliases = {"bf.bloom-tightening-ratio"}, .parser = parse_bloom_ratio}),
      choice("bf-layout", std::string(core::bloom::layout_name(core::bloom::kNativeLayout)),
             layout_choices()),
      integer("bf-native-version", std::to_string(core::bloom::kNativeVersionMax),
              core::bloom::kNativeVersionMin, core::bloom::kNativeVersionMax),
      choice("bf-exists-missing-key", "zero", {"zero", "nil"}),
      bytes("bf.bloom-memory-usage-limit", "0"),
      integer("bf.bloom_max_filters", std::to_string(core::bloom::kMaxLayers), 1, kInt32Max),
      flag("bf.bloom-use-random-seed", "yes"),
      flag("bf.bloom-defrag-enabled", "yes"),
      bytes("bf.bloom_large_item_threshold", "4096"),
  };
}

std::vector<Option> build_table() {
  std::vector<Option> table;
  for (auto make : {client_options, memory_options, process_options, persistence_options,
                    key_event_options, replica_options, leader_options, cluster_options,
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

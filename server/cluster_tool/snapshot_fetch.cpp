// SPDX-License-Identifier: MIT
#include "server/cluster_tool/snapshot_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "core/number.h"
#include "core/printable.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_check.h"

namespace server::cluster {
namespace {

constexpr size_t kShownBytesMax = 200;

// Returns the next line of the answer to PSYNC. Empty lines only keep the connection alive.
core::Result<std::string> next_line(NodeClient& client) {
  auto line = client.read_line();
  while (line && line->empty()) line = client.read_line();
  return line;
}

// Writes the next `size` bytes of the answer to the file.
core::Result<> save(NodeClient& client, uint64_t size, persistence::AppendFile& file) {
  while (size > 0) {
    auto bytes = client.read_some();
    if (!bytes) return bytes.error();
    bytes->resize(static_cast<size_t>(std::min<uint64_t>(size, bytes->size())));
    if (auto written = file.write(*bytes); !written) return written;
    size -= bytes->size();
  }
  return file.sync();
}

core::Error unexpected(const Address& address, const std::string& line) {
  return {fmt::format("ERR {}: it does not send its snapshot: {}", address.text(),
                      core::printable(line.substr(0, kShownBytesMax)))};
}

// Parses the line "+FULLRESYNC <id> <offset>".
std::optional<FetchedSnapshot> parse_position(const std::string& line) {
  FetchedSnapshot position;
  std::string word;
  std::istringstream words(line);
  if (words >> word >> position.replication_id >> position.offset && word == "+FULLRESYNC") {
    return position;
  }
  return std::nullopt;
}

// Parses the line "$<bytes>".
std::optional<uint64_t> parse_size(const std::string& line) {
  const auto size =
      line.starts_with('$') ? core::parse_int64(std::string_view(line).substr(1)) : std::nullopt;
  return size && *size >= 0 ? std::optional(static_cast<uint64_t>(*size)) : std::nullopt;
}

core::Result<uint64_t> count_keys(persistence::FileSystem& files, const std::string& path) {
  auto input = files.open_input(path);
  if (!input) return input.error();
  const persistence::RdbSummary summary = persistence::check_rdb(**input);
  if (summary.error) return *summary.error;
  uint64_t count = 0;
  for (const auto& [database, types] : summary.keys) {
    for (const auto& [type, keys] : types) count += keys;
  }
  return count;
}

core::Result<FetchedSnapshot> fetch_into(persistence::FileSystem& files, const Address& address,
                                         NodeClient& client, const std::string& path) {
  if (auto sent = client.send({"PSYNC", "?", "-1"}); !sent) return sent.error();
  const auto first = next_line(client);
  if (!first) return first.error();
  auto fetched = parse_position(*first);
  if (!fetched) return unexpected(address, *first);
  const auto second = next_line(client);
  if (!second) return second.error();
  const auto size = parse_size(*second);
  if (!size) return unexpected(address, *second);
  auto file = files.open_append(path, persistence::OpenMode::kCreate);
  if (!file) return file.error();
  if (auto saved = save(client, *size, **file); !saved) return saved.error();
  fetched->bytes = *size;
  const auto keys = count_keys(files, path);
  if (!keys) return keys.error();
  fetched->keys = *keys;
  return *std::move(fetched);
}

}  // namespace

core::Result<FetchedSnapshot> fetch_snapshot(const Address& address, const NodeAccess& access,
                                             uint64_t epoch, const std::string& path) {
  auto client = NodeClient::connect(address, access);
  if (!client) return client.error();
  // If a replica does not announce the capability `eof`, its leader sends the size before the
  // snapshot.
  const auto ready =
      client->call({"REPLCONF", "cluster-epoch", std::to_string(epoch), "rdb-only", "1"});
  if (!ready) return ready.error();
  persistence::FileSystem& files = persistence::posix_file_system();
  auto fetched = fetch_into(files, address, *client, path);
  if (!fetched) (void)files.remove(path);
  return fetched;
}

}  // namespace server::cluster

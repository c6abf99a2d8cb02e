// SPDX-License-Identifier: MIT
#include "server/cluster_tool/snapshot_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "core/number.h"
#include "core/printable.h"
#include "persistence/files/file_system.h"
#include "persistence/files/input_file_source.h"
#include "persistence/rdb/rdb_check.h"

namespace server::cluster {
namespace {

constexpr size_t kLineBytesMax = 4096;
constexpr size_t kShownBytesMax = 200;

// Reads the answer to PSYNC from the socket: some lines of text, followed by the snapshot.
class Reply {
 public:
  explicit Reply(NodeClient& client) : client_(client) {}

  // Returns the next line without its end. Empty lines only keep the connection alive.
  core::Result<std::string> line() {
    while (true) {
      const size_t end = bytes_.find('\n');
      if (end != std::string::npos) {
        std::string text = bytes_.substr(0, end);
        bytes_.erase(0, end + 1);
        if (text.ends_with('\r')) text.pop_back();
        if (!text.empty()) {
          return core::Result<std::string>(boost::system::in_place_value, std::move(text));
        }
        continue;
      }
      if (bytes_.size() > kLineBytesMax) return core::Error{"ERR a line of the reply is too long"};
      auto more = client_.read_some();
      if (!more) return more;
      bytes_ += *more;
    }
  }

  core::Result<> save(uint64_t size, persistence::AppendFile& file) {
    while (size > 0) {
      if (bytes_.empty()) {
        auto more = client_.read_some();
        if (!more) return more.error();
        bytes_ = *std::move(more);
      }
      bytes_.resize(static_cast<size_t>(std::min<uint64_t>(size, bytes_.size())));
      if (auto written = file.write(bytes_); !written) return written;
      size -= bytes_.size();
      bytes_.clear();
    }
    return file.sync();
  }

 private:
  NodeClient& client_;
  std::string bytes_;
};

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
  persistence::InputFileSource source(**input);
  const persistence::RdbSummary summary = persistence::check_rdb(source);
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
  Reply reply(client);
  const auto first = reply.line();
  if (!first) return first.error();
  auto fetched = parse_position(*first);
  if (!fetched) return unexpected(address, *first);
  const auto second = reply.line();
  if (!second) return second.error();
  const auto size = parse_size(*second);
  if (!size) return unexpected(address, *second);
  auto file = files.open_append(path, persistence::OpenMode::kCreate);
  if (!file) return file.error();
  if (auto saved = reply.save(*size, **file); !saved) return saved.error();
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

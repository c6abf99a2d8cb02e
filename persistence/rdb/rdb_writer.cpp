// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_writer.h"

#include <fmt/format.h>

#include <new>

#include "core/keyspace/keyspace.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_stream.h"

namespace persistence {
namespace {

constexpr std::string_view kTemporaryPrefix = "temp-";
constexpr std::string_view kTemporarySuffix = ".rdb";
constexpr std::string_view kReceivedSuffix = "-received.rdb";

}  // namespace

using core::keyspace::Keyspace;

core::Result<RdbProgress> write_rdb(ByteSink& sink, const Keyspace& keyspace,
                                    const RdbWriteOptions& options) {
  try {
    RdbStream stream(sink, options);
    stream.header();
    const unsigned databases = options.has_keys ? keyspace.database_count() : 0;
    for (unsigned i = 0; i < databases; ++i) {
      if (keyspace.db_size(i) == 0) continue;
      stream.database(i);
      stream.size_hint(keyspace.db_size(i), keyspace.expires_count(i));
      keyspace.for_each(i, [&stream](const core::keyspace::Entry& entry) { stream.key(entry); });
    }
    return stream.finish();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to write a snapshot", core::ErrorCode::kOutOfMemory};
  }
}

core::Result<RdbProgress> write_rdb_file(FileSystem& files, const std::string& path,
                                         const Keyspace& keyspace, const RdbWriteOptions& options) {
  return write_whole_file(files, path,
                          [&](ByteSink& sink) { return write_rdb(sink, keyspace, options); });
}

std::string temporary_snapshot_name(int64_t process_id) {
  return fmt::format("{}{}{}", kTemporaryPrefix, process_id, kTemporarySuffix);
}

std::string received_snapshot_name(int64_t process_id) {
  return fmt::format("{}{}{}", kTemporaryPrefix, process_id, kReceivedSuffix);
}

bool is_temporary_snapshot_name(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix) || !name.ends_with(kTemporarySuffix)) return false;
  name.remove_prefix(kTemporaryPrefix.size());
  const bool is_received = name.ends_with(kReceivedSuffix);
  name.remove_suffix(is_received ? kReceivedSuffix.size() : kTemporarySuffix.size());
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

core::Result<std::vector<std::string>> remove_temporary_snapshots(FileSystem& files,
                                                                  const std::string& directory,
                                                                  const std::string& kept) {
  auto listed = files.list(directory);
  if (!listed) return listed.error();
  std::vector<std::string> gone;
  for (const std::string& name : *listed) {
    if (name == kept || !is_temporary_snapshot_name(name)) continue;
    gone.push_back(fmt::format("{}/{}", directory, name));
    if (auto removed = files.remove(gone.back()); !removed) return removed.error();
  }
  return gone;
}

core::Result<RdbProgress> save_rdb(FileSystem& files, const RdbPlace& place,
                                   const Keyspace& keyspace, const RdbWriteOptions& options) {
  auto total = write_rdb_file(files, place.temporary, keyspace, options);
  if (!total) return total;
  const auto moved = move_into_place(files, place.temporary, place.path);
  if (!moved) return moved.error();
  return total;
}

}  // namespace persistence

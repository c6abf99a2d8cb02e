// SPDX-License-Identifier: MIT
#include "persistence/snapshot.h"

#include <fmt/format.h>

namespace persistence {
namespace {

class SyncingSink final : public ByteSink {
 public:
  explicit SyncingSink(AppendFile& file) : file_(file) {}

  core::Result<> write(std::string_view bytes) override {
    if (auto written = file_.write(bytes); !written) return written;
    unsynced_bytes_ += bytes.size();
    // Bit by bit, so that the last sync does not hold up the disk for others.
    constexpr uint64_t kSyncBytes = uint64_t{32} << 20;
    if (unsynced_bytes_ < kSyncBytes) return {};
    unsynced_bytes_ = 0;
    return file_.sync();
  }

 private:
  AppendFile& file_;
  uint64_t unsynced_bytes_ = 0;
};

class InputSource final : public ByteSource {
 public:
  explicit InputSource(InputFile& file) : file_(file) {}
  core::Result<size_t> read(std::span<char> out) override { return file_.read(out); }
  uint64_t size_bound() const override { return file_.size_bytes(); }

 private:
  InputFile& file_;
};

}  // namespace

core::Result<RdbProgress> save_snapshot(FileSystem& files, const std::string& path,
                                        const std::string& temporary,
                                        const core::keyspace::Keyspace& keyspace,
                                        const RdbWriteOptions& options) {
  const auto fill = [&]() -> core::Result<RdbProgress> {
    auto file = files.open_append(temporary, OpenMode::kCreate);
    if (!file) return file.error();
    SyncingSink sink(**file);
    auto written = write_rdb(sink, keyspace, options);
    if (!written) return written;
    if (auto synced = (*file)->sync(); !synced) return synced.error();
    return written;
  };
  auto saved = fill();
  core::Result<> placed;
  if (saved) placed = files.rename(temporary, path);
  if (!saved || !placed) {
    (void)files.remove(temporary);
    return saved ? placed.error() : saved.error();
  }
  // Without this the rename itself may be lost with the power.
  if (auto synced = files.sync_directory(directory_of(path)); !synced) return synced.error();
  return saved;
}

core::Result<RdbReadResult> load_snapshot(FileSystem& files, const std::string& path,
                                          RdbVisitor& visitor, const core::MemoryBudget& budget,
                                          const RdbReadOptions& options) {
  auto file = files.open_input(path);
  if (!file) return file.error();
  InputSource source(**file);
  auto read = read_rdb(source, visitor, budget, options);
  if (!read) return core::Error{fmt::format("'{}': {}", path, read.error().message)};
  return read;
}

}  // namespace persistence

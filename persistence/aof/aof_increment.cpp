// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_increment.h"

#include <utility>

#include "persistence/files/file_system.h"

namespace persistence {

AofIncrement::AofIncrement(std::shared_ptr<AppendFile> file, uint64_t size_bytes,
                           const RunningChecksum& checksum)
    : file_(std::move(file)), size_bytes_(size_bytes), checksum_(checksum) {}

core::Result<AofIncrement> AofIncrement::create(FileSystem& files, const std::string& path) {
  auto file = files.open_append(path, OpenMode::kCreate);
  if (!file) return file.error();
  std::string header;
  RunningChecksum checksum;
  append_aof_header(header, checksum);
  if (auto written = (*file)->write(header); !written) return written.error();
  // The header is synced, so that a crash cannot lose it. The next start would treat a file without
  // a header as a file of another server, and read it by different rules.
  if (auto synced = (*file)->sync(); !synced) return synced.error();
  return AofIncrement(std::move(*file), header.size(), checksum);
}

core::Result<AofIncrement> AofIncrement::resume(std::shared_ptr<AppendFile> file,
                                                uint64_t size_bytes,
                                                const RunningChecksum& checksum) {
  AofIncrement resumed(std::move(file), size_bytes, checksum);
  std::string nothing;
  if (auto sealed = resumed.write(nothing); !sealed) return sealed.error();
  if (auto synced = resumed.file_->sync(); !synced) return synced.error();
  return resumed;
}

core::Result<> AofIncrement::cut_back() {
  if (!must_cut_) return {};
  if (auto cut = file_->truncate(size_bytes_); !cut) return cut;
  must_cut_ = false;
  return {};
}

core::Result<> AofIncrement::write(std::string& batch) {
  const size_t commands_bytes = batch.size();
  RunningChecksum checksum = checksum_;
  end_aof_batch(batch, checksum);
  if (auto written = file_->write(batch); !written) {
    batch.resize(commands_bytes);
    must_cut_ = !file_->truncate(size_bytes_);
    return written;
  }
  size_bytes_ += batch.size();
  checksum_ = checksum;
  return {};
}

}  // namespace persistence

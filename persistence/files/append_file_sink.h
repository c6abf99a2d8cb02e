// SPDX-License-Identifier: MIT
//
// AppendFileSink: writes a snapshot's byte stream to an AppendFile. write_whole_file(): writes a
// whole file at once.
//
// Thread safety: one thread at a time may use an object.
#pragma once

#include <string>
#include <utility>

#include "persistence/bytes/byte_stream.h"
#include "persistence/files/file_system.h"

namespace persistence {

class AppendFileSink final : public ByteSink {
 public:
  // `file` must outlive the sink.
  explicit AppendFileSink(AppendFile& file) : file_(file) {}
  core::Result<> write(std::string_view bytes) override { return file_.write(bytes); }

 private:
  AppendFile& file_;
};

// Creates the file, calls `fill(sink)` to write it, and syncs it. `fill` returns a Result. An
// existing file at `path` is overwritten. Errors: those of `files` and `fill`; the file is then
// removed.
template <class Fill>
auto write_whole_file(FileSystem& files, const std::string& path, Fill&& fill)
    -> decltype(fill(std::declval<ByteSink&>())) {
  const auto write = [&]() -> decltype(fill(std::declval<ByteSink&>())) {
    const auto file = files.open_append(path, OpenMode::kCreate);
    if (!file) return file.error();
    AppendFileSink sink(**file);
    auto filled = fill(sink);
    if (!filled) return filled;
    if (auto synced = (*file)->sync(); !synced) return synced.error();
    return filled;
  };
  auto written = write();
  if (!written) (void)files.remove(path);
  return written;
}

}  // namespace persistence

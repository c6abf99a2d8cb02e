// SPDX-License-Identifier: MIT
//
// AppendFileSink: an AppendFile as the byte stream that snapshots are written to.
//
// Thread safety: none; one user at a time.
#pragma once

#include "persistence/byte_stream.h"
#include "persistence/file_system.h"

namespace persistence {

class AppendFileSink final : public ByteSink {
 public:
  // `file` must outlive the sink.
  explicit AppendFileSink(AppendFile& file) : file_(file) {}
  core::Result<> write(std::string_view bytes) override { return file_.write(bytes); }

 private:
  AppendFile& file_;
};

}  // namespace persistence

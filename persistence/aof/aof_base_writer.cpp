// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_base_writer.h"

#include <fmt/format.h>

#include <initializer_list>
#include <new>
#include <optional>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/number.h"
#include "persistence/aof/aof_format.h"
#include "persistence/filters/bit_array_codec.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/layout_codec.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "persistence/journal.h"

namespace persistence {
namespace {

using core::Decimal;
using core::keyspace::Entry;
using core::keyspace::Keyspace;

class CommandBaseWriter {
 public:
  CommandBaseWriter(ByteSink& sink, const CommandBaseOptions& options)
      : sink_(sink), options_(options) {}

  void header() {
    append_aof_header(batch_, checksum_);
    write_batch();
  }

  void database(const Keyspace& keyspace, unsigned index) {
    if (keyspace.db_size(index) == 0) return;
    command({"SELECT", Decimal(index).text()});
    keyspace.for_each(index, [this](const Entry& entry) {
      if (!error_) key(entry);
    });
  }

  core::Result<RdbProgress> finish() {
    send();
    if (error_) return *error_;
    return progress_;
  }

 private:
  static constexpr size_t kBatchBytes = size_t{256} << 10;

  void key(const Entry& entry) {
    if (entry.is_filter()) {
      filter(entry);
    } else {
      string(entry);
    }
    ++progress_.keys;
    if (options_.after_key) options_.after_key();
  }

  void string(const Entry& entry) {
    core::keyspace::IntegerText scratch;
    std::string_view rest = entry.text(scratch);
    const std::string_view first = rest.substr(0, options_.piece_bytes);
    if (entry.has_expiry()) {
      command({"SET", entry.key(), first, "PXAT", Decimal(entry.expires_at_ms()).text()});
    } else {
      command({"SET", entry.key(), first});
    }
    for (rest.remove_prefix(first.size()); !rest.empty();) {
      const std::string_view piece = rest.substr(0, options_.piece_bytes);
      command({"APPEND", entry.key(), piece});
      rest.remove_prefix(piece.size());
    }
  }

  void filter(const Entry& entry) {
    if (layout_codec(entry.filter().layout()).has_load_form) {
      load(entry);
    } else {
      chunks(entry);
    }
    if (entry.has_expiry()) {
      command({"PEXPIREAT", entry.key(), Decimal(entry.expires_at_ms()).text()});
    }
  }

  // Writes BF.LOAD as valkey-bloom does: one argument contains the whole filter, however big it is.
  // The argument is written to the file in pieces.
  void load(const Entry& entry) {
    constexpr std::string_view kHead = "*3\r\n$7\r\nBF.LOAD\r\n";
    batch_ += fmt::format("{}${}\r\n{}\r\n${}\r\n", kHead, entry.key().size(), entry.key(),
                          load_payload_bytes(entry.filter()));
    write_load_payload(entry.filter(), [this](std::string_view piece) {
      if (error_) return;
      batch_ += piece;
      if (batch_.size() < kBatchBytes) return;
      // The checksum line must follow the whole command. So the pieces before the end of the
      // command are added to the checksum and written without that line.
      checksum_.update(batch_);
      write_batch();
    });
    batch_ += "\r\n";
    if (batch_.size() >= kBatchBytes) send();
  }

  void chunks(const Entry& entry) {
    command({"BF.LOADCHUNK", entry.key(), "1", encode_chunk_header(entry.filter())});
    uint64_t layer_start = 0;
    for (size_t i = 0; i < entry.filter().layer_count(); ++i) {
      array(entry, i, layer_start);
      layer_start += stored_array_bytes(entry.filter().layer_info(i).geometry);
    }
  }

  // BF.LOADCHUNK with the header creates arrays of zeros, so zeros need no further chunks.
  void array(const Entry& entry, size_t index, uint64_t layer_start) {
    const RunLimits limits{core::bloom::kArrayPageBytes, options_.piece_bytes};
    for_each_run(entry.filter().layer_bits(index), limits,
                 [&](uint64_t offset, std::string_view run) {
                   // The iterator has the value that BF.SCANDUMP would return: the end offset of
                   // the piece, counted from 1.
                   const uint64_t end = layer_start + offset + run.size() + 1;
                   const Decimal iterator(static_cast<int64_t>(end));
                   command({"BF.LOADCHUNK", entry.key(), iterator.text(), run});
                 });
  }

  void command(std::initializer_list<std::string_view> words) {
    if (error_) return;
    append_command(batch_, Words(words.begin(), words.size()));
    if (batch_.size() >= kBatchBytes) send();
  }

  void send() {
    if (batch_.empty() || error_) return;
    end_aof_batch(batch_, checksum_);
    write_batch();
  }

  void write_batch() {
    if (auto written = sink_.write(batch_); !written) {
      error_ = written.error();
      return;
    }
    progress_.bytes += batch_.size();
    batch_.clear();
    if (options_.on_progress) options_.on_progress(progress_);
  }

  ByteSink& sink_;
  const CommandBaseOptions& options_;
  std::string batch_;
  RunningChecksum checksum_;
  RdbProgress progress_;
  std::optional<core::Error> error_;
};

core::Result<RdbProgress> write_commands(ByteSink& sink, const Keyspace& keyspace,
                                         const CommandBaseOptions& options) {
  try {
    CommandBaseWriter writer(sink, options);
    writer.header();
    for (unsigned i = 0; i < keyspace.database_count(); ++i) writer.database(keyspace, i);
    return writer.finish();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to write a base", core::ErrorCode::kOutOfMemory};
  }
}

}  // namespace

core::Result<RdbProgress> write_command_base_file(FileSystem& files, const std::string& path,
                                                  const Keyspace& keyspace,
                                                  const CommandBaseOptions& options) {
  return write_whole_file(files, path,
                          [&](ByteSink& sink) { return write_commands(sink, keyspace, options); });
}

}  // namespace persistence

// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "persistence/aof/aof_tail.h"
#include "persistence/files/posix_io.h"

namespace persistence {
namespace {

using Item = AofLexer::Item;
using Condition = AofScan::Condition;

// Scanner: makes the first pass over the file. Counts within an open transaction stay in `open_`
// until its EXEC.
class Scanner {
 public:
  Scanner(FileSystem& files, const std::string& path) : files_(files), path_(path) {}

  core::Result<AofScan> run(uint64_t preamble_bytes) {
    auto file = files_.open_input(path_);
    if (!file) return file.error();
    const uint64_t size = (*file)->size_bytes();
    AofLexer lexer(**file, size);
    auto skipped =
        lexer.skip(preamble_bytes, [&](std::string_view bytes) { checksum_.update(bytes); });
    if (!skipped) return skipped.error();
    scan_.size_bytes = size;
    scan_.preamble_bytes = preamble_bytes;
    settle();
    Item item = Item::kEnd;
    do {
      auto next = lexer.next();
      if (!next) return next.error();
      item = *next;
      if (item == Item::kCommand) take_command(lexer);
      if (item == Item::kAnnotation) take_annotation(lexer);
    } while (!is_stopped_ && (item == Item::kCommand || item == Item::kAnnotation));
    if (item == Item::kWrong) wrong(lexer.wrong_offset(), lexer.reason());
    if (scan_.condition == Condition::kWhole) {
      if (auto validated = validate_end(item, lexer); !validated) return validated.error();
    }
    return std::move(scan_);
  }

 private:
  void take_command(const AofLexer& lexer) {
    const bool multi = is_aof_multi(lexer.arguments());
    const bool exec = is_aof_exec(lexer.arguments());
    if (multi && transaction_offset_) return damaged(lexer.offset(), aof_fault::kNestedMulti);
    if (exec && !transaction_offset_) return damaged(lexer.offset(), aof_fault::kExecWithoutMulti);
    checksum_.update(lexer.bytes());
    open_.position.reset();
    if (multi) {
      transaction_offset_ = lexer.offset();
    } else if (exec) {
      transaction_offset_.reset();
      ++open_.transaction_count;
    } else {
      ++open_.command_count;
    }
    if (!transaction_offset_) settle();
  }

  void take_annotation(const AofLexer& lexer) {
    using Kind = AofAnnotation::Kind;
    std::string_view text = lexer.line();
    text.remove_suffix(1);
    const bool has_cr = text.ends_with('\r');
    if (has_cr) text.remove_suffix(1);
    AofAnnotation annotation = parse_annotation(text);
    const bool is_ours = annotation.kind == Kind::kVersion || annotation.kind == Kind::kChecksum ||
                         annotation.kind == Kind::kPosition;
    if (is_ours && !has_cr) annotation.kind = Kind::kMalformed;
    if (annotation.kind == Kind::kMalformed) {
      const size_t zero = lexer.line().find('\0');
      return wrong(lexer.offset() + (zero == std::string_view::npos ? 0 : zero),
                   aof_fault::kMalformedAnnotation);
    }
    if (annotation.kind == Kind::kVersion && annotation.value != kAofVersion) {
      return damaged(lexer.offset(), aof_fault::kLaterVersion);
    }
    if (annotation.kind == Kind::kChecksum && annotation.value != checksum_.value()) {
      return damaged(lexer.offset(), aof_fault::kWrongChecksum);
    }
    checksum_.update(lexer.line());
    ++open_.annotation_count;
    if (annotation.kind == Kind::kVersion && lexer.offset() == 0) scan_.has_effect_semantics = true;
    if (annotation.kind == Kind::kPosition) open_.position = std::move(annotation.position);
    if (annotation.kind == Kind::kChecksum) {
      ++open_.checksum_count;
      verified_bytes_ = lexer.end_offset();
      verified_count_ = open_.command_count;
    }
    if (!transaction_offset_) settle();
  }

  // Extends the valid prefix to all bytes read so far.
  void settle() {
    scan_.sound_bytes = checksum_.size_bytes();
    scan_.checksum = checksum_;
    scan_.command_count = open_.command_count;
    scan_.unverified_count = scan_.has_effect_semantics ? open_.command_count - verified_count_ : 0;
    scan_.transaction_count = open_.transaction_count;
    scan_.annotation_count = open_.annotation_count;
    scan_.checksum_count = open_.checksum_count;
    scan_.position = open_.position;
  }

  // Called when the parser has reached the end of the file or an invalid byte.
  core::Result<> validate_end(Item item, const AofLexer& lexer) {
    const bool is_ours = scan_.has_effect_semantics || verified_bytes_ > 0;
    if (!wrong_offset_ && item == Item::kEnd && transaction_offset_) {
      fault(Condition::kTorn, *transaction_offset_, "MULTI without EXEC");
    }
    if (!wrong_offset_ && item == Item::kCut) {
      fault(Condition::kTorn, lexer.offset(), "the end comes inside of a command");
    }
    if (!is_ours && !wrong_offset_) return {};
    auto tail = look_at_tail(files_, path_, verified_bytes_, wrong_offset_);
    if (!tail) return tail.error();
    if (wrong_offset_) {
      const bool is_torn = is_ours ? is_torn_tail_of_ours(*tail) : tail->zeros_reach_end();
      fault(is_torn ? Condition::kTorn : Condition::kDamaged, *wrong_offset_, wrong_reason_);
    } else if (tail->checksum_line) {
      // A wrong length can hide checksum lines inside an argument, so the file counts as damaged.
      damaged(*tail->checksum_line, aof_fault::kSwallowedChecksum);
    }
    return {};
  }

  static bool is_torn_tail_of_ours(const AofTail& tail) {
    if (!tail.checksum_line) return true;
    return !tail.has_checksum_line_before_zeros() && tail.has_hole();
  }

  // Ends the scan at a wrong byte. The bytes that follow decide whether the file is torn or
  // damaged.
  void wrong(uint64_t offset, std::string_view reason) {
    is_stopped_ = true;
    wrong_offset_ = offset;
    wrong_reason_ = reason;
  }
  void damaged(uint64_t offset, std::string_view reason) {
    is_stopped_ = true;
    fault(Condition::kDamaged, offset, reason);
  }
  void fault(Condition condition, uint64_t offset, std::string_view reason) {
    scan_.condition = condition;
    scan_.fault_offset = offset;
    scan_.reason = reason;
  }

  FileSystem& files_;
  const std::string& path_;
  AofScan scan_;
  // The scan up to the current position, including a transaction that is still open. scan_ excludes
  // such a transaction.
  AofScan open_;
  RunningChecksum checksum_;
  // The end of the last checksum line.
  uint64_t verified_bytes_ = 0;
  uint64_t verified_count_ = 0;  // number of commands before verified_bytes_
  std::optional<uint64_t> transaction_offset_;
  bool is_stopped_ = false;
  std::optional<uint64_t> wrong_offset_;
  std::string_view wrong_reason_;
};

core::Error place(const std::string& path, uint64_t offset, std::string_view reason) {
  return {fmt::format("ERR append log '{}', offset {}: {}", printable_path(path), offset, reason)};
}

core::Error changed(const std::string& path, uint64_t offset) {
  return place(path, offset, "the file changed while it was read");
}

core::Result<> hand_out(const AofLexer& lexer, const std::string& path,
                        const AofCommandHandler& handler) {
  if (is_aof_multi(lexer.arguments()) || is_aof_exec(lexer.arguments())) return {};
  auto handled = handler({lexer.arguments(), lexer.offset()});
  if (!handled) return place(path, lexer.offset(), handled.error().message);
  return {};
}

}  // namespace

core::Result<bool> begins_with_snapshot(FileSystem& files, const std::string& path) {
  constexpr size_t kMagicBytesMax = 6;
  const auto beginning = read_beginning(files, path, kMagicBytesMax);
  if (!beginning) return beginning.error();
  return beginning->starts_with("REDIS") || *beginning == "VALKEY";
}

core::Result<AofScan> scan_aof(FileSystem& files, const std::string& path,
                               uint64_t preamble_bytes) {
  return Scanner(files, path).run(preamble_bytes);
}

core::Result<> replay_aof(FileSystem& files, const std::string& path, const AofScan& scan,
                          const AofCommandHandler& handler) {
  assert(scan.condition != Condition::kDamaged);
  auto file = files.open_input(path);
  if (!file) return file.error();
  if ((*file)->size_bytes() < scan.sound_bytes) return changed(path, (*file)->size_bytes());
  AofLexer lexer(**file, scan.sound_bytes);
  RunningChecksum checksum;
  auto skipped =
      lexer.skip(scan.preamble_bytes, [&](std::string_view bytes) { checksum.update(bytes); });
  if (!skipped) return skipped.error();
  for (;;) {
    auto item = lexer.next();
    if (!item) return item.error();
    if (*item == Item::kEnd) break;
    if (*item != Item::kCommand && *item != Item::kAnnotation) return changed(path, lexer.offset());
    checksum.update(lexer.bytes());
    if (*item == Item::kAnnotation) continue;
    if (auto handed = hand_out(lexer, path, handler); !handed) return handed;
  }
  if (checksum != scan.checksum) return changed(path, checksum.size_bytes());
  return {};
}

bool may_be_cut(std::span<const ScannedAof> files, size_t index) {
  const ScannedAof& file = files[index];
  const bool is_finished_base = file.is_base && files.size() > 1;
  return file.scan.condition == Condition::kTorn && !is_finished_base &&
         std::ranges::all_of(files.subspan(index + 1), [](const ScannedAof& later) {
           return later.scan.condition != Condition::kDamaged && later.scan.command_count == 0 &&
                  !later.scan.begins_with_snapshot();
         });
}

core::Result<> cut_torn_tail(FileSystem& files, const std::string& path, const AofScan& scan) {
  assert(scan.condition == Condition::kTorn);
  auto file = files.open_append(path, OpenMode::kAppend);
  if (!file) return file.error();
  if (auto cut = (*file)->truncate(scan.sound_bytes); !cut) return cut;
  return (*file)->sync();
}

core::Error aof_error(const std::string& path, const AofScan& scan) {
  return place(
      path, scan.fault_offset,
      scan.condition == Condition::kTorn
          ? fmt::format("torn: {} (Unexpected end of file reading the append only file)",
                        scan.reason)
          : fmt::format("damaged: {} (Bad file format reading the append only file)", scan.reason));
}

}  // namespace persistence

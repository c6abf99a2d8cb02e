// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_tail.h"

#include <algorithm>
#include <string_view>

#include "persistence/aof/aof_format.h"

namespace persistence {
namespace {

constexpr uint64_t kBlockBytes = 512;
constexpr size_t kTailChunkBytes = size_t{256} << 10;

// ZeroRun finds the run of zeros that contains `wrong_offset`, if any.
class ZeroRun {
 public:
  explicit ZeroRun(std::optional<uint64_t> wrong_offset) : wrong_offset_(wrong_offset) {}

  void see(std::string_view bytes, uint64_t offset) {
    if (!wrong_offset_) return;
    size_t at = 0;
    while (at < bytes.size() && !is_over_) {
      if (bytes[at] == '\0') {
        const size_t zeros = std::min(bytes.find_first_not_of('\0', at), bytes.size()) - at;
        if (end_ != offset + at) begin_ = offset + at;
        end_ = offset + at + zeros;
        at += zeros;
      } else {
        // The search ends at the first nonzero byte at or after `wrong_offset`, because no later
        // run of zeros can contain that offset.
        is_over_ = offset + at >= *wrong_offset_;
        at = std::min(bytes.find('\0', at), bytes.size());
      }
    }
  }
  bool covers_wrong_byte() const {
    return wrong_offset_ && begin_ <= *wrong_offset_ && *wrong_offset_ < end_;
  }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }

 private:
  const std::optional<uint64_t> wrong_offset_;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  bool is_over_ = false;
};

}  // namespace

bool AofTail::has_hole() const {
  if (zeros_begin == zeros_end) return false;
  // A power cut leaves zeros in the disk blocks that were not written. If the zeros begin directly
  // after the last verified line, that line may end in the middle of a block. The bytes written
  // after the zeros may begin with zeros, too. So the zeros only have to reach the end of a block.
  // Elsewhere zeros may be part of a value, so both ends of the zeros must be block boundaries.
  // Otherwise a flipped bit in a length could look like a power cut.
  if (zeros_begin == begin) return zeros_end / kBlockBytes > begin / kBlockBytes;
  return zeros_begin % kBlockBytes == 0 && zeros_end % kBlockBytes == 0;
}

core::Result<AofTail> look_at_tail(FileSystem& files, const std::string& path, uint64_t begin,
                                   std::optional<uint64_t> wrong_offset) {
  auto file = files.open_input(path);
  if (!file) return file.error();
  AofTail tail;
  tail.begin = begin;
  ZeroRun run(wrong_offset);
  // Chunks overlap, because a checksum line may begin in one chunk and end in the next.
  constexpr size_t kOverlap = kChecksumLineBytes - 1;
  std::string buffer;
  for (uint64_t offset = 0;;) {
    const size_t kept = std::min(buffer.size(), kOverlap);
    buffer.erase(0, buffer.size() - kept);
    buffer.resize(kept + kTailChunkBytes);
    auto got = (*file)->read(std::span(buffer).subspan(kept));
    if (!got) return got.error();
    buffer.resize(kept + *got);
    if (*got == 0) break;
    const std::string_view fresh = std::string_view(buffer).substr(kept);
    const uint64_t before = begin > offset ? std::min<uint64_t>(begin - offset, *got) : 0;
    run.see(fresh.substr(before), offset + before);
    // Drops buffered bytes before `begin`, because a checksum line must not include bytes before
    // the tail.
    if (before > 0) buffer.erase(0, kept + before);
    const uint64_t buffer_offset = offset + *got - buffer.size();
    if (const auto found = find_checksum_line(buffer); found && !tail.checksum_line) {
      tail.checksum_line = buffer_offset + *found;
    }
    offset += *got;
    tail.end = offset;
  }
  if (run.covers_wrong_byte()) tail.zeros_begin = run.begin(), tail.zeros_end = run.end();
  return tail;
}

}  // namespace persistence

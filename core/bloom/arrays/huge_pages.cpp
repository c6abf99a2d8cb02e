// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "core/bloom/arrays/array_memory.h"

namespace core::bloom {
namespace {

constexpr size_t kPagesPerPiece = HugePages::kPieceBytes / kArrayPageBytes;

// Returns whether the kernel had no memory: no huge page was free, or the cgroup's limit was
// reached.
bool is_short_of_memory(int error_number) {
  return error_number == ENOMEM || error_number == EBUSY;
}

}  // namespace

HugePages& HugePages::of_process() {
  // The HugePages is never destroyed, because static arrays may be freed after all other static
  // objects.
  static HugePages& pages = *new HugePages;
  return pages;
}

int HugePages::collapse_by_kernel(void* piece, size_t size_bytes) {
  constexpr int kMadvCollapse = 25;  // MADV_COLLAPSE, which older headers do not define
  // MADV_DONTNEED removes the piece's 512 page table entries at once. In a shared mapping the pages
  // stay in the file. Without this call the kernel would remove the entries one by one while the
  // pages are locked. Clients that touch the piece would then wait about twice as long.
  ::madvise(piece, size_bytes, MADV_DONTNEED);
  return ::madvise(piece, size_bytes, kMadvCollapse) == 0 ? 0 : errno;
}

void HugePages::add(const std::byte* array, uint64_t mapped_bytes) {
  const std::lock_guard guard(mutex_);
  arrays_[reinterpret_cast<Address>(array)] = {mapped_bytes, {}};
}

void HugePages::remove(const std::byte* array) {
  const std::lock_guard guard(mutex_);
  const auto found = arrays_.find(reinterpret_cast<Address>(array));
  if (found == arrays_.end()) return;
  huge_pieces_ -= static_cast<uint64_t>(std::ranges::count(found->second.is_huge, true));
  arrays_.erase(found);
}

bool HugePages::defer_free(const std::byte* array) {
  const std::lock_guard guard(mutex_);
  if (busy_ != reinterpret_cast<Address>(array)) return false;
  is_deferred_ = true;
  return true;
}

std::optional<HugePages::Piece> HugePages::begin_piece() {
  const std::lock_guard guard(mutex_);
  auto next = arrays_.upper_bound(cursor_);
  if (next != arrays_.begin()) {
    const auto& [start, array] = *std::prev(next);
    const bool has_more = (cursor_ - start) / kPieceBytes < array.mapped_bytes / kPieceBytes;
    if (has_more) --next;
  }
  if (next == arrays_.end()) {
    cursor_ = 0;
    return std::nullopt;
  }
  const auto& [start, array] = *next;
  const uint64_t index = cursor_ > start ? (cursor_ - start) / kPieceBytes : 0;
  cursor_ = start + (index + 1) * kPieceBytes;
  busy_ = start;
  busy_bytes_ = array.mapped_bytes;
  return Piece{start, index, index < array.is_huge.size() && array.is_huge[index]};
}

void HugePages::end_piece(const Piece& piece, bool is_huge) {
  bool must_free = false;
  uint64_t mapped_bytes = 0;
  {
    const std::lock_guard guard(mutex_);
    busy_ = 0;
    mapped_bytes = busy_bytes_;
    must_free = std::exchange(is_deferred_, false);
    const auto found = arrays_.find(piece.array);
    if (found != arrays_.end() && is_huge != piece.is_huge) {
      std::vector<bool>& flags = found->second.is_huge;
      if (flags.size() <= piece.index) flags.resize(piece.index + 1);
      flags[piece.index] = is_huge;
      if (is_huge) {
        ++huge_pieces_;
      } else {
        --huge_pieces_;
      }
    }
  }
  if (must_free) free_file_range(reinterpret_cast<std::byte*>(piece.array), mapped_bytes);
}

// Queries the other pages only if the first few are present: in a sparse array, the first few pages
// usually include an untouched page. A page that the system has swapped out counts as absent, so
// its piece is not collapsed.
bool HugePages::is_resident(const Piece& piece) {
  constexpr size_t kFirstPages = 4;
  std::array<unsigned char, kPagesPerPiece> in_memory;
  const auto all_resident = [&](size_t from, size_t to) {
    std::byte* const start = piece.start() + from * kArrayPageBytes;
    if (::mincore(start, (to - from) * kArrayPageBytes, in_memory.data()) != 0) return false;
    const auto pages = std::span(in_memory).first(to - from);
    return std::ranges::all_of(pages, [](unsigned char page) { return (page & 1) != 0; });
  };
  return all_resident(0, kFirstPages) && all_resident(kFirstPages, kPagesPerPiece);
}

int HugePages::collapse(const Piece& piece) {
  const int error_number = collapse_(piece.start(), kPieceBytes);
  if (error_number == 0) has_collapsed_ = true;
  // EAGAIN means that another thread used a page of the piece. The next pass tries to collapse this
  // piece again.
  const bool is_known = error_number == 0 || error_number == EAGAIN;
  if (!is_known && !is_short_of_memory(error_number)) ++rejections_;
  return error_number;
}

HugePages::Step HugePages::step() {
  for (unsigned i = 0; i < kPiecesPerStep; ++i) {
    const std::optional<Piece> piece = begin_piece();
    if (!piece) return Step::kPassEnded;
    const bool is_whole = is_resident(*piece);
    const bool is_wanted = is_whole && !piece->is_huge;
    const int error_number = is_wanted ? collapse(*piece) : 0;
    end_piece(*piece, is_whole && error_number == 0);
    if (error_number == EAGAIN) return Step::kContinues;
    if (error_number != 0) {
      const bool is_rejected = !has_collapsed_ && rejections_ >= kRejectionsMax;
      return is_rejected ? Step::kUnsupported : Step::kFailed;
    }
    if (is_wanted) return Step::kCollapsed;
  }
  return Step::kContinues;
}

void free_file_range(std::byte* start, uint64_t mapped_bytes) {
  ::madvise(start, mapped_bytes, MADV_REMOVE);
  ::munmap(start, mapped_bytes);
}

uint64_t huge_array_bytes() {
  return HugePages::of_process().huge_bytes();
}

}  // namespace core::bloom

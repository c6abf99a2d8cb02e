// SPDX-License-Identifier: MIT
//
// HugePages: moves fully touched parts of big arrays into huge pages, piece by piece.
//
// With pages of 2 MiB, the processor's translation buffer covers more of an array. Lookups in an
// array of 1 GB then take about a fifth less CPU time. Only a piece whose pages are all resident is
// collapsed, so a huge page never takes more memory than the small pages that it replaces.
//
// Invariants: an array is not unmapped while one of its pieces is being collapsed. If a thread
// deletes the array meanwhile, step() frees the array after the collapse. So the deleting thread
// does not wait for the kernel.
// Forked children share the huge pages. No member is called, and mutex_ is not locked, in a forked
// child.
// Thread safety: any thread may call add(), remove(), defer_free() and huge_bytes(). One thread at
// a time may call step().
// Source: docs/bloom_math.md, "Huge pages"; madvise(2) about MADV_COLLAPSE (Linux 6.1); mincore(2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace core::bloom {

class HugePages {
 public:
  static constexpr uint64_t kPieceBytes = uint64_t{2} << 20;
  // Smaller arrays stay in small pages, because their page tables fit into the processor's caches.
  static constexpr uint64_t kArrayBytesMin = uint64_t{32} << 20;
  // Maximum number of pieces that one step examines, so that the step ends soon.
  static constexpr unsigned kPiecesPerStep = 64;
  // After this number of failures before the first success, the kernel counts as unable to collapse
  // pieces. Failures for lack of memory do not count.
  static constexpr unsigned kRejectionsMax = 4;

  // Moves a piece of an array into one huge page. Returns 0, or the error number.
  using Collapse = std::function<int(void* piece, size_t size_bytes)>;

  enum class Step : uint8_t {
    kContinues,   // the step collapsed no piece; the next step continues the pass
    kCollapsed,   // one piece was collapsed
    kFailed,      // the kernel could not collapse a piece, probably for lack of memory
    kPassEnded,   // the last piece was reached; the next step begins with the first one
    kUnsupported  // collapsing has failed repeatedly and has never succeeded
  };

  // The HugePages for the arrays of ArrayMemory::of_process().
  static HugePages& of_process();
  // Moves the piece into a huge page by MADV_COLLAPSE. REQUIRES: the piece is in a shared mapping
  // of a file.
  static int collapse_by_kernel(void* piece, size_t size_bytes);
  explicit HugePages(Collapse collapse = collapse_by_kernel) : collapse_(std::move(collapse)) {}

  // Later steps also examine the pieces of this array. REQUIRES: the address `array`, and the
  // array's offset in the mapped file, are multiples of kPieceBytes.
  void add(const std::byte* array, uint64_t mapped_bytes);
  // Must be called before the array is freed. Ignores an unknown array.
  void remove(const std::byte* array);
  // Returns true if a piece of the removed array is being collapsed. Then step() frees the array by
  // free_file_range(). If defer_free() returns false, the caller frees the array.
  bool defer_free(const std::byte* array);

  // Continues the pass: examines up to kPiecesPerStep pieces, and tries to collapse the first one
  // that is suitable. Returns after this attempt, or when the pass ends.
  Step step();

  // Returns how many bytes of the arrays are in huge pages. Arrays passed to remove() do not count.
  // A piece that the system has swapped out counts until the next pass visits the piece.
  uint64_t huge_bytes() const { return huge_pieces_.load() * kPieceBytes; }

 private:
  using Address = uintptr_t;
  struct Array {
    uint64_t mapped_bytes;
    std::vector<bool> is_huge;  // one flag for each piece; pieces beyond the end are not huge
  };
  struct Piece {
    Address array;
    uint64_t index;
    bool is_huge;  // true if an earlier step has collapsed the piece
    std::byte* start() const { return reinterpret_cast<std::byte*>(array + index * kPieceBytes); }
  };

  // Returns the next piece of the pass, and marks its array as busy. Returns nullopt at the end of
  // the pass.
  std::optional<Piece> begin_piece();
  void end_piece(const Piece& piece, bool is_huge);
  int collapse(const Piece& piece);
  static bool is_resident(const Piece& piece);

  const Collapse collapse_;
  // Number of times that the kernel rejected a collapse before the first success. Failures for lack
  // of memory do not count. Only step()'s thread uses this number.
  unsigned rejections_ = 0;
  bool has_collapsed_ = false;  // only step()'s thread uses it
  std::atomic<uint64_t> huge_pieces_{0};
  std::mutex mutex_;                 // guards the members below; never locked in a child process
  std::map<Address, Array> arrays_;  // all arrays, by their address
  Address cursor_ = 0;               // address of the piece that step() examines next
  Address busy_ = 0;                 // address of the array that step() works on; 0 if none
  uint64_t busy_bytes_ = 0;          // mapped bytes of the array at busy_
  bool is_deferred_ = false;         // true if step() must free the busy array
};

// Unmaps the range. Also frees the pages of the file that is mapped there, because munmap() alone
// would keep these pages.
void free_file_range(std::byte* start, uint64_t mapped_bytes);

// Returns how many bytes of this process' arrays are in huge pages. These bytes are a part of
// the resident memory. Freed arrays do not count.
uint64_t huge_array_bytes();

}  // namespace core::bloom

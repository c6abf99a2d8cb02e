// SPDX-License-Identifier: MIT
#include "core/bloom/line_kernels.h"

#include <array>
#include <cstdint>
#include <utility>

#include "core/bloom/line_walk.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace core::bloom {
namespace {

class PortableLine {
 public:
  using Walk = LineWalk;

  PortableLine() = default;
  explicit PortableLine(LineShape shape) : bits_per_line_(shape.bits_per_line) {}

  bool all_set(const uint64_t* words, uint64_t positions) const {
    uint64_t all = 1;
    // There is no early exit within a line. Its bits are in the cache, and a mispredicted branch
    // costs more than checking the other bits.
    for (unsigned bit = 0; bit < bits_per_line_; ++bit, positions >>= 9) {
      all &= words[(positions >> 6) & 7] >> (positions & 63);
    }
    return (all & 1) != 0;
  }

  struct Pattern {
    explicit Pattern(uint64_t item_positions) : positions(item_positions) {}
    uint64_t positions;
  };
  bool all_set(const uint64_t* words, const Pattern& pattern) const {
    return all_set(words, pattern.positions);
  }

  bool set(uint64_t* words, uint64_t positions) const {
    uint64_t newly_set = 0;
    for (unsigned bit = 0; bit < bits_per_line_; ++bit, positions >>= 9) {
      uint64_t& word = words[(positions >> 6) & 7];
      const uint64_t mask = uint64_t{1} << (positions & 63);
      newly_set |= ~word & mask;
      word |= mask;
    }
    return newly_set != 0;
  }

 private:
  unsigned bits_per_line_ = 0;
};

bool check_portably(const uint64_t* words, LineShape shape, ItemHash hash) {
  return check_item(words, shape, PortableLine(shape), hash);
}

bool check_any_portably(std::span<const Layer> layers, ItemHash hash) {
  return check_in_any<PortableLine>(layers, hash);
}

bool mark_portably(uint64_t* words, LineShape shape, ItemHash hash) {
  return mark_item(words, shape, PortableLine(shape), hash);
}

void check_group_portably(std::span<const ArrayView> arrays, std::span<const ItemHash> hashes,
                          std::span<bool> found) {
  check_items<PortableLine>(arrays, hashes, found);
}

uint64_t mark_group_portably(uint64_t* words, const Geometry& geometry,
                             std::span<const ItemHash> hashes, std::span<bool> found) {
  const LineShape shape(geometry);
  return mark_items(words, shape, PortableLine(shape), is_fetched(geometry), hashes, found);
}

}  // namespace

const LineKernels& portable_line_kernels() {
  static constexpr LineKernels kKernels{check_portably, mark_portably, check_any_portably,
                                        check_group_portably, mark_group_portably};
  return kKernels;
}

#if defined(__x86_64__)
namespace {

// Only the functions marked BLOOMERY_AVX2 may use AVX2. A compiler flag for the whole file would
// also affect inline functions of other headers.
#define BLOOMERY_AVX2 __attribute__((target("avx2")))

// Row n is a mask of the 32-bit lanes that hold the first n positions of an item.
// spread_positions() stores the positions in the order 0 1 4 5 2 3 6 7, because AVX2 shuffles
// within 128-bit halves.
using LaneRow = std::array<uint32_t, 8>;
constexpr auto make_used_lanes() {
  constexpr LaneRow kPositionOfLane{0, 1, 4, 5, 2, 3, 6, 7};
  std::array<LaneRow, kMaxBitsPerLine + 1> rows{};
  for (unsigned n = 0; n < rows.size(); ++n) {
    for (unsigned lane = 0; lane < 8; ++lane) {
      rows[n][lane] = kPositionOfLane[lane] < n ? ~uint32_t{0} : 0;
    }
  }
  return rows;
}
alignas(32) constexpr auto kUsedLanes = make_used_lanes();

// The bits to set in a line.
class Avx2Mask {
 public:
  BLOOMERY_AVX2 Avx2Mask() : low_(_mm256_setzero_si256()), high_(low_) {}

  // Sets the mask's bit whose index is in the lowest nine bits of `positions`.
  BLOOMERY_AVX2 void add(uint64_t positions) {
    // An AVX2 shift by more than 63 gives zero, so each position sets a bit in its own word only.
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i low_starts = _mm256_setr_epi64x(0, 64, 128, 192);
    const __m256i high_starts = _mm256_setr_epi64x(256, 320, 384, 448);
    const __m256i position = _mm256_set1_epi64x(static_cast<int64_t>(positions & 511));
    const __m256i low_shift = _mm256_sub_epi64(position, low_starts);
    const __m256i high_shift = _mm256_sub_epi64(position, high_starts);
    low_ = _mm256_or_si256(low_, _mm256_sllv_epi64(one, low_shift));
    high_ = _mm256_or_si256(high_, _mm256_sllv_epi64(one, high_shift));
  }

  // Returns true if at least one bit was clear before.
  BLOOMERY_AVX2 bool set_in(uint64_t* words) const {
    auto* const halves = reinterpret_cast<__m256i*>(words);
    const __m256i low = _mm256_loadu_si256(halves);
    const __m256i high = _mm256_loadu_si256(halves + 1);
    _mm256_storeu_si256(halves, _mm256_or_si256(low, low_));
    _mm256_storeu_si256(halves + 1, _mm256_or_si256(high, high_));
    return (_mm256_testc_si256(low, low_) & _mm256_testc_si256(high, high_)) == 0;
  }

 private:
  __m256i low_;
  __m256i high_;
};

// Compares all positions of an item in a line in parallel. An item has at most seven positions in a
// line.
class Avx2Line {
 public:
  using Walk = LineWalk;

  Avx2Line() = default;
  explicit Avx2Line(LineShape shape)
      : used_lanes_(&kUsedLanes[shape.bits_per_line]), bits_per_line_(shape.bits_per_line) {}

  BLOOMERY_AVX2 bool all_set(const uint64_t* words, uint64_t positions) const {
    return all_set(words, Pattern(positions));
  }

  // The bit of each position within its 32-bit word, and the index of that word. A line has sixteen
  // words. The low three bits of the index select a word in one half of the line, and the fourth
  // bit selects the half.
  struct Pattern {
    BLOOMERY_AVX2 explicit Pattern(uint64_t positions) {
      const __m256i spread = spread_positions(positions);
      const __m256i shift = _mm256_and_si256(spread, _mm256_set1_epi32(31));
      bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), shift);
      word_index = _mm256_srli_epi32(spread, 5);
    }
    __m256i bits;
    __m256i word_index;
  };

  BLOOMERY_AVX2 bool all_set(const uint64_t* words, const Pattern& pattern) const {
    const __m256i used = _mm256_load_si256(reinterpret_cast<const __m256i*>(used_lanes_->data()));
    const __m256i wanted = _mm256_and_si256(pattern.bits, used);
    const __m256i word_index = pattern.word_index;
    const auto* const halves = reinterpret_cast<const __m256i*>(words);
    const __m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(halves), word_index);
    const __m256i high = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(halves + 1), word_index);
    const __m256 is_high = _mm256_castsi256_ps(_mm256_slli_epi32(word_index, 28));
    const __m256 chosen =
        _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), is_high);
    return _mm256_testc_si256(_mm256_castps_si256(chosen), wanted) != 0;
  }

  BLOOMERY_AVX2 bool set(uint64_t* words, uint64_t positions) const {
    Avx2Mask mask;
    for (unsigned bit = 0; bit < bits_per_line_; ++bit, positions >>= 9) mask.add(positions);
    return mask.set_in(words);
  }

 private:
  // Returns one position per 32-bit lane, in the low nine bits. The higher bits are undefined.
  BLOOMERY_AVX2 static __m256i spread_positions(uint64_t positions) {
    const __m256i all = _mm256_set1_epi64x(static_cast<int64_t>(positions));
    const __m256i first = _mm256_srlv_epi64(all, _mm256_setr_epi64x(0, 9, 18, 27));
    const __m256i second = _mm256_srlv_epi64(all, _mm256_setr_epi64x(36, 45, 54, 63));
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0x88));
  }

  const LaneRow* used_lanes_ = nullptr;
  unsigned bits_per_line_ = 0;
};

// Sets a number of bits that is known at compile time, without a loop.
template <unsigned kBitsPerLine>
struct Avx2Marker {
  using Walk = LineWalk;

  BLOOMERY_AVX2 bool set(uint64_t* words, uint64_t positions) const {
    return set(words, positions, std::make_index_sequence<kBitsPerLine>());
  }

 private:
  template <size_t... kBits>
  BLOOMERY_AVX2 static bool set(uint64_t* words, uint64_t positions,
                                std::index_sequence<kBits...> /*bits*/) {
    Avx2Mask mask;
    (mask.add(positions >> (9 * kBits)), ...);
    return mask.set_in(words);
  }
};

BLOOMERY_AVX2 bool check_with_avx2(const uint64_t* words, LineShape shape, ItemHash hash) {
  return check_item(words, shape, Avx2Line(shape), hash);
}

BLOOMERY_AVX2 bool check_any_with_avx2(std::span<const Layer> layers, ItemHash hash) {
  return check_in_any<Avx2Line>(layers, hash);
}

BLOOMERY_AVX2 bool mark_with_avx2(uint64_t* words, LineShape shape, ItemHash hash) {
  return mark_item(words, shape, Avx2Line(shape), hash);
}

BLOOMERY_AVX2 void check_group_with_avx2(std::span<const ArrayView> arrays,
                                         std::span<const ItemHash> hashes, std::span<bool> found) {
  check_items<Avx2Line>(arrays, hashes, found);
}

template <unsigned kBitsPerLine>
BLOOMERY_AVX2 uint64_t mark_group_with_avx2(uint64_t* words, const Geometry& geometry,
                                            std::span<const ItemHash> hashes,
                                            std::span<bool> found) {
  return mark_items(words, geometry, Avx2Marker<kBitsPerLine>(), is_fetched(geometry), hashes,
                    found);
}

uint64_t mark_any_group_with_avx2(uint64_t* words, const Geometry& geometry,
                                  std::span<const ItemHash> hashes, std::span<bool> found) {
  static constexpr auto kMarkers = []<size_t... kIndices>(std::index_sequence<kIndices...>) {
    return std::array{&mark_group_with_avx2<kIndices + 1>...};
  }
  (std::make_index_sequence<kMaxBitsPerLine>());
  return kMarkers[LineShape(geometry).bits_per_line - 1](words, geometry, hashes, found);
}

}  // namespace

const LineKernels* avx2_line_kernels() {
  static constexpr LineKernels kKernels{check_with_avx2, mark_with_avx2, check_any_with_avx2,
                                        check_group_with_avx2, mark_any_group_with_avx2};
  return __builtin_cpu_supports("avx2") ? &kKernels : nullptr;
}

namespace {
// `has_avx2` is false until it is initialized. Until then the portable kernels are used, which give
// the same results.
const bool has_avx2 = avx2_line_kernels() != nullptr;
}  // namespace

const LineKernels& line_kernels() {
  return has_avx2 ? *avx2_line_kernels() : portable_line_kernels();
}

bool check_line_item(const uint64_t* words, LineShape shape, ItemHash hash) {
  return has_avx2 ? check_with_avx2(words, shape, hash) : check_portably(words, shape, hash);
}

bool check_line_item_in_any(std::span<const Layer> layers, ItemHash hash) {
  return has_avx2 ? check_any_with_avx2(layers, hash) : check_any_portably(layers, hash);
}

bool mark_line_item(uint64_t* words, LineShape shape, ItemHash hash) {
  return has_avx2 ? mark_with_avx2(words, shape, hash) : mark_portably(words, shape, hash);
}

#else

const LineKernels* avx2_line_kernels() {
  return nullptr;
}

const LineKernels& line_kernels() {
  return portable_line_kernels();
}

bool check_line_item(const uint64_t* words, LineShape shape, ItemHash hash) {
  return check_portably(words, shape, hash);
}

bool check_line_item_in_any(std::span<const Layer> layers, ItemHash hash) {
  return check_any_portably(layers, hash);
}

bool mark_line_item(uint64_t* words, LineShape shape, ItemHash hash) {
  return mark_portably(words, shape, hash);
}

#endif

}  // namespace core::bloom

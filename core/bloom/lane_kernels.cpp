// SPDX-License-Identifier: MIT
#include "core/bloom/lane_kernels.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "core/bloom/arrays/lane_sets.h"
#include "core/bloom/line_walk.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace core::bloom {
namespace {

static_assert(std::endian::native == std::endian::little, "a word holds its lower lane first");

// Odd multipliers, one per lane. The highest five bits of a product are a position in the lane.
alignas(64) constexpr std::array<uint32_t, kLanes> kSalts{
    0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31,
    0xD1B54A33, 0x8CB92BA7, 0x2F0B4C47, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1};
constexpr int kPositionShift = 27;

// Base class of the line types, one for each instruction set. Points to the sixteen sets of K
// lanes, where K is the number of bits that an item sets in a line of the layer.
class LaneLine {
 public:
  using Walk = LaneWalk;

  LaneLine() = default;
  explicit LaneLine(LineShape shape) : rows_(&kLaneSetRows[shape.bits_per_line]) {}

 protected:
  const uint32_t* row(unsigned rotation) const { return rows_->rotations[rotation].data(); }

 private:
  const LaneSetRows* rows_ = nullptr;
};

class PortableLanes : public LaneLine {
 public:
  using LaneLine::LaneLine;

  // An item's bit position in every lane, and the rotation of its set of lanes. Both are the same
  // in all layers.
  struct Pattern {
    explicit Pattern(uint64_t positions) : rotation(lane_rotation(positions)) {
      const auto hash = static_cast<uint32_t>(positions >> 32);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        shifts[lane] = hash * kSalts[lane] >> kPositionShift;
      }
    }
    LaneSetRow shifts;
    unsigned rotation;
  };

  bool all_set(const uint64_t* words, uint64_t positions) const {
    return all_set(words, Pattern(positions));
  }
  bool all_set(const uint64_t* words, const Pattern& pattern) const {
    return missing(lanes_of(words), mask(pattern)) == 0;
  }
  bool set(uint64_t* words, uint64_t positions) const {
    LaneSetRow line = lanes_of(words);
    const LaneSetRow bits = mask(Pattern(positions));
    const bool is_new = missing(line, bits) != 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) line[lane] |= bits[lane];
    std::memcpy(words, line.data(), sizeof(line));
    return is_new;
  }

 private:
  static LaneSetRow lanes_of(const uint64_t* words) {
    LaneSetRow line;
    std::memcpy(line.data(), words, sizeof(line));
    return line;
  }
  static uint32_t missing(const LaneSetRow& line, const LaneSetRow& bits) {
    uint32_t missing = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) missing |= bits[lane] & ~line[lane];
    return missing;
  }
  LaneSetRow mask(const Pattern& pattern) const {
    const uint32_t* const ones = row(pattern.rotation);
    LaneSetRow bits;
    for (unsigned lane = 0; lane < kLanes; ++lane) bits[lane] = ones[lane] << pattern.shifts[lane];
    return bits;
  }
};

// Defines a LineKernels of functions compiled for the instruction set `target`. The loop over
// several lines is in separate functions, because a function with this loop must save registers. An
// item with one line does not need the loop.
#define BLOOMERY_LANE_KERNELS(name, Line, target)                                                \
  struct name {                                                                                  \
    target static bool check(const uint64_t* words, LineShape shape, ItemHash hash) {            \
      if (shape.lines_per_lookup != 1) return check_lines_of(words, shape, hash);                \
      const LaneWalk walk(hash, shape);                                                          \
      return Line(shape).all_set(words + walk.word_index(), walk.positions());                   \
    }                                                                                            \
    target static bool mark(uint64_t* words, LineShape shape, ItemHash hash) {                   \
      if (shape.lines_per_lookup != 1) return mark_lines_of(words, shape, hash);                 \
      const LaneWalk walk(hash, shape);                                                          \
      return Line(shape).set(words + walk.word_index(), walk.positions());                       \
    }                                                                                            \
    target static bool check_any(std::span<const Layer> layers, ItemHash hash) {                 \
      return check_in_any<Line>(layers, hash);                                                   \
    }                                                                                            \
    target static void check_group(std::span<const ArrayView> arrays,                            \
                                   std::span<const ItemHash> hashes, std::span<bool> found) {    \
      check_items<Line>(arrays, hashes, found);                                                  \
    }                                                                                            \
    target static uint64_t mark_group(uint64_t* words, const Geometry& geometry,                 \
                                      std::span<const ItemHash> hashes, std::span<bool> found) { \
      return mark_items(words, geometry, Line(geometry), is_fetched(geometry), hashes, found);   \
    }                                                                                            \
    static constexpr LineKernels kAll{check, mark, check_any, check_group, mark_group};          \
                                                                                                 \
   private:                                                                                      \
    [[gnu::noinline]] target static bool check_lines_of(const uint64_t* words, LineShape shape,  \
                                                        ItemHash hash) {                         \
      return check_item(words, shape, Line(shape), hash);                                        \
    }                                                                                            \
    [[gnu::noinline]] target static bool mark_lines_of(uint64_t* words, LineShape shape,         \
                                                       ItemHash hash) {                          \
      return mark_item(words, shape, Line(shape), hash);                                         \
    }                                                                                            \
  }

// `noinline`: portable kernels that are inlined into the functions that choose the kernels would
// make those functions save registers.
BLOOMERY_LANE_KERNELS(Portable, PortableLanes, [[gnu::noinline]]);

#if defined(__x86_64__)

#define BLOOMERY_AVX2 __attribute__((target("avx2")))
#define BLOOMERY_AVX512 __attribute__((target("avx512f")))

class Avx2Lanes : public LaneLine {
 public:
  using LaneLine::LaneLine;

  struct Pattern {
    BLOOMERY_AVX2 explicit Pattern(uint64_t positions) : rotation(lane_rotation(positions)) {
      const __m256i hash = _mm256_set1_epi32(static_cast<int>(positions >> 32));
      const auto* const salts = reinterpret_cast<const __m256i*>(kSalts.data());
      low = _mm256_srli_epi32(_mm256_mullo_epi32(hash, salts[0]), kPositionShift);
      high = _mm256_srli_epi32(_mm256_mullo_epi32(hash, salts[1]), kPositionShift);
    }
    __m256i low;
    __m256i high;
    unsigned rotation;
  };

  BLOOMERY_AVX2 bool all_set(const uint64_t* words, uint64_t positions) const {
    return all_set(words, Pattern(positions));
  }
  BLOOMERY_AVX2 bool all_set(const uint64_t* words, const Pattern& pattern) const {
    const auto* const ones = reinterpret_cast<const __m256i*>(row(pattern.rotation));
    const auto* const halves = reinterpret_cast<const __m256i*>(words);
    const __m256i low = _mm256_sllv_epi32(ones[0], pattern.low);
    const __m256i high = _mm256_sllv_epi32(ones[1], pattern.high);
    return (_mm256_testc_si256(_mm256_loadu_si256(halves), low) &
            _mm256_testc_si256(_mm256_loadu_si256(halves + 1), high)) != 0;
  }
  BLOOMERY_AVX2 bool set(uint64_t* words, uint64_t positions) const {
    const Pattern pattern(positions);
    const auto* const ones = reinterpret_cast<const __m256i*>(row(pattern.rotation));
    auto* const halves = reinterpret_cast<__m256i*>(words);
    const __m256i low_bits = _mm256_sllv_epi32(ones[0], pattern.low);
    const __m256i high_bits = _mm256_sllv_epi32(ones[1], pattern.high);
    const __m256i low = _mm256_loadu_si256(halves);
    const __m256i high = _mm256_loadu_si256(halves + 1);
    _mm256_storeu_si256(halves, _mm256_or_si256(low, low_bits));
    _mm256_storeu_si256(halves + 1, _mm256_or_si256(high, high_bits));
    return (_mm256_testc_si256(low, low_bits) & _mm256_testc_si256(high, high_bits)) == 0;
  }
};
BLOOMERY_LANE_KERNELS(Avx2, Avx2Lanes, BLOOMERY_AVX2);

class Avx512Lanes : public LaneLine {
  // The intrinsics without a mask read an uninitialized vector in g++ 12. With this mask the
  // compiler emits the same instructions.
  static constexpr __mmask16 kAllLanes = 0xFFFF;

 public:
  using LaneLine::LaneLine;

  struct Pattern {
    BLOOMERY_AVX512 explicit Pattern(uint64_t positions)
        : shifts(_mm512_maskz_srli_epi32(
              kAllLanes,
              _mm512_mullo_epi32(_mm512_set1_epi32(static_cast<int>(positions >> 32)),
                                 _mm512_load_si512(kSalts.data())),
              kPositionShift)),
          rotation(lane_rotation(positions)) {}
    __m512i shifts;
    unsigned rotation;
  };

  BLOOMERY_AVX512 bool all_set(const uint64_t* words, uint64_t positions) const {
    return all_set(words, Pattern(positions));
  }
  BLOOMERY_AVX512 bool all_set(const uint64_t* words, const Pattern& pattern) const {
    return is_subset(bits(pattern), _mm512_loadu_si512(words));
  }
  BLOOMERY_AVX512 bool set(uint64_t* words, uint64_t positions) const {
    const __m512i added = bits(Pattern(positions));
    const __m512i line = _mm512_loadu_si512(words);
    _mm512_storeu_si512(words, _mm512_or_si512(line, added));
    return !is_subset(added, line);
  }

 private:
  BLOOMERY_AVX512 __m512i bits(const Pattern& pattern) const {
    return _mm512_maskz_sllv_epi32(kAllLanes, _mm512_load_si512(row(pattern.rotation)),
                                   pattern.shifts);
  }
  BLOOMERY_AVX512 static bool is_subset(__m512i bits, __m512i line) {
    const __m512i missing = _mm512_maskz_andnot_epi32(kAllLanes, line, bits);
    return _mm512_test_epi32_mask(missing, missing) == 0;
  }
};
BLOOMERY_LANE_KERNELS(Avx512, Avx512Lanes, BLOOMERY_AVX512);

#elif defined(__aarch64__)

class NeonLanes : public LaneLine {
 public:
  using LaneLine::LaneLine;

  static constexpr unsigned kParts = 4;
  using Parts = std::array<uint32x4_t, kParts>;

  struct Pattern {
    explicit Pattern(uint64_t positions) : rotation(lane_rotation(positions)) {
      const uint32x4_t hash = vdupq_n_u32(static_cast<uint32_t>(positions >> 32));
      for (unsigned i = 0; i < kParts; ++i) {
        const uint32x4_t product = vmulq_u32(hash, vld1q_u32(kSalts.data() + 4 * i));
        shifts[i] = vreinterpretq_s32_u32(vshrq_n_u32(product, kPositionShift));
      }
    }
    std::array<int32x4_t, kParts> shifts;
    unsigned rotation;
  };

  bool all_set(const uint64_t* words, uint64_t positions) const {
    return all_set(words, Pattern(positions));
  }
  bool all_set(const uint64_t* words, const Pattern& pattern) const {
    return is_subset(bits(pattern), line_of(words));
  }
  bool set(uint64_t* words, uint64_t positions) const {
    const Parts added = bits(Pattern(positions));
    const Parts line = line_of(words);
    for (unsigned i = 0; i < kParts; ++i) {
      vst1q_u32(reinterpret_cast<uint32_t*>(words) + 4 * i, vorrq_u32(line[i], added[i]));
    }
    return !is_subset(added, line);
  }

 private:
  static Parts line_of(const uint64_t* words) {
    Parts line;
    for (unsigned i = 0; i < kParts; ++i) {
      line[i] = vld1q_u32(reinterpret_cast<const uint32_t*>(words) + 4 * i);
    }
    return line;
  }
  Parts bits(const Pattern& pattern) const {
    const uint32_t* const ones = row(pattern.rotation);
    Parts bits;
    for (unsigned i = 0; i < kParts; ++i) {
      bits[i] = vshlq_u32(vld1q_u32(ones + 4 * i), pattern.shifts[i]);
    }
    return bits;
  }
  static bool is_subset(const Parts& bits, const Parts& line) {
    uint32x4_t missing = vbicq_u32(bits[0], line[0]);
    for (unsigned i = 1; i < kParts; ++i) {
      missing = vorrq_u32(missing, vbicq_u32(bits[i], line[i]));
    }
    return vmaxvq_u32(missing) == 0;
  }
};
BLOOMERY_LANE_KERNELS(Neon, NeonLanes, );

#endif

enum class InstructionSet : uint8_t { kPortable, kAvx2, kAvx512, kNeon };

InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return InstructionSet::kAvx512;
  if (__builtin_cpu_supports("avx2")) return InstructionSet::kAvx2;
#elif defined(__aarch64__)
  return InstructionSet::kNeon;
#endif
  return InstructionSet::kPortable;
}
// `instruction_set` is kPortable until it is initialized. Until then the portable kernels are used,
// which give the same results.
const InstructionSet instruction_set = best_instruction_set();

// Calls function.operator()<Kernels>() for the processor's kernels. A branch that is predicted
// costs less than a call through a pointer.
template <class Function>
[[gnu::always_inline]] inline decltype(auto) with_best_kernels(Function&& function) {
#if defined(__x86_64__)
  if (instruction_set == InstructionSet::kAvx512) return function.template operator()<Avx512>();
  if (instruction_set == InstructionSet::kAvx2) return function.template operator()<Avx2>();
#elif defined(__aarch64__)
  if (instruction_set == InstructionSet::kNeon) return function.template operator()<Neon>();
#endif
  return function.template operator()<Portable>();
}

}  // namespace

uint32_t lane_bit(uint64_t positions, unsigned lane) {
  const auto hash = static_cast<uint32_t>(positions >> 32);
  return lane * kLaneBits + (hash * kSalts[lane] >> kPositionShift);
}

const LineKernels& portable_lane_kernels() {
  return Portable::kAll;
}

std::span<const LineKernels* const> supported_lane_kernels() {
  static const std::vector<const LineKernels*> kernels = [] {
    std::vector<const LineKernels*> supported{&Portable::kAll};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) supported.push_back(&Avx2::kAll);
    if (__builtin_cpu_supports("avx512f")) supported.push_back(&Avx512::kAll);
#elif defined(__aarch64__)
    supported.push_back(&Neon::kAll);
#endif
    return supported;
  }();
  return kernels;
}

const LineKernels& lane_kernels() {
  return with_best_kernels([]<class Kernels>() -> const LineKernels& { return Kernels::kAll; });
}

bool check_lane_item(const uint64_t* words, LineShape shape, ItemHash hash) {
  return with_best_kernels([&]<class Kernels>() { return Kernels::check(words, shape, hash); });
}

bool check_lane_item_in_any(std::span<const Layer> layers, ItemHash hash) {
  return with_best_kernels([&]<class Kernels>() { return Kernels::check_any(layers, hash); });
}

bool mark_lane_item(uint64_t* words, LineShape shape, ItemHash hash) {
  return with_best_kernels([&]<class Kernels>() { return Kernels::mark(words, shape, hash); });
}

}  // namespace core::bloom

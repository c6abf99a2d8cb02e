// SPDX-License-Identifier: MIT
#include "core/keyspace/slot.h"

#if defined(__x86_64__)
#include <tmmintrin.h>
#include <wmmintrin.h>
#endif

#include <array>
#include <cstddef>
#include <cstring>

#include "core/keyspace/key_hash.h"

namespace core::keyspace {
namespace {

constexpr unsigned kPolynomial = 0x1021;  // the term x^16 is implied
constexpr size_t kWordBytes = 8;
constexpr char kOpen = '{';
constexpr char kClose = '}';

struct Checksum {
  unsigned crc = 0;
  bool opens_tag = false;  // true if one of the bytes is '{'
};

// Row k holds the CRC remainder of each byte followed by k zero bytes. With eight rows, one step
// processes eight bytes (Kounavis and Berry, "Novel table lookup-based algorithms for
// high-performance CRC generation", 2008).
using Remainders = std::array<std::array<uint16_t, 256>, kWordBytes>;
constexpr Remainders kRemainders = [] {
  Remainders rows{};
  for (size_t byte = 0; byte < rows[0].size(); ++byte) {
    auto remainder = static_cast<unsigned>(byte << 8);
    for (auto& row : rows) {
      for (int bit = 0; bit < 8; ++bit) {
        const bool carries = (remainder & 0x8000U) != 0;
        remainder = (remainder << 1 ^ (carries ? kPolynomial : 0)) & 0xffff;
      }
      row[byte] = static_cast<uint16_t>(remainder);
    }
  }
  return rows;
}();

Checksum checksum_by_tables(std::string_view bytes) {
  Checksum sum{.opens_tag = bytes.find(kOpen) != std::string_view::npos};
  const auto byte = [&](size_t index) { return static_cast<unsigned char>(bytes[index]); };
  for (; bytes.size() >= kWordBytes; bytes.remove_prefix(kWordBytes)) {
    unsigned next =
        kRemainders[7][byte(0) ^ (sum.crc >> 8)] ^ kRemainders[6][byte(1) ^ (sum.crc & 0xff)];
    for (size_t i = 2; i < kWordBytes; ++i) next ^= kRemainders[kWordBytes - 1 - i][byte(i)];
    sum.crc = next;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum.crc = ((sum.crc << 8) & 0xffff) ^ kRemainders[0][(sum.crc >> 8) ^ byte(i)];
  }
  return sum;
}

#if defined(__x86_64__)

constexpr size_t kBlockBytes = 2 * kWordBytes;

// x^power divided by the polynomial: the remainder, and the lowest 64 bits of the quotient.
struct Division {
  uint64_t remainder = 1;
  uint64_t quotient = 0;
};
constexpr Division divide(int power) {
  Division division;
  for (; power > 0; --power) {
    const uint64_t carry = division.remainder >> 15;
    division.quotient = division.quotient << 1 | carry;
    division.remainder = (division.remainder << 1 ^ carry * kPolynomial) & 0xffff;
  }
  return division;
}

[[gnu::always_inline]] inline __m128i words_of(uint64_t high, uint64_t low) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

// Returns a value congruent to block * x^128. Each word is multiplied separately, so that blocks
// can be chained without a division.
[[gnu::target("pclmul,ssse3"), gnu::always_inline]] inline __m128i fold(__m128i block) {
  constexpr uint64_t kUpper = divide(192).remainder;
  constexpr uint64_t kLower = divide(128).remainder;
  const __m128i powers = words_of(kUpper, kLower);
  return _mm_xor_si128(_mm_clmulepi64_si128(block, powers, 0x11),
                       _mm_clmulepi64_si128(block, powers, 0x00));
}

// Returns the remainder of block * x^16 divided by the polynomial. A product with x^80 folds the
// upper word onto the lower one. Barrett's reduction then computes the quotient by another product,
// and the remainder from the polynomial's three terms (Gopal et al., "Fast CRC computation for
// generic polynomials using PCLMULQDQ instruction", 2009).
[[gnu::target("pclmul,ssse3"), gnu::always_inline]] inline uint64_t reduce(__m128i block) {
  constexpr Division kDivision = divide(80);
  const __m128i divisors = words_of(kDivision.quotient, kDivision.remainder);
  const __m128i folded = _mm_clmulepi64_si128(block, divisors, 0x01);
  const __m128i word = _mm_xor_si128(_mm_srli_si128(folded, 2), block);
  const __m128i product = _mm_clmulepi64_si128(word, divisors, 0x10);
  const auto quotient = static_cast<uint64_t>(
      _mm_cvtsi128_si64(_mm_xor_si128(word, _mm_srli_si128(product, kWordBytes))));
  const auto rest = static_cast<uint64_t>(_mm_cvtsi128_si64(folded));
  return (rest ^ quotient ^ quotient << 5 ^ quotient << 12) & 0xffff;
}

inline uint64_t load_word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return __builtin_bswap64(word);
}

inline uint64_t load_half(const char* at) {
  uint32_t half;
  std::memcpy(&half, at, sizeof(half));
  return __builtin_bswap32(half);
}

// Returns up to 7 bytes as a big-endian number.
inline uint64_t short_number(std::string_view bytes) {
  const size_t size = bytes.size();
  if (size >= 4) {
    return load_half(bytes.data()) << 8 * (size - 4) | load_half(bytes.data() + size - 4);
  }
  uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

// Returns the first `size` bytes, at most 16, as a big-endian number. If the two loads overlap, the
// shift removes the common bytes from the upper word.
inline __m128i block_of(std::string_view bytes, size_t size) {
  if (size < kWordBytes) {
    const uint64_t number = bytes.size() < kWordBytes
                                ? short_number(bytes)
                                : load_word(bytes.data()) >> 8 * (kWordBytes - size);
    return _mm_cvtsi64_si128(static_cast<int64_t>(number));
  }
  const size_t half_shift =
      4 * (kBlockBytes - size);  // two shifts, because a shift by 64 bits is undefined
  return words_of(load_word(bytes.data()) >> half_shift >> half_shift,
                  load_word(bytes.data() + size - kWordBytes));
}

// The first block has up to 16 bytes and is padded with leading zeros, which do not change the
// checksum. Each following block has exactly 16 bytes.
[[gnu::target("pclmul,ssse3"), gnu::always_inline]] inline Checksum checksum_by_product(
    std::string_view bytes) {
  const bool is_long = bytes.size() > kBlockBytes;
  const size_t head_size = is_long ? (bytes.size() - 1) % kBlockBytes + 1 : bytes.size();
  const __m128i opens = _mm_set1_epi8(kOpen);
  __m128i sum = block_of(bytes, head_size);
  __m128i tags = _mm_cmpeq_epi8(sum, opens);
  const char* const end = bytes.data() + bytes.size();
  const __m128i reversed = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (const char* at = bytes.data() + head_size; at != end; at += kBlockBytes) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    tags = _mm_or_si128(tags, _mm_cmpeq_epi8(block, opens));
    sum = _mm_xor_si128(fold(sum), _mm_shuffle_epi8(block, reversed));
  }
  return {static_cast<unsigned>(reduce(sum)), _mm_movemask_epi8(tags) != 0};
}

#endif

// Returns the part of the key that is hashed: the tag, or the whole key if there is no tag.
std::string_view tag_of(std::string_view key) {
  const size_t open = key.find(kOpen);
  if (open == std::string_view::npos) return key;
  const size_t close = key.find(kClose, open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

[[gnu::noinline]] unsigned slot_of_tag(std::string_view key) {
  return crc16(tag_of(key)) % kSlotCount;
}

// `whole` is the checksum of the whole key. It is computed even for keys with a tag, which do not
// need it, because few keys have a tag.
[[gnu::always_inline]] inline unsigned slot_of(std::string_view key, const Checksum& whole) {
  if (whole.opens_tag) [[unlikely]]
    return slot_of_tag(key);
  return whole.crc % kSlotCount;
}

#if defined(__x86_64__)

[[gnu::target("pclmul,ssse3")]] unsigned crc_by_product(std::string_view bytes) {
  return checksum_by_product(bytes).crc;
}
[[gnu::target("pclmul,ssse3")]] unsigned slot_by_product(std::string_view key) {
  return slot_of(key, checksum_by_product(key));
}
// Returns whether the processor supports the two functions above. Callers check this in a branch.
// An ifunc would not work with sanitizers, because ifunc resolvers run before the sanitizers'
// runtimes are initialized.
inline bool has_product() {
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3");
}

#endif

}  // namespace

uint16_t crc16_by_tables(std::string_view bytes) {
  return static_cast<uint16_t>(checksum_by_tables(bytes).crc);
}

uint16_t crc16(std::string_view bytes) {
#if defined(__x86_64__)
  if (has_product()) [[likely]]
    return static_cast<uint16_t>(crc_by_product(bytes));
#endif
  return crc16_by_tables(bytes);
}

unsigned slot_of(std::string_view key) {
#if defined(__x86_64__)
  if (has_product()) [[likely]]
    return slot_by_product(key);
#endif
  return slot_of(key, checksum_by_tables(key));
}

uint64_t hash_by_slot(uint64_t hash, std::string_view key) {
  constexpr uint64_t kOwnBits = (uint64_t{0xff} << kTagShift) | ((uint64_t{1} << kSlotShift) - 1);
  const unsigned slot = slot_of(key);
  return (hash & kOwnBits) | uint64_t{slot / kStripeCount} << kSlotShift |
         uint64_t{stripe_of_slot(slot)} << kStripeShift;
}

}  // namespace core::keyspace

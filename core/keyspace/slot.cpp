// SPDX-License-Identifier: MIT
#include "core/keyspace/slot.h"

#if defined(__x86_64__)
#include <wmmintrin.h>
#endif

#include <array>
#include <cstddef>
#include <cstring>

#include "core/keyspace/key_hash.h"

namespace core::keyspace {
namespace {

constexpr unsigned kPolynomial = 0x1021;  // and x^16
constexpr size_t kWordBytes = 8;
constexpr char kOpen = '{';
constexpr char kClose = '}';

struct Checksum {
  unsigned crc = 0;
  bool opens_tag = false;  // one of the bytes does
};

// Of a byte with k bytes of zero behind it, in row k: one step takes eight bytes (Kounavis and
// Berry, "Novel table lookup-based algorithms for high-performance CRC generation", 2008).
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

// floor(x^80 / polynomial) without its highest term, x^64.
constexpr uint64_t kReciprocal = [] {
  uint64_t quotient = 0;
  unsigned remainder = kPolynomial;  // behind the first step
  for (int bit = 63; bit >= 0; --bit) {
    const bool carries = (remainder & 0x8000U) != 0;
    if (carries) quotient |= uint64_t{1} << bit;
    remainder = (remainder << 1 ^ (carries ? kPolynomial : 0)) & 0xffff;
  }
  return quotient;
}();

// The remainder of word * x^16 by Barrett's reduction: the quotient by one product, the remainder
// from the polynomial's three terms (Gopal et al., "Fast CRC computation for generic polynomials
// using PCLMULQDQ instruction", 2009).
[[gnu::target("pclmul"), gnu::always_inline]] inline unsigned reduce(uint64_t word) {
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(word)),
                           _mm_cvtsi64_si128(static_cast<int64_t>(kReciprocal)), 0);
  const auto high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(product, product)));
  const uint64_t quotient = word ^ high;
  return static_cast<unsigned>(quotient ^ quotient << 5 ^ quotient << 12) & 0xffff;
}

// Whether one of eight bytes opens a tag: a byte of zero borrows from the bit above it (Anderson,
// https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord).
inline bool opens_tag(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  const uint64_t zero_where_open = word ^ (kOnes * static_cast<unsigned char>(kOpen));
  return ((zero_where_open - kOnes) & ~zero_where_open & (kOnes << 7)) != 0;
}

inline uint64_t load_word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, kWordBytes);
  return __builtin_bswap64(word);
}

// The first `size` bytes, at most a word; those before it in the word are zero, which changes no
// checksum.
inline uint64_t load_head(std::string_view bytes, size_t size) {
  if (bytes.size() >= kWordBytes) return load_word(bytes.data()) >> 8 * (kWordBytes - size);
  uint64_t word = 0;
  for (const char c : bytes) word = word << 8 | static_cast<unsigned char>(c);
  return word;
}

// Words follow each other by being added to the last remainder, which stands before them.
[[gnu::target("pclmul")]] Checksum checksum_by_product(std::string_view bytes) {
  if (bytes.empty()) return {};
  const size_t head_size = (bytes.size() - 1) % kWordBytes + 1;
  const uint64_t head = load_head(bytes, head_size);
  Checksum sum{reduce(head), opens_tag(head)};
  for (bytes.remove_prefix(head_size); !bytes.empty(); bytes.remove_prefix(kWordBytes)) {
    const uint64_t word = load_word(bytes.data());
    sum = {reduce(uint64_t{sum.crc} << 48 ^ word), sum.opens_tag || opens_tag(word)};
  }
  return sum;
}

#endif

// As in bitmap.cpp, a branch and not an ifunc.
inline Checksum checksum(std::string_view bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("pclmul")) [[likely]]
    return checksum_by_product(bytes);
#endif
  return checksum_by_tables(bytes);
}

// What of the name is hashed.
std::string_view tag_of(std::string_view key) {
  const size_t open = key.find(kOpen);
  if (open == std::string_view::npos) return key;
  const size_t close = key.find(kClose, open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

[[gnu::noinline]] unsigned slot_of_tag(std::string_view key) {
  return checksum(tag_of(key)).crc % kSlotCount;
}

}  // namespace

uint16_t crc16(std::string_view bytes) {
  return static_cast<uint16_t>(checksum(bytes).crc);
}

uint16_t crc16_by_tables(std::string_view bytes) {
  return static_cast<uint16_t>(checksum_by_tables(bytes).crc);
}

// One pass over the name, which seldom has a tag.
unsigned slot_of(std::string_view key) {
  const Checksum whole = checksum(key);
  if (!whole.opens_tag) [[likely]]
    return whole.crc % kSlotCount;
  return slot_of_tag(key);
}

uint64_t hash_by_slot(uint64_t hash, std::string_view key) {
  constexpr uint64_t kOwnBits = (uint64_t{0xff} << kTagShift) | ((uint64_t{1} << kSlotShift) - 1);
  const unsigned slot = slot_of(key);
  return (hash & kOwnBits) | uint64_t{slot / kStripeCount} << kSlotShift |
         uint64_t{stripe_of_slot(slot)} << kStripeShift;
}

}  // namespace core::keyspace

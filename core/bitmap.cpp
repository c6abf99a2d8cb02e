// SPDX-License-Identifier: MIT
#include "core/bitmap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstring>

namespace core::bitmap {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr size_t kStrideBytes = 4 * kWordBytes;

uint64_t load_word(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, kWordBytes);
  return word;
}

// Loads up to eight bytes as a big-endian number. Bytes beyond the end count as zero.
uint64_t load_big_endian(std::span<const uint8_t> bytes, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + index, std::min(kWordBytes, bytes.size() - index));
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  return word;
}

// Keeps four independent sums, so that no addition waits for the previous addition. The function is
// always inlined, because each caller compiles the loop for its own instruction set.
[[gnu::always_inline]] inline uint64_t count_all(std::span<const uint8_t> bytes) {
  std::array<uint64_t, 4> counts{};
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kStrideBytes; left -= kStrideBytes, at += kStrideBytes) {
    for (size_t lane = 0; lane < counts.size(); ++lane) {
      counts[lane] += static_cast<uint64_t>(std::popcount(load_word(at + lane * kWordBytes)));
    }
  }
  uint64_t total = counts[0] + counts[1] + counts[2] + counts[3];
  while (left > 0) {
    const size_t taken = std::min(left, kWordBytes);
    uint64_t word = 0;
    std::memcpy(&word, at, taken);
    total += static_cast<uint64_t>(std::popcount(word));
    at += taken;
    left -= taken;
  }
  return total;
}

#if defined(__x86_64__)
// Baseline x86-64 has no popcnt instruction. The caller selects this function by a branch. It does
// not use an ifunc, because ifunc resolvers run before the sanitizers' runtimes are initialized.
[[gnu::target("popcnt")]] uint64_t count_with_popcnt(std::span<const uint8_t> bytes) {
  return count_all(bytes);
}
#endif

// Counts the set bits of a byte from bit `first` to bit `last`, inclusive.
uint64_t count_within_byte(uint8_t byte, unsigned first, unsigned last) {
  const unsigned mask = (0xffU >> first) & (0xffU << (7 - last));
  return static_cast<uint64_t>(std::popcount(byte & mask));
}

// Starts at `index` and skips blocks of 32 bytes in which every word equals `filler`. Returns the
// index of the first byte that was not skipped.
size_t skip_uniform_strides(std::span<const uint8_t> bytes, size_t index, uint64_t filler) {
  for (; bytes.size() - index >= kStrideBytes; index += kStrideBytes) {
    const uint8_t* at = bytes.data() + index;
    uint64_t difference = 0;
    for (size_t lane = 0; lane < 4; ++lane)
      difference |= load_word(at + lane * kWordBytes) ^ filler;
    if (difference != 0) break;
  }
  return index;
}

}  // namespace

bool get_bit(std::span<const uint8_t> bytes, uint64_t bit_offset) {
  const uint64_t index = bit_offset / 8;
  if (index >= bytes.size()) return false;
  return (bytes[index] >> (7 - bit_offset % 8)) & 1;
}

bool set_bit(std::span<uint8_t> bytes, uint64_t bit_offset, bool value) {
  assert(bit_offset / 8 < bytes.size());
  uint8_t& byte = bytes[bit_offset / 8];
  const auto mask = static_cast<uint8_t>(0x80U >> (bit_offset % 8));
  const bool old = (byte & mask) != 0;
  byte = static_cast<uint8_t>(value ? byte | mask : byte & ~mask);
  return old;
}

uint64_t count_bits(std::span<const uint8_t> bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("popcnt")) return count_with_popcnt(bytes);
#endif
  return count_all(bytes);
}

uint64_t count_bits(std::span<const uint8_t> bytes, uint64_t first_bit, uint64_t last_bit) {
  if (bytes.empty()) return 0;
  last_bit = std::min<uint64_t>(last_bit, bytes.size() * 8 - 1);
  if (first_bit > last_bit) return 0;
  const size_t first_byte = first_bit / 8;
  const size_t last_byte = last_bit / 8;
  const auto first_in_byte = static_cast<unsigned>(first_bit % 8);
  const auto last_in_byte = static_cast<unsigned>(last_bit % 8);
  if (first_byte == last_byte) {
    return count_within_byte(bytes[first_byte], first_in_byte, last_in_byte);
  }
  return count_within_byte(bytes[first_byte], first_in_byte, 7) +
         count_bits(bytes.subspan(first_byte + 1, last_byte - first_byte - 1)) +
         count_within_byte(bytes[last_byte], 0, last_in_byte);
}

std::optional<uint64_t> find_bit(std::span<const uint8_t> bytes, bool bit, uint64_t first_bit,
                                 uint64_t last_bit) {
  if (bytes.empty()) return std::nullopt;
  last_bit = std::min<uint64_t>(last_bit, bytes.size() * 8 - 1);
  if (first_bit > last_bit) return std::nullopt;
  bytes = bytes.first(last_bit / 8 + 1);
  // To search for a zero bit, words are inverted, so that the match becomes a one bit. The
  // inversion also sets the padding bits after the last byte. A match in the padding is beyond
  // last_bit, so it is rejected.
  const uint64_t filler = bit ? 0 : ~uint64_t{0};
  uint64_t mask = ~uint64_t{0} >> (first_bit % 8);
  size_t index = first_bit / 8;
  while (index < bytes.size()) {
    const uint64_t candidates = (load_big_endian(bytes, index) ^ filler) & mask;
    if (candidates != 0) {
      const uint64_t position = index * 8 + static_cast<uint64_t>(std::countl_zero(candidates));
      return position <= last_bit ? std::optional(position) : std::nullopt;
    }
    mask = ~uint64_t{0};
    index += std::min(kWordBytes, bytes.size() - index);
    index = skip_uniform_strides(bytes, index, filler);
  }
  return std::nullopt;
}

}  // namespace core::bitmap

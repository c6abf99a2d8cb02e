// SPDX-License-Identifier: MIT
//
// Copies and comparisons of byte strings that are mostly short, without a function call.
//
// For keys and small values a call of libc's memcpy or memcmp costs several times as much as the
// work itself. The call costs most if libc uses AVX-512. Up to 32 bytes are copied or compared as a
// few machine words, which may overlap.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace core {

namespace detail {

template <class Word>
void copy_two(char* to, const char* from, size_t size) {
  Word head;
  Word tail;
  std::memcpy(&head, from, sizeof(Word));
  std::memcpy(&tail, from + size - sizeof(Word), sizeof(Word));
  std::memcpy(to, &head, sizeof(Word));
  std::memcpy(to + size - sizeof(Word), &tail, sizeof(Word));
}

template <class Word>
bool equal_two(const char* a, const char* b, size_t size) {
  Word a_head;
  Word b_head;
  Word a_tail;
  Word b_tail;
  std::memcpy(&a_head, a, sizeof(Word));
  std::memcpy(&b_head, b, sizeof(Word));
  std::memcpy(&a_tail, a + size - sizeof(Word), sizeof(Word));
  std::memcpy(&b_tail, b + size - sizeof(Word), sizeof(Word));
  return ((a_head ^ b_head) | (a_tail ^ b_tail)) == 0;
}

}  // namespace detail

// REQUIRES: the ranges do not overlap.
[[gnu::always_inline]] inline void copy_bytes(char* to, std::string_view bytes) {
  const char* const from = bytes.data();
  const size_t size = bytes.size();
  if (size > 32) {
    std::memcpy(to, from, size);
  } else if (size > 16) {
    detail::copy_two<uint64_t>(to, from, 16);
    detail::copy_two<uint64_t>(to + size - 16, from + size - 16, 16);
  } else if (size >= 8) {
    detail::copy_two<uint64_t>(to, from, size);
  } else if (size >= 4) {
    detail::copy_two<uint32_t>(to, from, size);
  } else if (size >= 2) {
    detail::copy_two<uint16_t>(to, from, size);
  } else if (size == 1) {
    *to = *from;
  }
}

[[gnu::always_inline]] inline bool equal_bytes(std::string_view a, std::string_view b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  if (size > 32) return std::memcmp(a.data(), b.data(), size) == 0;
  if (size > 16) {
    return detail::equal_two<uint64_t>(a.data(), b.data(), 16) &&
           detail::equal_two<uint64_t>(a.data() + size - 16, b.data() + size - 16, 16);
  }
  if (size >= 8) return detail::equal_two<uint64_t>(a.data(), b.data(), size);
  if (size >= 4) return detail::equal_two<uint32_t>(a.data(), b.data(), size);
  if (size >= 2) return detail::equal_two<uint16_t>(a.data(), b.data(), size);
  return size == 0 || *a.data() == *b.data();
}

}  // namespace core

// SPDX-License-Identifier: MIT
//
// ByteReader and ByteWriter: the lengths, strings and numbers that snapshots, DUMP payloads and
// filter headers are made of.
//
//   ByteReader reader(payload);
//   const uint64_t count = reader.length();
//   const StoredString name = reader.string();
//   if (!reader.ok()) return Error{"ERR Bad data format"};
//
// Invariants: a reader never passes the end of its bytes; after the first fault ok() is false for
// good and every read gives zeros or nothing, so one check at the end suffices. A length read is
// only a claim: nothing is allocated here.
// Thread safety: values; a reader views bytes that must outlive it, a writer a string.
// Source: docs/formats.md, "Lengths and strings".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace persistence {

// A string as it is stored: its size is known before it is unpacked.
class StoredString {
 public:
  StoredString() = default;
  static StoredString plain(std::string_view bytes) { return {bytes, bytes.size(), false}; }
  static StoredString packed(std::string_view bytes, uint64_t size) { return {bytes, size, true}; }
  static StoredString integer(int32_t value);

  uint64_t size() const { return size_; }
  // The bytes themselves, when they need no unpacking; they live as long as this and the payload.
  bool is_packed() const { return packed_; }
  std::string_view view() const {
    return is_integer_ ? std::string_view(digits_.data(), size_) : bytes_;
  }
  // False when the packed bytes are damaged. REQUIRES: out.size() == size().
  [[nodiscard]] bool unpack(std::span<char> out) const;

 private:
  StoredString(std::string_view bytes, uint64_t size, bool is_packed)
      : bytes_(bytes), size_(size), packed_(is_packed) {}

  std::string_view bytes_;
  uint64_t size_ = 0;
  bool packed_ = false;
  bool is_integer_ = false;
  std::array<char, 11> digits_{};  // the decimal text of any int32_t
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  void fail() {
    ok_ = false;
    rest_ = {};
  }
  std::string_view rest() const { return rest_; }

  // The next `count` bytes, or nothing when there are fewer.
  std::string_view take(uint64_t count);
  // Little-endian, as everything but lengths.
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int64_t i64() { return number<int64_t>(); }
  double f64() { return number<double>(); }
  uint64_t length();
  StoredString string();

 private:
  template <class Number>
  Number number();
  uint64_t big_endian(size_t byte_count);
  StoredString special_string(unsigned kind);
  StoredString packed_string();

  std::string_view rest_;
  bool ok_ = true;
};

enum class Packing : uint8_t { kNever, kIfSmaller };

class ByteWriter {
 public:
  // Appends to `out`. Throws std::bad_alloc as the string does.
  explicit ByteWriter(std::string& out) : out_(out) {}

  void bytes(std::string_view bytes) { out_.append(bytes); }
  void u8(uint8_t value) { number(value); }
  void u16(uint16_t value) { number(value); }
  void u32(uint32_t value) { number(value); }
  void u64(uint64_t value) { number(value); }
  void i64(int64_t value) { number(value); }
  void f64(double value) { number(value); }
  // In the shortest form.
  void length(uint64_t value);
  // In the form that Redis would choose.
  void string(std::string_view text, Packing packing);

 private:
  template <class Number>
  void number(Number value);
  void big_endian(uint64_t value, size_t byte_count);
  bool integer_string(std::string_view text);
  bool packed_string(std::string_view text);

  std::string& out_;
};

}  // namespace persistence

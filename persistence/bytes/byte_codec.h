// SPDX-License-Identifier: MIT
//
// ByteReader and ByteWriter: read and write the numbers and lengths of snapshots, DUMP payloads and
// filter headers. ByteWriter also writes strings; StreamReader reads them.
//
//   ByteReader reader(payload);
//   const uint64_t count = reader.length();
//   const double rate = reader.f64();
//   if (!reader.ok()) return Error{"ERR Bad data format"};
//
// Invariants: a reader never passes the end of its bytes. After the first fault ok() stays false
// and every read returns 0 or an empty view, so one check at the end suffices. A length is not
// trusted: nothing is allocated for it.
// Thread safety: one thread at a time may use an object. A reader's bytes and a writer's target
// must outlive the reader or writer.
// Source: docs/formats.md, "Lengths and strings".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "persistence/bytes/chunked_output.h"

namespace persistence {

// The first bytes of strings that are not stored as plain bytes.
enum class SpecialString : uint8_t { kInt8 = 0xC0, kInt16 = 0xC1, kInt32 = 0xC2, kLzf = 0xC3 };
inline bool is_special_string(uint8_t first) {
  return first >> 6 == 3;
}

// Returns the number of bytes of a length whose first byte is `first`; 1 if `first` is invalid.
size_t encoded_length_bytes(uint8_t first);

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie");

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  void fail() {
    ok_ = false;
    rest_ = std::string_view{};
  }
  std::string_view rest() const { return rest_; }

  // Returns the next `count` bytes, or an empty view if fewer bytes are left.
  std::string_view take(uint64_t count);
  // All numbers are read as little-endian, except lengths.
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int64_t i64() { return number<int64_t>(); }
  double f64() { return number<double>(); }
  uint64_t length();

 private:
  template <class Number>
  Number number() {
    Number value{};
    const std::string_view bytes = take(sizeof(Number));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(Number));
    return value;
  }
  uint64_t big_endian(size_t byte_count);

  std::string_view rest_;
  bool ok_ = true;
};

enum class Packing : uint8_t { kNever, kIfSmaller };

class ByteWriter {
 public:
  // Creates a writer that appends to `out`. Appending may throw std::bad_alloc.
  explicit ByteWriter(std::string& out) : text_(&out) {}
  explicit ByteWriter(ChunkedOutput& out) : chunks_(&out) {}

  bool is_chunked() const { return chunks_ != nullptr; }
  // Returns false after an error of the ChunkedOutput, which then drops all further bytes.
  bool ok() const { return chunks_ == nullptr || chunks_->ok(); }
  void bytes(std::string_view bytes) {
    if (chunks_ != nullptr) {
      chunks_->append(bytes);
    } else {
      text_->append(bytes);
    }
  }
  void u8(uint8_t value) { number(value); }
  void u16(uint16_t value) { number(value); }
  void u32(uint32_t value) { number(value); }
  void u64(uint64_t value) { number(value); }
  void i64(int64_t value) { number(value); }
  void f64(double value) { number(value); }
  // Writes a length in its shortest form.
  void length(uint64_t value);
  // Writes the string in the form that Redis would choose. REQUIRES: `text` does not change during
  // the call. For text that may change, use length() and bytes().
  void string(std::string_view text, Packing packing);

 private:
  template <class Number>
  void number(Number value) {
    bytes({reinterpret_cast<const char*>(&value), sizeof(Number)});
  }
  void big_endian(uint64_t value, size_t byte_count);
  bool integer_string(std::string_view text);
  bool packed_string(std::string_view text);

  std::string* text_ = nullptr;
  ChunkedOutput* chunks_ = nullptr;
};

}  // namespace persistence

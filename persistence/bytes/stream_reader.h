// SPDX-License-Identifier: MIT
//
// StreamReader and StringReader: read the lengths, numbers and strings of snapshots and DUMP
// payloads, from memory or piece by piece from a ByteSource.
//
//   StreamReader reader(source, {});
//   StringReader text = reader.string();
//   std::string out(text.size(), '\0');   // only after a check of the memory budget
//   if (!text.read(out)) return reader.error();
//
// Invariants: after the first fault ok() stays false, every read returns 0, an empty view or false,
// and error() describes the fault and its offset. The size of a string is at most the source's
// size_bound() times the best compression ratio, and the reader allocates nothing for the string.
// The reader reads at most one buffer ahead of the requested bytes.
// Thread safety: one thread at a time may use an object.
// Source: docs/formats.md, "Lengths and strings".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/byte_stream.h"
#include "persistence/bytes/raw_bytes.h"

namespace persistence {

class StringReader;

class StreamReader {
 public:
  struct Options {
    size_t buffer_bytes = size_t{256} << 10;
    bool sums = false;
    std::function<void()> on_piece;  // called after each piece has been read
  };
  // Creates a reader of `bytes`, which must outlive the reader and are not copied.
  explicit StreamReader(std::string_view bytes);
  // `source` must outlive the reader.
  StreamReader(ByteSource& source, Options options);
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  bool ok() const { return !error_; }
  void fail(std::string_view reason, core::ErrorCode code = core::ErrorCode::kDamaged);
  // Returns the first error as "offset 123: reason". REQUIRES: !ok().
  const core::Error& error() const { return *error_; }
  // Returns the number of bytes consumed.
  uint64_t offset() const { return loaded_bytes_ - static_cast<uint64_t>(end_ - next_); }
  // Returns an upper bound of the number of bytes that follow.
  uint64_t left_bound() const;
  // Returns the CRC-64 of the bytes consumed; 0 if Options::sums is false.
  uint64_t sum();

  // All numbers are read as little-endian, except lengths.
  uint8_t u8() { return parse(&ByteReader::u8, 1); }
  uint16_t u16() { return parse(&ByteReader::u16, 2); }
  uint32_t u32() { return parse(&ByteReader::u32, 4); }
  uint64_t u64() { return parse(&ByteReader::u64, 8); }
  int64_t i64() { return parse(&ByteReader::i64, 8); }
  double f64() { return parse(&ByteReader::f64, 8); }
  uint64_t length();
  // Returns a reader of the next string. The string must be read or skipped before anything else.
  StringReader string();
  // Fills `out` completely, or fails.
  bool read(std::span<char> out);
  bool skip(uint64_t count);
  // Begins a capture: from now on, all bytes read or skipped are appended to `out`. A skip
  // that would capture more than `bytes_max` bytes fails; end_capture() undoes that failure.
  // REQUIRES: the reader has a source. Until end_capture(), each read() is smaller than the buffer;
  // only skip() may be larger.
  void begin_capture(RawBytes& out, uint64_t bytes_max);
  // Ends the capture. Returns false if `bytes_max` was exceeded. The reader is then back where the
  // capture began, without the error, and `out` is as it was before.
  bool end_capture();
  // Returns whether no byte follows, and reads ahead if needed.
  bool at_end();
  // Returns the bytes that were read from the source but not consumed.
  std::string_view read_ahead() const { return {next_, static_cast<size_t>(end_ - next_)}; }

 private:
  friend class StringReader;
  // The maximum distance of LZF references.
  static constexpr size_t kWindowBytes = 8192;
  using Window = std::array<char, kWindowBytes>;

  struct Capture {
    RawBytes& out;
    const size_t begin;  // offset in `out` at which the capture begins
    const uint64_t bytes_max;
    const char* copied;  // end of the bytes that are already in `out`

    // Checksum of the bytes before the capture. nullopt until the first captured bytes leave the
    // buffer, because the checksum is computed only then.
    std::optional<uint64_t> sum_before;
    bool is_overfull = false;
  };

  template <class Value>
  Value parse(Value (ByteReader::*method)(), size_t size) {
    if (!ensure(size)) return Value{};
    ByteReader reader({next_, size});
    const Value value = (reader.*method)();
    if (!reader.ok()) {
      fail("a length has a form that does not exist");
      return Value{};
    }
    next_ += size;
    return value;
  }
  bool ensure(size_t size);
  bool load_more();
  bool read_directly(std::span<char> out);
  std::string_view take_loaded(uint64_t size_max);
  std::optional<std::string_view> take_whole(uint64_t size);
  // Adds the consumed bytes to the checksum and to the capture.
  void settle_taken();
  void sum_up_to(const char* end);
  void copy_captured();
  bool has_room_to_capture(uint64_t count);
  void give_back();
  bool allows(uint64_t size);
  Window& window();

  ByteSource* source_ = nullptr;
  Options options_;
  std::string buffer_;
  const char* next_ = nullptr;    // the next byte to consume
  const char* end_ = nullptr;     // end of the loaded bytes
  const char* summed_ = nullptr;  // end of the bytes that sum_ covers; not beyond next_
  uint64_t loaded_bytes_ = 0;     // number of bytes read from the source
  uint64_t bound_;
  uint64_t sum_ = 0;
  std::optional<core::Error> error_;
  std::unique_ptr<Window> window_;
  std::optional<Capture> capture_;
};

// StringReader: a string being read, in any of its stored forms.
class StringReader {
 public:
  // Returns a reader of a plain string, which consists of the next `size` bytes of `reader`.
  static StringReader plain(StreamReader& reader, uint64_t size);

  uint64_t size() const { return size_; }
  // Fills `out` with the next bytes. REQUIRES: the string has that many bytes left.
  bool read(std::span<char> out);
  // Does the same as read(), but is faster if the memory at `out` was never touched.
  bool read_fresh(std::span<char> out);
  // Returns the next bytes without a copy: at most `size_max`, and only as many as the StreamReader
  // has loaded. The bytes are valid until the reader is used again. Returns an empty view after a
  // fault, or if the string is not stored as plain bytes.
  std::string_view take_loaded(uint64_t size_max);
  // Returns the whole string without a copy; the bytes are valid until the reader is used again.
  // Returns nullopt after a fault, or if the string is not stored as plain bytes. Also returns
  // nullopt if the reader has a source and the string is longer than the buffer. REQUIRES: no part
  // of the string has been read.
  std::optional<std::string_view> take_whole();
  // Skips the rest of the string. Compressed bytes are not checked.
  bool skip();

 private:
  friend class StreamReader;
  enum class Form : uint8_t { kPlain, kInteger, kPacked };

  StringReader(StreamReader& reader, Form form, uint64_t size)
      : reader_(reader), size_(size), left_(size), form_(form) {}
  static StringReader integer(StreamReader& reader, int32_t value);
  static StringReader packed(StreamReader& reader);

  bool unpack(std::span<char> out);
  bool unpack_whole(std::span<char> out);
  bool next_run();
  void copy_literal(std::span<char> out);
  void copy_match(std::span<char> out);
  bool fail_unpacking();

  StreamReader& reader_;
  uint64_t size_;
  uint64_t left_;
  uint64_t packed_left_ = 0;  // number of LZF bytes that no run has consumed yet
  unsigned literal_left_ = 0;
  unsigned match_left_ = 0;
  unsigned match_offset_ = 0;
  Form form_;
  std::array<char, 11> digits_{};  // holds the decimal text of any int32_t
};

}  // namespace persistence

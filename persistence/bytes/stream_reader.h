// SPDX-License-Identifier: MIT
//
// StreamReader and StringReader: the lengths, numbers and strings of snapshots and DUMP payloads,
// from memory or piece by piece from a ByteSource.
//
//   StreamReader reader(source, {});
//   StringReader text = reader.string();
//   std::string out(text.size(), '\0');   // only after asking whether that much may be had
//   if (!text.read(out)) return reader.error();
//
// Invariants: after the first fault ok() is false for good, every read gives zeros or nothing, and
// error() names the fault and its offset. The size of a string is at most what the source's bound
// allows, times what packing can save; nothing is allocated here for it. Nothing is read of a
// source beyond what was asked for, rounded up to the buffer.
// Thread safety: none; one user at a time.
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
    std::function<void()> on_piece;  // called after each piece that came in
  };
  // Of bytes in memory, which must outlive it and are not copied.
  explicit StreamReader(std::string_view bytes);
  // The source must outlive it.
  StreamReader(ByteSource& source, Options options);
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  bool ok() const { return !error_; }
  void fail(std::string_view reason);
  // "offset 123: reason". REQUIRES: !ok().
  const core::Error& error() const { return *error_; }
  // Bytes taken so far.
  uint64_t offset() const { return loaded_bytes_ - static_cast<uint64_t>(end_ - next_); }
  // At most so many bytes follow.
  uint64_t left_bound() const;
  // CRC-64 of the bytes taken so far; 0 without `sums`.
  uint64_t sum();

  // Little-endian, as everything but lengths.
  uint8_t u8() { return parse(&ByteReader::u8, 1); }
  uint16_t u16() { return parse(&ByteReader::u16, 2); }
  uint32_t u32() { return parse(&ByteReader::u32, 4); }
  uint64_t u64() { return parse(&ByteReader::u64, 8); }
  int64_t i64() { return parse(&ByteReader::i64, 8); }
  double f64() { return parse(&ByteReader::f64, 8); }
  uint64_t length();
  // The string that comes next; it must be read or skipped before anything else.
  StringReader string();
  // Fills `out`, or fails.
  bool read(std::span<char> out);
  bool skip(uint64_t count);
  // Copies what is taken or skipped from now on to the end of `out`. A skip that would make that
  // more than `bytes_max` fails, so that end_capture() can take it back. REQUIRES: a source, and
  // that nothing is read past the buffer until end_capture().
  void begin_capture(RawBytes& out, uint64_t bytes_max);
  // False when there was too much: the reader then stands where the capture began, without the
  // error, and `out` is as it was.
  bool end_capture();
  // Whether nothing follows; reads ahead to know.
  bool at_end();
  // What was read from the source but not taken.
  std::string_view read_ahead() const { return {next_, static_cast<size_t>(end_ - next_)}; }

 private:
  friend class StringReader;
  // References of LZF reach back so far.
  static constexpr size_t kWindowBytes = 8192;
  using Window = std::array<char, kWindowBytes>;

  struct Capture {
    RawBytes& out;
    const size_t begin;  // of `out`
    const uint64_t bytes_max;
    const char* copied;                  // up to here it is in `out`
    std::optional<uint64_t> sum_before;  // set when something of it leaves the buffer
    bool is_overfull = false;
  };

  template <class Value>
  Value parse(Value (ByteReader::*method)(), size_t size);
  bool ensure(size_t size);
  bool load_more();
  bool read_directly(std::span<char> out);
  bool skip_directly(uint64_t count);
  std::string_view take_loaded(uint64_t size_max);
  std::optional<std::string_view> take_whole(uint64_t size);
  // What was taken is in the sum and in the capture then.
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
  const char* next_ = nullptr;    // the next byte to be taken
  const char* end_ = nullptr;     // where the loaded ones end
  const char* summed_ = nullptr;  // up to here, and not beyond next_, they are in sum_
  uint64_t loaded_bytes_ = 0;     // of the source
  uint64_t bound_;
  uint64_t sum_ = 0;
  std::optional<core::Error> error_;
  std::unique_ptr<Window> window_;
  std::optional<Capture> capture_;
};

// A string being read, in whatever form it is stored.
class StringReader {
 public:
  // The next `size` bytes of `reader`.
  static StringReader plain(StreamReader& reader, uint64_t size);

  uint64_t size() const { return size_; }
  // Fills `out` with the bytes that come next. REQUIRES: as many are left.
  bool read(std::span<char> out);
  // The same; `out` is memory that nobody has touched yet.
  bool read_fresh(std::span<char> out);
  // The bytes that come next, at most `size_max` and as many as are loaded, without copying them;
  // they stay until the reader is used again. Empty when they have to be unpacked, or on a fault.
  std::string_view take_loaded(uint64_t size_max);
  // The whole string in the same way; nullopt when it does not lie in memory in one piece, or has
  // to be unpacked. REQUIRES: nothing of it has been read.
  std::optional<std::string_view> take_whole();
  // Passes over what is left, without looking at packed bytes.
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
  uint64_t packed_left_ = 0;  // bytes of LZF that no run has taken yet
  unsigned literal_left_ = 0;
  unsigned match_left_ = 0;
  unsigned match_offset_ = 0;
  Form form_;
  std::array<char, 11> digits_{};  // the decimal text of any int32_t
};

}  // namespace persistence

// SPDX-License-Identifier: MIT
#include "persistence/bytes/stream_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "persistence/bytes/chunked_output.h"
#include "persistence/bytes/crc64.h"
#include "tests/support/memory_streams.h"

namespace persistence {
namespace {

// A source that returns at most `piece_bytes` per read.
class SlowSource final : public ByteSource {
 public:
  SlowSource(std::string_view bytes, size_t piece_bytes)
      : memory_(bytes), piece_bytes_(piece_bytes) {}
  core::Result<size_t> read(std::span<char> out) override {
    return memory_.read(out.first(std::min(out.size(), piece_bytes_)));
  }

 private:
  MemorySource memory_;
  size_t piece_bytes_;
};

std::string packed(std::string_view text, Packing packing) {
  std::string out;
  ByteWriter(out).string(text, packing);
  return out;
}

// Reads a string in parts of `part_bytes`.
std::string read_string(StreamReader& reader, size_t part_bytes) {
  StringReader string = reader.string();
  std::string text(string.size(), '?');
  for (size_t at = 0; at < text.size(); at += part_bytes) {
    const std::span<char> rest = std::span(text).subspan(at);
    if (!string.read(rest.first(std::min(part_bytes, rest.size())))) return "failed";
  }
  return text;
}

std::vector<std::string> texts() {
  constexpr uint64_t kSeed = 31;
  std::mt19937_64 random(kSeed);
  std::vector<std::string> texts = {"",
                                    "x",
                                    "-7",
                                    "12345",
                                    "-2147483648",
                                    "2147483648",
                                    "007",
                                    std::string(1000, 'z'),
                                    std::string(20000, '\0')};
  // Texts that repeat earlier bytes, at distances below, at and above the maximum distance of LZF.
  for (const size_t period : {3, 300, 8191, 8192, 8193, 9000}) {
    std::string text;
    while (text.size() < period) text.push_back(static_cast<char>(random()));
    while (text.size() < 30000) text += text.substr(0, 1 + random() % 500);
    texts.push_back(text);
  }
  return texts;
}

TEST(StreamReader, ReadsStringsOfAllFormsInAnyPieces) {
  for (const std::string& text : texts()) {
    for (const Packing packing : {Packing::kNever, Packing::kIfSmaller}) {
      const std::string bytes = packed(text, packing) + "next";
      for (const size_t piece_bytes : {1, 7, 100000}) {
        for (const size_t part_bytes : {1, 1000, 100000}) {
          SlowSource source(bytes, piece_bytes);
          StreamReader reader(source, {.buffer_bytes = 64, .sums = true, .on_piece = {}});
          ASSERT_EQ(read_string(reader, part_bytes), text);
          EXPECT_EQ(reader.offset(), bytes.size() - 4);
          EXPECT_EQ(reader.sum(), crc64(0, std::string_view(bytes).substr(0, bytes.size() - 4)));
          std::string next(4, ' ');
          EXPECT_TRUE(reader.read(next));
          EXPECT_EQ(next, "next");
          EXPECT_TRUE(reader.at_end());
        }
      }
      for (const size_t part_bytes : {5000, 100000}) {
        StreamReader memory(bytes);
        EXPECT_EQ(read_string(memory, part_bytes), text);
        EXPECT_EQ(memory.read_ahead(), "next");
      }
    }
  }
}

TEST(StreamReader, SkipsStringsOfAllForms) {
  for (const std::string& text : texts()) {
    for (const Packing packing : {Packing::kNever, Packing::kIfSmaller}) {
      const std::string bytes = packed(text, packing) + "next";
      StreamReader reader(bytes);
      EXPECT_TRUE(reader.string().skip());
      EXPECT_EQ(reader.read_ahead(), "next");
      StreamReader half_read(bytes);
      StringReader string = half_read.string();
      std::string half(text.size() / 2, ' ');
      EXPECT_TRUE(string.read(half));
      EXPECT_TRUE(string.skip());
      EXPECT_EQ(half_read.read_ahead(), "next");
    }
  }
}

TEST(StreamReader, ReturnsLoadedBytesWithoutACopy) {
  const std::string text(1000, 't');
  const std::string bytes = packed(text, Packing::kNever) + "next";
  for (const size_t buffer_bytes : {64, 5000}) {
    SlowSource source(bytes, 300);
    StreamReader reader(source, {.buffer_bytes = buffer_bytes, .sums = true, .on_piece = {}});
    StringReader string = reader.string();
    std::string taken;
    while (taken.size() < text.size()) {
      const std::string_view part = string.take_loaded(150);
      ASSERT_FALSE(part.empty());
      ASSERT_LE(part.size(), 150U);
      taken += part;
    }
    EXPECT_EQ(taken, text);
    EXPECT_TRUE(string.take_loaded(1).empty());
    EXPECT_EQ(reader.sum(), crc64(0, std::string_view(bytes).substr(0, bytes.size() - 4)));
  }
  StreamReader memory(bytes);
  EXPECT_EQ(memory.string().take_loaded(5000), text) << "only the bytes of the string";
  EXPECT_EQ(memory.read_ahead(), "next");
  for (const std::string_view unpackable : {"12", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"}) {
    const std::string stored = packed(unpackable, Packing::kIfSmaller);
    StreamReader reader(stored);
    StringReader string = reader.string();
    EXPECT_FALSE(string.take_whole());
    EXPECT_TRUE(string.take_loaded(5000).empty());
    std::string out(unpackable.size(), ' ');
    EXPECT_TRUE(string.read(out));
    EXPECT_EQ(out, unpackable);
  }
}

TEST(StreamReader, ReturnsWholeStringsThatFitTheBuffer) {
  const std::string text(1000, 't');
  const std::string bytes = packed(text, Packing::kNever) + "next";
  for (const size_t buffer_bytes : {999, 1000, 5000}) {
    SlowSource source(bytes, 300);
    StreamReader reader(source, {.buffer_bytes = buffer_bytes, .sums = true, .on_piece = {}});
    StringReader string = reader.string();
    const auto whole = string.take_whole();
    EXPECT_EQ(whole.has_value(), buffer_bytes >= text.size());
    if (whole) {
      EXPECT_EQ(*whole, text);
    } else {
      EXPECT_TRUE(string.skip());
    }
    EXPECT_EQ(reader.sum(), crc64(0, std::string_view(bytes).substr(0, bytes.size() - 4)));
  }
  SlowSource cut(std::string_view(bytes).substr(0, 500), 300);
  StreamReader reader(cut, {.buffer_bytes = 5000, .sums = false, .on_piece = {}});
  EXPECT_FALSE(reader.string().take_whole());
  EXPECT_FALSE(reader.ok());
}

TEST(StreamReader, ReadsLongStringsIntoFreshMemory) {
  std::string text((3 << 20) + 17, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 / 7);
  const std::string bytes = packed(text, Packing::kNever);
  SlowSource source(bytes, 100'000);
  StreamReader reader(source, {.buffer_bytes = 5000, .sums = true, .on_piece = {}});
  std::string out(text.size(), ' ');
  EXPECT_TRUE(reader.string().read_fresh(out));
  EXPECT_TRUE(out == text);
  EXPECT_EQ(reader.sum(), crc64(0, bytes));
  SlowSource cut(std::string_view(bytes).substr(0, 2'500'000), 100'000);
  StreamReader failing(cut, {.buffer_bytes = 5000, .sums = true, .on_piece = {}});
  EXPECT_FALSE(failing.string().read_fresh(out));
  EXPECT_EQ(failing.error().message, "offset 2500000: the bytes end here too early");
}

TEST(StreamReader, FaultsHaveAnOffset) {
  struct Case {
    std::string bytes;
    const char* error;
  };
  const Case cases[] = {
      {"", "offset 0: the bytes end here too early"},
      {"\x05hell", "offset 1: a string is longer than the remaining bytes"},
      {"\xC1\x01", "offset 1: the bytes end here too early"},
      {"\xC4\x01", "offset 1: a string has a form that does not exist"},
      {"\x82\x01", "offset 0: a length has a form that does not exist"},
      {"\x81\x01", "offset 0: the bytes end here too early"},
      // A packed string that announces more bytes than its data can expand to, and one that
      // announces no bytes.
      {std::string("\xC3\x03\x81\x00\x00\x00\x40\x00\x00\x00\x00"
                   "abc",
                   14),
       "offset 11: packed bytes of a string are damaged"},
      {std::string("\xC3\x00\x00", 3), "offset 3: packed bytes of a string are damaged"},
      // LZF data with a reference before the beginning, with a reference past the end, and with
      // bytes left over.
      {std::string("\xC3\x04\x08\xE0\x00\x20\x00", 7),
       "offset 6: packed bytes of a string are damaged"},
      {std::string("\xC3\x04\x03\x00z\x40\x00", 7),
       "offset 7: packed bytes of a string are damaged"},
      {std::string("\xC3\x04\x01\x00z\x40\x00", 7),
       "offset 5: packed bytes of a string are damaged"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.bytes));
    StreamReader reader(c.bytes);
    read_string(reader, 1 << 20);
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().message, c.error);
    EXPECT_EQ(reader.u64(), 0U);
  }
}

TEST(StreamReader, EveryTruncationFails) {
  for (const Packing packing : {Packing::kNever, Packing::kIfSmaller}) {
    const std::string bytes = packed(std::string(500, 'a') + "bcd" + std::string(90, 'a'), packing);
    for (size_t size = 0; size < bytes.size(); ++size) {
      SlowSource source(std::string_view(bytes).substr(0, size), 3);
      StreamReader reader(source, {.buffer_bytes = 16, .sums = false, .on_piece = {}});
      read_string(reader, 64);
      EXPECT_FALSE(reader.ok()) << size;
    }
  }
}

TEST(StreamReader, CapturesReadAndSkippedBytes) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u64(1);
  for (int i = 0; i < 50; ++i) writer.string(std::string(i * 7, 'x'), Packing::kIfSmaller);
  const size_t end = bytes.size();
  writer.u64(2);
  for (const size_t buffer_bytes : {1, 16, 100, 100'000}) {
    MemorySource source(bytes);
    StreamReader reader(source, {buffer_bytes, true, nullptr});
    reader.u64();
    RawBytes out;
    out.append("before");
    reader.begin_capture(out, end);
    for (int i = 0; i < 50; ++i) reader.string().skip();
    EXPECT_TRUE(reader.end_capture());
    EXPECT_EQ(out.view(), "before" + bytes.substr(8, end - 8));
    EXPECT_EQ(reader.u64(), 2U);
    EXPECT_EQ(out.size(), 6 + end - 8) << "the capture has ended";
    EXPECT_EQ(reader.sum(), crc64(0, bytes));
  }
}

TEST(StreamReader, TooLongCaptureIsUndone) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.u64(1);
  writer.string("name", Packing::kNever);
  writer.string(std::string(5000, 'v'), Packing::kNever);
  writer.u64(2);
  for (const size_t buffer_bytes : {1, 16, 4000, 100'000}) {
    MemorySource source(bytes);
    StreamReader reader(source, {buffer_bytes, true, nullptr});
    reader.u64();
    RawBytes out;
    out.append("before");
    reader.begin_capture(out, 4999);
    reader.string().skip();
    reader.string().skip();
    EXPECT_FALSE(reader.ok());
    EXPECT_FALSE(reader.end_capture());
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(out.view(), "before");
    EXPECT_EQ(reader.offset(), 8U);
    EXPECT_EQ(read_string(reader, 3), "name");
    EXPECT_EQ(read_string(reader, 1000), std::string(5000, 'v'));
    EXPECT_EQ(reader.u64(), 2U);
    EXPECT_TRUE(reader.at_end());
    EXPECT_EQ(reader.sum(), crc64(0, bytes));
  }
}

TEST(StreamReader, FaultInACaptureIsKept) {
  MemorySource source(
      "\x05"
      "abc");
  StreamReader reader(source, {16, true, nullptr});
  RawBytes out;
  reader.begin_capture(out, 1000);
  reader.string().skip();
  EXPECT_TRUE(reader.end_capture());
  EXPECT_FALSE(reader.ok());
}

// A sink that accepts `writes` writes. All later writes fail.
class FailingSink final : public ByteSink {
 public:
  explicit FailingSink(int writes) : writes_left_(writes) {}
  core::Result<> write(std::string_view bytes) override {
    ++calls;
    if (writes_left_-- <= 0) return core::Error{"ERR no space"};
    got.append(bytes);
    return {};
  }
  std::string got;
  int calls = 0;

 private:
  int writes_left_;
};

TEST(ChunkedOutput, ChecksumsAndWritesInPieces) {
  std::string expected;
  FailingSink sink(1000);
  ChunkedOutput out(sink, {.buffer_bytes = 10, .sums = true, .on_piece = {}});
  for (size_t size = 0; size < 40; ++size) {
    const std::string part(size, static_cast<char>('a' + size % 26));
    expected += part;
    out.append(part);
    EXPECT_EQ(out.sum(), crc64(0, expected));
  }
  EXPECT_EQ(out.sent_bytes(), expected.size() / 10 * 10);
  EXPECT_TRUE(out.flush());
  EXPECT_EQ(sink.got, expected);
  EXPECT_EQ(sink.calls, static_cast<int>((expected.size() + 9) / 10));
}

TEST(ChunkedOutput, StopsAtTheFirstError) {
  FailingSink sink(2);
  ChunkedOutput out(sink, {.buffer_bytes = 10, .sums = true, .on_piece = {}});
  out.append(std::string(100, 'x'));
  EXPECT_FALSE(out.ok());
  out.append("more");
  const auto flushed = out.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().message, "ERR no space");
  EXPECT_EQ(sink.calls, 3);
  EXPECT_EQ(out.sent_bytes(), 20U);
}

}  // namespace
}  // namespace persistence

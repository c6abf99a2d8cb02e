// SPDX-License-Identifier: MIT
#include "persistence/bytes/chunked_output.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "persistence/bytes/crc64.h"

namespace persistence {
namespace {

// A sink that accepts `pieces_max` pieces. All later writes fail.
class PieceSink final : public ByteSink {
 public:
  explicit PieceSink(size_t pieces_max = SIZE_MAX) : pieces_max_(pieces_max) {}
  core::Result<> write(std::string_view bytes) override {
    if (pieces.size() >= pieces_max_) return core::Error{"ERR full"};
    pieces.emplace_back(bytes);
    return {};
  }

  std::vector<std::string> pieces;

 private:
  size_t pieces_max_;
};

TEST(ChunkedOutputTest, AllPiecesExceptTheLastAreFull) {
  PieceSink sink;
  int reported = 0;
  ChunkedOutput out(sink, {.buffer_bytes = 4, .sums = true, .on_piece = [&] { ++reported; }});
  out.append("ab");
  EXPECT_TRUE(sink.pieces.empty());
  out.append("cdefghi");
  EXPECT_EQ(out.sent_bytes(), 8U);
  ASSERT_TRUE(out.flush());
  EXPECT_EQ(sink.pieces, (std::vector<std::string>{"abcd", "efgh", "i"}));
  EXPECT_EQ(out.sent_bytes(), 9U);
  EXPECT_EQ(reported, 3);
}

TEST(ChunkedOutputTest, ChecksumCoversUnsentBytesToo) {
  PieceSink sink;
  ChunkedOutput out(sink, {.buffer_bytes = 4, .on_piece = {}});
  out.append("abcdef");
  EXPECT_EQ(out.sum(), crc64(0, "abcdef"));
  ASSERT_TRUE(out.flush());
  EXPECT_EQ(out.sum(), crc64(0, "abcdef"));
  PieceSink other;
  ChunkedOutput unsummed(other, {.buffer_bytes = 4, .sums = false, .on_piece = {}});
  unsummed.append("abcdef");
  EXPECT_EQ(unsummed.sum(), 0U);
}

TEST(ChunkedOutputTest, NothingIsSentAfterAFailure) {
  PieceSink sink(1);
  ChunkedOutput out(sink, {.buffer_bytes = 2, .on_piece = {}});
  out.append("abcdefgh");
  EXPECT_FALSE(out.ok());
  EXPECT_EQ(out.sent_bytes(), 2U);
  const auto flushed = out.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().message, "ERR full");
  EXPECT_EQ(sink.pieces, std::vector<std::string>{"ab"});
}

TEST(ChunkedOutputTest, EmptyOutputSendsNothing) {
  PieceSink sink;
  ChunkedOutput out(sink, {});
  ASSERT_TRUE(out.flush());
  EXPECT_TRUE(sink.pieces.empty());
}

}  // namespace
}  // namespace persistence

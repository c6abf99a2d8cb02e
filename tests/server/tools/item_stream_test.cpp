// SPDX-License-Identifier: MIT
#include "server/tools/item_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace server {
namespace {

std::string read_to_end(persistence::ByteSource& source) {
  std::string all;
  std::array<char, 7> piece;
  for (;;) {
    const auto got = source.read(piece);
    EXPECT_TRUE(got);
    if (!got || *got == 0) return all;
    all.append(piece.data(), *got);
  }
}

TEST(DescriptorStream, FileIsRewoundToItsFirstPosition) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fputs("passed over, items to be read twice", file);
  std::fflush(file);
  ASSERT_EQ(::lseek(::fileno(file), 13, SEEK_SET), 13);
  DescriptorStream stream(::fileno(file), "a file");
  EXPECT_EQ(stream.size_bound(), 22U);
  ASSERT_TRUE(stream.can_rewind());
  EXPECT_EQ(read_to_end(stream), "items to be read twice");
  ASSERT_TRUE(stream.rewind());
  EXPECT_EQ(read_to_end(stream), "items to be read twice");
  std::fclose(file);
}

TEST(DescriptorStream, PipeIsReadOnce) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "items", 5), 5);
  ::close(ends[1]);
  DescriptorStream stream(ends[0], "a pipe");
  EXPECT_FALSE(stream.can_rewind());
  EXPECT_EQ(stream.size_bound(), persistence::ByteSource::kUnknownSize);
  EXPECT_EQ(read_to_end(stream), "items");
  ::close(ends[0]);
}

TEST(DescriptorStream, ReadErrorsNameTheStream) {
  DescriptorStream stream(-1, "standard input");
  std::array<char, 4> buffer;
  const auto got = stream.read(buffer);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "ERR can't read 'standard input': Bad file descriptor");
}

}  // namespace
}  // namespace server

// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_lexer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/virtual_disk.h"

namespace persistence {
namespace {

using Item = AofLexer::Item;
using WordList = std::vector<std::string>;

class AofLexerTest : public ::testing::Test {
 protected:
  void open(std::string bytes) {
    size_ = bytes.size();
    disk_.put("file", std::move(bytes));
    auto file = disk_.open_input("file");
    ASSERT_TRUE(file);
    file_ = std::move(*file);
    lexer_ = std::make_unique<AofLexer>(*file_, size_);
  }
  Item next() {
    const auto item = lexer_->next();
    EXPECT_TRUE(item);
    return item ? *item : Item::kEnd;
  }
  WordList words() const { return {lexer_->arguments().begin(), lexer_->arguments().end()}; }
  // Returns the fault in a file with these bytes, and its offset.
  std::pair<std::string, uint64_t> fault(const std::string& bytes) {
    open(bytes);
    Item item = next();
    while (item == Item::kCommand || item == Item::kAnnotation) item = next();
    EXPECT_EQ(item, Item::kWrong) << bytes;
    return {std::string(lexer_->reason()), lexer_->wrong_offset()};
  }

  const std::string kSet = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n";
  virtual_disk::VirtualDisk disk_;
  std::unique_ptr<InputFile> file_;
  std::unique_ptr<AofLexer> lexer_;
  uint64_t size_ = 0;
};

TEST_F(AofLexerTest, EmptyFileEndsAtOnce) {
  open("");
  EXPECT_EQ(next(), Item::kEnd);
}

TEST_F(AofLexerTest, CommandsHaveArgumentsAndAnOffset) {
  open(kSet + "*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(words(), (WordList{"SET", "k", ""}));
  EXPECT_EQ(lexer_->bytes(), kSet);
  EXPECT_EQ(lexer_->offset(), 0U);
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(words(), WordList{"PING"});
  EXPECT_EQ(lexer_->offset(), kSet.size());
  EXPECT_EQ(lexer_->end_offset(), size_);
  EXPECT_EQ(next(), Item::kEnd);
}

TEST_F(AofLexerTest, ArgumentsMayHoldAnyBytes) {
  const std::string odd("\r\n\0*$#", 6);
  open("*2\r\n$1\r\nX\r\n$6\r\n" + odd + "\r\n");
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(words(), (WordList{"X", odd}));
}

TEST_F(AofLexerTest, AnnotationsAreLinesWithTheirEnd) {
  open("#TS:17\r\n" + kSet + "# a remark\n");
  EXPECT_EQ(next(), Item::kAnnotation);
  EXPECT_EQ(lexer_->line(), "#TS:17\r\n");
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(next(), Item::kAnnotation);
  EXPECT_EQ(lexer_->line(), "# a remark\n");
  EXPECT_EQ(next(), Item::kEnd);
}

TEST_F(AofLexerTest, EveryTruncationCutsAnItem) {
  for (size_t size = 1; size < kSet.size(); ++size) {
    open(kSet.substr(0, size));
    EXPECT_EQ(next(), Item::kCut) << size;
  }
}

// The lexer never waits for more bytes than the file has, even if a length in the file announces
// more.
TEST_F(AofLexerTest, LengthBeyondTheFileIsACut) {
  open("*2\r\n$3\r\nSET\r\n$60000000000\r\nabc");
  EXPECT_EQ(next(), Item::kCut);
}

TEST_F(AofLexerTest, ArgumentsMayExceedAChunk) {
  const std::string value(size_t{1} << 20, 'v');
  open("*2\r\n$1\r\nX\r\n$1048576\r\n" + value + "\r\n" + kSet);
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(words().at(1), value);
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(words(), (WordList{"SET", "k", ""}));
}

TEST_F(AofLexerTest, FaultsHaveAnOffsetAndAReason) {
  using Fault = std::pair<std::string, uint64_t>;
  EXPECT_EQ(fault("x"), (Fault{aof_fault::kNoItem, 0}));
  EXPECT_EQ(fault("*x\r\n"), (Fault{aof_fault::kNoNumber, 1}));
  EXPECT_EQ(fault("*0\r\n"), (Fault{aof_fault::kNoArguments, 1}));
  EXPECT_EQ(fault("*1\r\r"), (Fault{aof_fault::kNoLineEnd, 3}));
  EXPECT_EQ(fault("*1\r\n+4\r\n"), (Fault{aof_fault::kNoArgument, 4}));
  EXPECT_EQ(fault("*1\r\n$1\r\nab\r\n"), (Fault{aof_fault::kNoLineEnd, 9}));
  EXPECT_EQ(fault("*1111111111111111111\r\n"), (Fault{aof_fault::kLongNumber, 19}));
}

TEST_F(AofLexerTest, FaultOffsetsCountFromTheFilesStart) {
  EXPECT_EQ(fault(kSet + "junk").second, kSet.size());
}

TEST_F(AofLexerTest, LineWithoutAnEndIsAFault) {
  EXPECT_EQ(fault("#" + std::string(5000, 'x')).first, aof_fault::kOpenAnnotation);
}

TEST_F(AofLexerTest, AnnouncementsAreLimited) {
  EXPECT_EQ(fault("*2147483648\r\n").first, aof_fault::kTooManyArguments);
  EXPECT_EQ(fault("*1\r\n$68719476737\r\n").first, aof_fault::kLongArgument);
}

TEST_F(AofLexerTest, SkippedBytesArePassedOn) {
  open("PREAMBLE" + kSet);
  std::string seen;
  ASSERT_TRUE(lexer_->skip(8, [&](std::string_view piece) { seen += piece; }));
  EXPECT_EQ(seen, "PREAMBLE");
  EXPECT_EQ(next(), Item::kCommand);
  EXPECT_EQ(lexer_->offset(), 8U);
}

TEST_F(AofLexerTest, ShortenedFileEndsEarly) {
  open(kSet + kSet);
  disk_.put("file", kSet);
  auto shorter = disk_.open_input("file");
  ASSERT_TRUE(shorter);
  AofLexer lexer(**shorter, size_);
  EXPECT_EQ(*lexer.next(), Item::kCommand);
  EXPECT_EQ(*lexer.next(), Item::kEnd);
}

}  // namespace
}  // namespace persistence

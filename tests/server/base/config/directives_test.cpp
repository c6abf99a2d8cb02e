// SPDX-License-Identifier: MIT
#include "server/base/config/directives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DirectivesTest : public ::testing::Test {
 protected:
  DirectivesTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_directives_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~DirectivesTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  static std::vector<Directive> read_text(const std::string& text) {
    auto read = read_config_text(text, "a test");
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : std::vector<Directive>{};
  }
  // Returns the first word of each directive.
  static std::vector<std::string> names(const std::vector<Directive>& directives) {
    std::vector<std::string> all;
    for (const Directive& directive : directives) all.push_back(directive.words.at(0));
    return all;
  }
  static std::string error_of_file(const std::string& path) {
    const auto read = read_config_file(path);
    return read ? "" : read.error().message;
  }

  std::string directory_;
};

TEST_F(DirectivesTest, ALineIsADirectiveWithItsPlace) {
  const auto directives = read_text("\n  PORT   7000  \n");
  ASSERT_EQ(directives.size(), 1U);
  EXPECT_EQ(directives[0].source, "a test");
  EXPECT_EQ(directives[0].line, 2U);
  EXPECT_EQ(directives[0].text, "PORT   7000");
  EXPECT_THAT(directives[0].words, ElementsAre("port", "7000"));
}

TEST_F(DirectivesTest, RemarksAndEmptyLinesAreNone) {
  EXPECT_TRUE(read_text("# a remark\n\n   \n  # another\n").empty());
  EXPECT_TRUE(read_text("").empty());
}

TEST_F(DirectivesTest, TheLastLineNeedsNoEnd) {
  EXPECT_THAT(names(read_text("port 1\nhz 10")), ElementsAre("port", "hz"));
}

TEST_F(DirectivesTest, QuotedWordsMayHoldSpacesAndBytes) {
  const auto directives = read_text(R"(requirepass "a b\x41" 'c d')");
  EXPECT_THAT(directives.at(0).words, ElementsAre("requirepass", "a bA", "c d"));
}

TEST_F(DirectivesTest, AQuoteWithoutEndIsFatalWithItsPlace) {
  const auto read = read_config_text("port 1\nlogfile \"x\n", "a test");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("at line 2 of a test\n>>> 'logfile \"x'\n"));
  EXPECT_THAT(read.error().message, HasSubstr("Unbalanced quotes"));
}

TEST_F(DirectivesTest, ASecretIsNotShownInAMessage) {
  const auto read = read_config_text("requirepass \"hunter2\n", "a test");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, Not(HasSubstr("hunter2")));
  EXPECT_THAT(read.error().message, HasSubstr("requirepass (redacted)"));
}

TEST_F(DirectivesTest, APasswordOfAUserIsNotShownInAMessage) {
  Directive line{.source = "a test", .line = 1, .text = "USER alice on  >hush #2d71 <old +get"};
  EXPECT_THAT(fatal_config_error(line, "why").message,
              HasSubstr(">>> 'USER alice on >(redacted) #(redacted) <(redacted) +get'\nwhy\n"));
  line.text = "user alice  on +get";
  EXPECT_THAT(fatal_config_error(line, "why").message, HasSubstr(">>> 'user alice  on +get'\n"));
  line.text = "user alice \">hush";
  EXPECT_THAT(fatal_config_error(line, "why").message, HasSubstr(">>> 'user (redacted)'\n"));
}

TEST_F(DirectivesTest, AnIncludeIsReplacedByItsFile) {
  write("inner.conf", "hz 20\n");
  const auto read =
      read_config_file(write("outer.conf", "port 1\ninclude " + path("inner.conf") + "\nport 2\n"));
  ASSERT_TRUE(read);
  EXPECT_THAT(names(*read), ElementsAre("port", "hz", "port"));
  EXPECT_EQ((*read)[1].source, path("inner.conf"));
  EXPECT_EQ((*read)[1].line, 1U);
  EXPECT_EQ((*read)[2].line, 3U);
}

TEST_F(DirectivesTest, APatternIncludesAllThatMatch) {
  write("1.part", "hz 1\n");
  write("2.part", "port 2\n");
  const auto read = read_config_file(write("a.conf", "include " + path("*.part") + "\n"));
  ASSERT_TRUE(read);
  EXPECT_THAT(names(*read), ElementsAre("hz", "port"));
}

TEST_F(DirectivesTest, APatternThatMatchesNothingIncludesNothing) {
  const auto read = read_config_file(write("a.conf", "include " + path("*.none") + "\n"));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->empty());
}

TEST_F(DirectivesTest, APlainNameMustExist) {
  EXPECT_THAT(error_of_file(write("a.conf", "include " + path("absent") + "\n")),
              HasSubstr("at line 1 of " + path("a.conf") + "\n>>> 'include " + path("absent") +
                        "'\ncan't open '" + path("absent") + "'"));
  EXPECT_THAT(error_of_file(path("absent")), HasSubstr("Fatal error, "));
}

TEST_F(DirectivesTest, AFileThatIncludesItselfIsRefused) {
  write("b.conf", "include " + path("a.conf") + "\n");
  EXPECT_THAT(error_of_file(write("a.conf", "include " + path("b.conf") + "\n")),
              HasSubstr("includes itself"));
}

TEST_F(DirectivesTest, ALinkToAFileIsThatFile) {
  write("a.conf", "include " + path("link.conf") + "\n");
  std::filesystem::create_symlink(path("a.conf"), path("link.conf"));
  EXPECT_THAT(error_of_file(path("a.conf")), HasSubstr("includes itself"));
}

TEST_F(DirectivesTest, IncludesAreNestedSoDeepAndNoDeeper) {
  write("16.conf", "hz 1\n");
  for (int i = 15; i >= 0; --i) {
    write(std::to_string(i) + ".conf", "include " + path(std::to_string(i + 1) + ".conf") + "\n");
  }
  EXPECT_EQ(error_of_file(path("1.conf")), "");
  EXPECT_THAT(error_of_file(path("0.conf")), HasSubstr("nested deeper than 16 files"));
}

TEST_F(DirectivesTest, AStartReadsRelativePathsInItsOwnFolder) {
  const std::string folder = path("odd[1]*");
  std::filesystem::create_directory(folder);
  write("odd[1]*/plain.conf", "port 1\n");
  write("odd[1]*/1.part", "hz 1\n");
  write("odd[1]*/2.part", "dir data\n");
  const auto read = read_at_start("include plain.conf\ninclude ?.part\ndir /data\ndir \"\"\n",
                                  path("a.conf"), folder);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(names(*read), ElementsAre("port", "hz", "dir", "dir", "dir"));
  EXPECT_EQ((*read)[0].source, folder + "/plain.conf");
  EXPECT_EQ((*read)[2].words[1], folder + "/data");
  EXPECT_EQ((*read)[3].words[1], "/data");
  EXPECT_EQ((*read)[4].words[1], "");
}

TEST_F(DirectivesTest, AStartFindsAFileThatWouldIncludeItself) {
  write("a.conf", "");
  const auto read = read_at_start("include a.conf\n", path("a.conf"), directory_);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("includes itself"));
}

// The server calls read_config_file() when it starts. CONFIG REWRITE calls read_at_start(), which
// reads the new files as the next start will. Both functions must reject an included FIFO.
TEST_F(DirectivesTest, AnIncludeThatIsAFifoIsRefused) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string fault = "it is a FIFO; include needs a regular file";
  EXPECT_THAT(error_of_file(write("a.conf", "include " + path("pipe") + "\n")), HasSubstr(fault));
  const auto read = read_at_start("include pipe\n", path("a.conf"), directory_);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr(fault));
}

TEST_F(DirectivesTest, ABigFileIsNotRead) {
  write("a.conf", "");
  std::filesystem::resize_file(path("a.conf"), kConfigFileLimitBytes + 1);
  EXPECT_NE(error_of_file(path("a.conf")), "");
}

}  // namespace
}  // namespace server

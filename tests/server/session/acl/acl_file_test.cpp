// SPDX-License-Identifier: MIT
#include "server/session/acl/acl_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/base/config/option.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/users.h"
#include "tests/server/session/acl/acl_fixture.h"

namespace server::acl {
namespace {

using ::testing::HasSubstr;

class AclFileTest : public ::testing::Test {
 protected:
  AclFileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "acl_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/users.acl";
  }
  ~AclFileTest() override { std::filesystem::remove_all(directory_); }

  // Writes `text` to the ACL file and loads the file. Returns the error, or "".
  std::string load(const std::string& text) {
    std::ofstream(path_) << text;
    const auto loaded = load_acl_file(users_, path_);
    return loaded ? "" : loaded.error().message;
  }
  std::string saved() {
    EXPECT_TRUE(save_acl_file(users_, path_));
    std::ifstream file(path_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  Users users_{test_table()};
  std::string directory_;
  std::string path_;
};

TEST_F(AclFileTest, SavedUsersAreLoaded) {
  ASSERT_EQ(load("user alice on >x ~a*   +get (+set ~b)\n\n  user default off\n"), "");
  const std::string text = saved();
  EXPECT_EQ(text,
            "user alice on #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 ~a* "
            "resetchannels -@all +get (~b resetchannels -@all +set)\n"
            "user default off resetchannels -@all\n");
  EXPECT_EQ(load(text), "");
  EXPECT_EQ(saved(), text);
}

TEST_F(AclFileTest, AnEmptyFileLeavesAnOpenDefaultUser) {
  users_.set_default_password("x");
  EXPECT_EQ(load(""), "");
  EXPECT_TRUE(users_.is_open());
}

TEST_F(AclFileTest, AllErrorsAreReportedAndNothingChanges) {
  ASSERT_EQ(load("user alice on\n"), "");
  const std::string faults = load("foo\nuser\nuser default off\n");
  EXPECT_THAT(faults, HasSubstr(path_ + ":1 should start with user keyword"));
  EXPECT_THAT(faults, HasSubstr(path_ + ":2 should start with user keyword"));
  EXPECT_THAT(faults, HasSubstr("no change to the previously active ACL rules was performed"));
  EXPECT_THAT(
      load("user a +foo\nuser b (+get\nuser b\nuser b\n"),
      ::testing::AllOf(HasSubstr(path_ + ":1: Error in applying operation '+foo': Unknown command"),
                       HasSubstr(path_ + ":2: Unmatched parenthesis in selector definition."),
                       HasSubstr(path_ + ":3: Duplicate user 'b' found.")));
  EXPECT_THAT(load("user a\tb on\n"), HasSubstr("invalid characters"));
  EXPECT_EQ(users_.list().size(), 2U);
  EXPECT_TRUE(users_.is_open());
}

TEST_F(AclFileTest, AFileThatCannotBeReadIsAnError) {
  const auto loaded = load_acl_file(users_, directory_ + "/nothing");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("Error loading ACLs, "));
  EXPECT_FALSE(save_acl_file(users_, directory_ + "/no/such/folder"));
}

TEST_F(AclFileTest, TheFileIsItsOwnersAlone) {
  (void)saved();
  const auto permissions = std::filesystem::status(path_).permissions();
  EXPECT_EQ(permissions & std::filesystem::perms::all,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

// Returns a `user` directive with these words, as if it were line 3 of the configuration file
// a.conf.
Directive user_line(std::vector<std::string> words) {
  std::string text = "user";
  for (const std::string& word : words) text += " " + word;
  words.insert(words.begin(), "user");
  return {.source = "a.conf", .line = 3, .text = std::move(text), .words = std::move(words)};
}

TEST_F(AclFileTest, UserLineErrorNamesItsPlace) {
  const std::vector<Directive> lines{user_line({"alice", "on"}),
                                     user_line({"bob", ">hush", "+foo"})};
  const auto loaded = load_users(users_, lines, "");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message,
              HasSubstr("at line 3 of a.conf\n>>> 'user bob >(redacted) +foo'\n"
                        "Error in user declaration 'bob': Error in applying operation '+foo': "
                        "Unknown command"));
  EXPECT_EQ(users_.list().size(), 1U);
  const std::vector<Directive> unclosed{user_line({"alice", "(+get"})};
  EXPECT_THAT(load_users(users_, unclosed, "").error().message,
              HasSubstr("'alice': Unmatched parenthesis"));
}

TEST_F(AclFileTest, UsersComeFromOnePlaceOnly) {
  const std::vector<Directive> lines{user_line({"alice", "on", "+get"})};
  EXPECT_THAT(load_users(users_, lines, path_).error().message, HasSubstr("either of the two"));
  users_.set_default_password("x");
  ASSERT_TRUE(load_users(users_, lines, ""));
  EXPECT_FALSE(users_.is_open());
  EXPECT_EQ(user_lines(users_)[0], "user alice on resetchannels -@all +get");
  EXPECT_THAT(load_users(users_, {}, directory_ + "/nothing").error().message,
              HasSubstr("Aborting startup"));
}

}  // namespace
}  // namespace server::acl

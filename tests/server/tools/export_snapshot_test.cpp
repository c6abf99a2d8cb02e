// SPDX-License-Identifier: MIT
#include "server/tools/export_snapshot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/base/config/config.h"
#include "server/tools/run_tool.h"
#include "tests/support/vectors.h"

namespace server {
namespace {

using persistence::ExportTarget;

std::string refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "--export-rdb");
  const auto request = parse_export_options(arguments);
  return request ? "accepted" : request.error().message;
}

class ExportSnapshotTest : public testing::Test {
 protected:
  ExportSnapshotTest() {
    std::string name = (std::filesystem::temp_directory_path() / "export-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~ExportSnapshotTest() override { std::filesystem::remove_all(directory_); }

  int run(const std::string& source, const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments{"--export-rdb", source, out()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto exit_code =
        run_tool(Launch::kExportSnapshot, Config(), arguments, HealthQuestion::kServes);
    printed_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return exit_code.value_or(-1);
  }
  std::string out() const { return (directory_ / "out.rdb").string(); }

  std::filesystem::path directory_;
  std::string printed_;
  std::string error_;
};

TEST(ExportOptions, TwoPathsAndAKnownTarget) {
  const std::vector<std::string> arguments{"--export-rdb", "a.rdb",      "sub/b.rdb",
                                           "--target",     "redisbloom", "--overwrite"};
  const auto request = parse_export_options(arguments);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->source, "a.rdb");
  EXPECT_EQ(request->place.path, "sub/b.rdb");
  // A server's temporary files begin with `temp-`.
  EXPECT_TRUE(request->place.temporary.starts_with("sub/bloomery-"));
  EXPECT_NE(request->place.temporary, parse_export_options(arguments)->place.temporary);
  EXPECT_EQ(request->target, ExportTarget::kRedisBloom);
  EXPECT_TRUE(request->may_replace);
  EXPECT_TRUE(refusal({}).starts_with("--export-rdb takes two paths\nUsage: "));
  EXPECT_TRUE(refusal({"a"}).starts_with("--export-rdb takes two paths"));
  EXPECT_TRUE(refusal({"a", "--target", "redis"}).starts_with("--export-rdb takes two paths"));
  EXPECT_TRUE(refusal({"a", "b", "--force"}).starts_with("--export-rdb does not know '--force'"));
  EXPECT_EQ(refusal({"a", "b", "--target"}),
            "--target takes redis, redisbloom or valkey-bloom, not ''");
  EXPECT_EQ(refusal({"a", "b", "--target", "Valkey"}),
            "--target takes redis, redisbloom or valkey-bloom, not 'Valkey'");
  const std::string same = vectors::path("redisbloom/dump.rdb").string();
  EXPECT_EQ(refusal({same, same, "--overwrite"}), kExportToItsSource);
}

TEST_F(ExportSnapshotTest, ExitStatusTellsWhetherAllIsThere) {
  const std::string sound = vectors::path("redisbloom/dump.rdb").string();
  EXPECT_EQ(run(sound), 0) << error_;
  EXPECT_NE(printed_.find(": for redisbloom, "), std::string::npos) << printed_;
  EXPECT_EQ(error_, "");
  struct stat status {};
  ASSERT_EQ(::stat(out().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);

  EXPECT_EQ(run(sound), 1);
  EXPECT_NE(error_.find("is there already; --overwrite replaces it\n"), std::string::npos);
  EXPECT_EQ(printed_, "");

  EXPECT_EQ(run(sound, {"--target", "redis", "--overwrite"}), kExitSomethingLeftOut);
  EXPECT_NE(printed_.find("; replaced the file that was there\n"), std::string::npos) << printed_;
  EXPECT_NE(printed_.find("left out: 14 redisbloom filters: "), std::string::npos) << printed_;
  EXPECT_NE(printed_.find(", ...\n"), std::string::npos) << printed_;

  EXPECT_EQ(run("/nonexistent/dump.rdb", {"--overwrite"}), 1);
  EXPECT_EQ(error_,
            "bloomery-server: can't open '/nonexistent/dump.rdb': No such file or directory\n");
}

TEST(DescribeExport, NamesWhatTheOtherServerNeeds) {
  persistence::ExportRequest request;
  request.place.path = "out.rdb";
  persistence::ExportFigures figures;
  figures.string_count = 1;
  figures.file_bytes = 123;
  figures.database_max = 16;
  figures.left_out["list"].count = 2;
  EXPECT_EQ(describe_export(request, figures),
            "out.rdb: for redis, 1 string and 0 filters, 123 bytes\n"
            "the highest database is 16: the other server needs `databases 17`\n"
            "left out: 2 lists\n");
}

}  // namespace
}  // namespace server

// SPDX-License-Identifier: MIT
#include "server/tools/configuration_page.h"

#include <gmock/gmock.h>

#include "server/base/config/option_table.h"

namespace server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string page_of(std::string_view sample) {
  return configuration_page(parse_sample_file(sample));
}

TEST(ConfigurationPage, HasEveryParagraphInTheFilesOrder) {
  const std::string page = page_of(
      "# Of the file.\n\n# Another file:\n#\n# include x*.conf\n"
      "######## First ########\n# Of the section.\n\n# A port.\nport 1\n\n"
      "# Users:\n# user a on\n# user b off\n\n# A time.\ntimeout 0\n");
  EXPECT_THAT(page, HasSubstr("\n## The file\n\nOf the file.\n"
                              "\n### include\n\nAnother file:\n\n```\ninclude x*.conf\n```\n"
                              "\n## First\n\nOf the section.\n\n### port\n\nA port.\n"
                              "\n| option | type |"));
  EXPECT_THAT(page, HasSubstr("| `port` | integer | `6379` | 0 to 65535 | yes |\n"
                              "\n### user\n\nUsers:\n\n```\nuser a on\nuser b off\n```\n"
                              "\n### timeout\n\nA time.\n"));
}

TEST(ConfigurationPage, WordsMeanNothingToMarkdown) {
  const std::string page = page_of("# a_b *c* <d> [e] f|g \\n `h_i` j_k\nport 1\n");
  EXPECT_THAT(page, HasSubstr(R"(a\_b \*c\* \<d\> \[e\] f\|g \\n `h_i` j\_k)"));
}

TEST(ConfigurationPage, ARowHasAllNames) {
  const Option& option = option_row(OptionId::kReplicaOf);
  ASSERT_EQ(option.aliases.size(), 1);
  EXPECT_THAT(
      page_of("# A leader.\nslaveof a 1\n"),
      HasSubstr("\n### replicaof\n\nA leader.\n\n| option | type | default | values | at run "
                "time |\n| --- | --- | --- | --- | --- |\n| `replicaof`, `slaveof` | "));
}

TEST(ConfigurationPage, AListIsATableOfWhatHasNoEffect) {
  const std::string page = page_of("# None has:\n#\n#   activedefrag\n");
  EXPECT_THAT(page,
              HasSubstr("\n## The file\n\nNone has:\n\n| option | type | default | values |\n"));
  EXPECT_THAT(page, HasSubstr("| `activedefrag` | yes or no | `no` |  |\n"));
  EXPECT_THAT(page, HasSubstr("| `replica-lazy-flush`, `slave-lazy-flush` |"));
  EXPECT_THAT(page, Not(HasSubstr("`maxclients` |")));
}

TEST(ConfigurationPage, AnEmptyFileLeavesThePreface) {
  const std::string page = page_of("");
  EXPECT_THAT(page, testing::StartsWith("# Configuration\n"));
  EXPECT_THAT(page, Not(HasSubstr("\n## ")));
}

}  // namespace
}  // namespace server

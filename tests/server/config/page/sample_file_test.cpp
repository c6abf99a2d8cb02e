// SPDX-License-Identifier: MIT
#include "server/config/page/sample_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "server/config/option_table.h"

namespace server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kSample =
    "# About the file.\n"
    "\n"
    "################ First ################\n"
    "\n"
    "# All are mutable.\n"
    "\n"
    "# One port,\n"
    "# of many.\n"
    "#\n"
    "# A second paragraph.\n"
    "port 6379\n"
    "\n"
    "# port and timeout are words here,\n"
    "# timeouts too.\n"
    "# slaveof here 1\n"
    "maxclients 10\n"
    "maxclients 11\n"
    "################ Second ################\n"
    "# timeout 7";

TEST(SampleFile, SectionsHoldGroupsOfOptions) {
  const auto sections = parse_sample_file(kSample);
  ASSERT_EQ(sections.size(), 3);
  EXPECT_EQ(sections[0].name, "");
  EXPECT_THAT(sections[0].preface, ElementsAre("About the file."));
  EXPECT_THAT(sections[0].groups, IsEmpty());
  EXPECT_EQ(sections[1].name, "First");
  EXPECT_THAT(sections[1].preface, ElementsAre("All are mutable."));
  ASSERT_EQ(sections[1].groups.size(), 2);
  EXPECT_THAT(sections[1].groups[0].words,
              ElementsAre("One port,", "of many.", "", "A second paragraph."));
  EXPECT_THAT(sections[1].groups[0].options, ElementsAre("port"));
  EXPECT_THAT(sections[2].groups.at(0).options, ElementsAre("timeout"));
}

TEST(SampleFile, CommentedOptionsEndTheirParagraph) {
  const SampleGroup group = parse_sample_file(kSample)[1].groups[1];
  EXPECT_THAT(group.words, ElementsAre("port and timeout are words here,", "timeouts too."));
  EXPECT_THAT(group.options, ElementsAre("replicaof", "maxclients"));
}

TEST(SampleFile, ListsOfNamesAreWords) {
  const auto sections = parse_sample_file("# Have no effect:\n#\n#   port timeout\n#   hz");
  EXPECT_THAT(sections[0].groups, IsEmpty());
  EXPECT_THAT(sections[0].preface, ElementsAre("Have no effect:", "", "port timeout", "hz"));
}

TEST(SampleFile, NothingIsRead) {
  const auto sections = parse_sample_file("");
  ASSERT_EQ(sections.size(), 1);
  EXPECT_THAT(sections[0].groups, IsEmpty());
}

// The file that is shipped: this source lies somewhere below the root of the tree.
std::vector<SampleSection> shipped_sections() {
  for (std::filesystem::path place = std::filesystem::absolute(__FILE__);;
       place = place.parent_path()) {
    if (std::ifstream file(place / "conf/bloomery.conf"); file) {
      std::stringstream text;
      text << file.rdbuf();
      return parse_sample_file(text.str());
    }
    if (place == place.parent_path()) return {};
  }
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

TEST(ShippedSample, ExplainsEachOptionOnceInWords) {
  std::map<std::string, int> places;
  for (const auto& section : shipped_sections()) {
    for (const auto& group : section.groups) {
      EXPECT_FALSE(group.words.empty()) << group.options[0];
      for (const auto& name : group.options) ++places[name];
    }
  }
  for (const Option& option : option_table()) {
    EXPECT_EQ(places[std::string(option.name)], option.inert ? 0 : 1) << option.name;
  }
}

// What the words say of CONFIG SET must be what the table says.
TEST(ShippedSample, SaysWhatIsMutable) {
  for (const auto& section : shipped_sections()) {
    const bool all = joined(section.preface).find(" mutable") != std::string::npos;
    for (const auto& group : section.groups) {
      const std::string words = joined(group.words);
      const bool is_said = all || words.find("utable") != std::string::npos ||
                           words.find("while the server runs") != std::string::npos;
      for (const auto& name : group.options) {
        const Option& option = option_table()[*find_option(name)];
        if (name == "replicaof") continue;  // by a command of its own
        EXPECT_EQ(is_said, option.mutability != Mutability::kImmutable) << name;
      }
    }
  }
}

}  // namespace
}  // namespace server

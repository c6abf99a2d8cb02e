// SPDX-License-Identifier: MIT
#include "server/tools/sample_file.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "server/base/config/option_table.h"

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

TEST(SampleFile, SectionsHoldParagraphs) {
  const auto sections = parse_sample_file(kSample);
  ASSERT_EQ(sections.size(), 3);
  EXPECT_EQ(sections[0].name, "");
  ASSERT_EQ(sections[0].paragraphs.size(), 1);
  EXPECT_THAT(sections[0].paragraphs[0].words, ElementsAre("About the file."));
  EXPECT_THAT(sections[0].paragraphs[0].options, IsEmpty());
  EXPECT_EQ(sections[1].name, "First");
  ASSERT_EQ(sections[1].paragraphs.size(), 3);
  EXPECT_THAT(sections[1].paragraphs[0].words, ElementsAre("All are mutable."));
  EXPECT_THAT(sections[1].paragraphs[1].words,
              ElementsAre("One port,", "of many.", "", "A second paragraph."));
  EXPECT_THAT(sections[1].paragraphs[1].options, ElementsAre("port"));
  EXPECT_THAT(sections[2].paragraphs.at(0).options, ElementsAre("timeout"));
}

TEST(SampleFile, CommentedOptionsEndTheirParagraph) {
  const SampleParagraph last = parse_sample_file(kSample)[1].paragraphs[2];
  EXPECT_THAT(last.words, ElementsAre("port and timeout are words here,", "timeouts too."));
  EXPECT_THAT(last.options, ElementsAre("replicaof", "maxclients"));
}

TEST(SampleFile, DirectivesThatAreNoOptionsAreExamples) {
  const auto sections = parse_sample_file(
      "# user is a word here.\n#\n# user a on\nuser b off\n\n# Both:\n# include x\nport 1\n");
  ASSERT_EQ(sections[0].paragraphs.size(), 2);
  const SampleParagraph& users = sections[0].paragraphs[0];
  const SampleParagraph& both = sections[0].paragraphs[1];
  EXPECT_THAT(users.words, ElementsAre("user is a word here."));
  EXPECT_THAT(users.examples, ElementsAre("user a on", "user b off"));
  EXPECT_THAT(users.options, IsEmpty());
  EXPECT_THAT(both.words, ElementsAre("Both:"));
  EXPECT_THAT(both.examples, ElementsAre("include x"));
  EXPECT_THAT(both.options, ElementsAre("port"));
}

TEST(SampleFile, IndentedNamesAreAList) {
  const auto sections =
      parse_sample_file("# Have no effect:\n#\n#   port timeout\n#   user\n\n#\n");
  ASSERT_EQ(sections[0].paragraphs.size(), 1);
  const SampleParagraph& paragraph = sections[0].paragraphs[0];
  EXPECT_THAT(paragraph.words, ElementsAre("Have no effect:"));
  EXPECT_THAT(paragraph.listed, ElementsAre("port", "timeout", "user"));
  EXPECT_THAT(paragraph.options, IsEmpty());
  EXPECT_THAT(paragraph.examples, IsEmpty());
}

TEST(SampleFile, NothingIsRead) {
  const auto sections = parse_sample_file("");
  ASSERT_EQ(sections.size(), 1);
  EXPECT_THAT(sections[0].paragraphs, IsEmpty());
}

// Reads conf/bloomery.conf, searching upwards from the folder of this source.
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
    for (const auto& paragraph : section.paragraphs) {
      EXPECT_FALSE(paragraph.words.empty()) << testing::PrintToString(paragraph.options);
      for (const auto& name : paragraph.options) ++places[name];
    }
  }
  for (const Option& option : option_table()) {
    EXPECT_EQ(places[std::string(option.name)], option.inert ? 0 : 1) << option.name;
  }
}

TEST(ShippedSample, ListsWhatHasNoEffect) {
  std::vector<std::string> listed;
  for (const auto& section : shipped_sections()) {
    for (const auto& paragraph : section.paragraphs) {
      listed.insert(listed.end(), paragraph.listed.begin(), paragraph.listed.end());
    }
  }
  std::vector<std::string> inert;
  for (const Option& option : option_table()) {
    if (option.inert) inert.emplace_back(option.name);
  }
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(inert));
}

// If the sample file says that an option is mutable, the option table must agree.
TEST(ShippedSample, SaysWhatIsMutable) {
  for (const auto& section : shipped_sections()) {
    // True after a paragraph that contains the word "mutable" and names no option. Such a paragraph
    // says that all options after it in the section are mutable.
    bool all = false;
    for (const auto& paragraph : section.paragraphs) {
      const std::string words = joined(paragraph.words);
      all = all || (paragraph.options.empty() && words.find(" mutable") != std::string::npos);
      const bool is_said = all || words.find("utable") != std::string::npos ||
                           words.find("while the server runs") != std::string::npos;
      for (const auto& name : paragraph.options) {
        const Option& option = option_table()[*find_option(name)];
        // The option `replicaof` is skipped: clients change it by REPLICAOF instead of CONFIG SET.
        if (name == "replicaof") continue;
        EXPECT_EQ(is_said, option.mutability != Mutability::kImmutable) << name;
      }
    }
  }
}

}  // namespace
}  // namespace server

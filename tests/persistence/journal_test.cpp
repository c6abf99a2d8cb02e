// SPDX-License-Identifier: MIT
#include "persistence/journal.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace persistence {
namespace {

using std::string_view;

std::string command(std::initializer_list<string_view> words) {
  std::string text;
  append_command(text, Words(words.begin(), words.size()));
  return text;
}

void append(Journal& journal, unsigned database, std::initializer_list<string_view> words) {
  journal.append(database, Words(words.begin(), words.size()));
}

std::string taken(Journal& journal) {
  std::string bytes;
  journal.take(bytes);
  return bytes;
}

TEST(AppendCommand, WritesBulkStringsOfAnyBytes) {
  EXPECT_EQ(command({"SET", string_view("a\r\n\0", 4), ""}),
            string_view("*3\r\n$3\r\nSET\r\n$4\r\na\r\n\0\r\n$0\r\n\r\n", 29));
}

TEST(Journal, IgnoresCommandsWhileInactive) {
  Journal journal;
  append(journal, 0, {"SET", "a", "1"});
  EXPECT_EQ(taken(journal), "");
  EXPECT_EQ(journal.end_offset(), 0);
}

TEST(Journal, SelectsADatabaseOnlyWhenItChanges) {
  Journal journal;
  journal.set_active(true);
  append(journal, 0, {"SET", "a", "1"});
  append(journal, 0, {"SET", "b", "1"});
  append(journal, 3, {"SET", "c", "1"});
  const std::string expected = command({"SELECT", "0"}) + command({"SET", "a", "1"}) +
                               command({"SET", "b", "1"}) + command({"SELECT", "3"}) +
                               command({"SET", "c", "1"});
  EXPECT_EQ(journal.end_offset(), expected.size());
  EXPECT_EQ(taken(journal), expected);
  append(journal, 3, {"DEL", "c"});
  EXPECT_EQ(taken(journal), command({"DEL", "c"}));
  journal.restate_database();
  append(journal, 3, {"DEL", "d"});
  EXPECT_EQ(taken(journal), command({"SELECT", "3"}) + command({"DEL", "d"}));
}

TEST(Journal, WrapsAGroupOfTwoOrMore) {
  Journal journal;
  journal.set_active(true);
  {
    const Journal::Group group(journal);
    append(journal, 0, {"SET", "a", "1"});
    append(journal, 1, {"SET", "b", "2"});
    EXPECT_EQ(journal.end_offset(), 0) << "no command of an open group may be visible";
  }
  EXPECT_EQ(taken(journal), command({"SELECT", "0"}) + command({"MULTI"}) +
                                command({"SET", "a", "1"}) + command({"SELECT", "1"}) +
                                command({"SET", "b", "2"}) + command({"EXEC"}));
}

TEST(Journal, NestedGroupIsPartOfTheOuter) {
  Journal journal;
  journal.set_active(true);
  const std::array<std::string_view, 1> words{"PING"};
  std::string taken;
  {
    const Journal::Group outer(journal);
    {
      const Journal::Group inner(journal);
      journal.append(0, words);
      journal.append(0, words);
    }
    journal.take(taken);
    EXPECT_EQ(taken, "");
    journal.append(0, words);
  }
  journal.take(taken);
  size_t transactions = 0;
  for (size_t at = taken.find("MULTI"); at != std::string::npos; at = taken.find("MULTI", at + 1)) {
    ++transactions;
  }
  EXPECT_EQ(transactions, 1U);
  EXPECT_TRUE(taken.ends_with("EXEC\r\n"));
}

TEST(Journal, AppendAloneBypassesTheGroup) {
  Journal journal;
  journal.set_active(true);
  {
    const Journal::Group group(journal);
    EXPECT_FALSE(Journal::has_open_group()) << "the group is empty";
    append(journal, 0, {"SET", "a", "1"});
    EXPECT_TRUE(Journal::has_open_group());
    journal.append_alone(0, std::array<string_view, 2>{"DEL", "b"});
    append(journal, 0, {"SET", "c", "1"});
    EXPECT_EQ(taken(journal), command({"SELECT", "0"}) + command({"DEL", "b"}));
  }
  EXPECT_FALSE(Journal::has_open_group());
  EXPECT_EQ(taken(journal), command({"MULTI"}) + command({"SET", "a", "1"}) +
                                command({"SET", "c", "1"}) + command({"EXEC"}));
}

TEST(Journal, PublishedCommandKeepsItsPlaceInAGroup) {
  struct Sink final : StreamSink {
    void append(string_view bytes) override { text += bytes; }
    std::string text;
  };
  for (const bool has_sink : {true, false}) {
    Journal journal;
    Sink sink;
    journal.set_active(true);
    if (has_sink) journal.set_second_sink(&sink);
    const auto publish = [&](string_view channel) {
      journal.publish_to_replicas(std::array<string_view, 3>{"PUBLISH", channel, "m"});
    };
    {
      const Journal::Group group(journal);
      publish("a");
      append(journal, 2, {"SET", "k", "1"});
      publish("b");
      EXPECT_EQ(sink.text, "");
    }
    EXPECT_EQ(taken(journal), command({"SELECT", "2"}) + command({"SET", "k", "1"}));
    const std::string whole = command({"SELECT", "2"}) + command({"MULTI"}) +
                              command({"PUBLISH", "a", "m"}) + command({"SET", "k", "1"}) +
                              command({"PUBLISH", "b", "m"}) + command({"EXEC"});
    EXPECT_EQ(sink.text, has_sink ? whole : "");
    sink.text.clear();
    {
      const Journal::Group group(journal);
      publish("c");
      EXPECT_FALSE(Journal::has_open_group()) << "the group has no change";
    }
    EXPECT_EQ(taken(journal), "");
    EXPECT_EQ(sink.text, has_sink ? command({"PUBLISH", "c", "m"}) : "");
    append(journal, 2, {"SET", "k", "2"});
    EXPECT_EQ(taken(journal), command({"SET", "k", "2"}))
        << "both streams have selected the database";
    journal.set_second_sink(nullptr);
  }
}

TEST(Journal, SingleCommandOfAGroupHasNoTransaction) {
  Journal journal;
  journal.set_active(true);
  {
    const Journal::Group group(journal);
    append(journal, 0, {"SET", "a", "1"});
  }
  { const Journal::Group empty(journal); }
  EXPECT_EQ(taken(journal), command({"SELECT", "0"}) + command({"SET", "a", "1"}));
}

TEST(Journal, OffsetsIncludeTakenBytes) {
  Journal journal;
  journal.set_active(true);
  append(journal, 0, {"SET", "a", "1"});
  std::string first;
  const uint64_t end = journal.take(first);
  EXPECT_EQ(end, first.size());
  append(journal, 0, {"SET", "a", "2"});
  std::string second;
  const uint64_t second_end = journal.take(second);
  EXPECT_EQ(second_end, first.size() + second.size());
}

class StringStream final : public StreamSink {
 public:
  void append(string_view bytes) override { pieces.emplace_back(bytes); }
  std::vector<std::string> pieces;
};

TEST(Journal, GivesASecondSinkTheSameBytes) {
  Journal journal;
  StringStream stream;
  journal.set_active(true);
  append(journal, 0, {"SET", "a", "1"});
  journal.set_second_sink(&stream);
  append(journal, 0, {"SET", "b", "1"});
  {
    const Journal::Group group(journal);
    append(journal, 0, {"INCR", "a"});
    append(journal, 1, {"INCR", "a"});
  }
  const std::string whole = command({"MULTI"}) + command({"INCR", "a"}) + command({"SELECT", "1"}) +
                            command({"INCR", "a"}) + command({"EXEC"});
  ASSERT_EQ(stream.pieces.size(), 2);
  EXPECT_EQ(stream.pieces[0], command({"SET", "b", "1"}));
  EXPECT_EQ(stream.pieces[1], whole);
  EXPECT_EQ(taken(journal), command({"SELECT", "0"}) + command({"SET", "a", "1"}) +
                                command({"SET", "b", "1"}) + whole);
  journal.set_second_sink(nullptr);
  append(journal, 1, {"SET", "c", "1"});
  EXPECT_EQ(stream.pieces.size(), 2);
}

TEST(Journal, PublishesToTheSecondSinkOnly) {
  Journal journal;
  StringStream stream;
  const std::array<string_view, 3> words{"PUBLISH", "c", "x"};
  journal.set_active(true);
  journal.publish_to_replicas(words);
  journal.set_second_sink(&stream);
  journal.publish_to_replicas(words);
  EXPECT_EQ(stream.pieces, (std::vector<std::string>{command({"PUBLISH", "c", "x"})}));
  EXPECT_EQ(journal.end_offset(), 0);
  EXPECT_EQ(taken(journal), "");
}

TEST(Journal, SecondSinkGetsTheClientsDatabase) {
  Journal journal;
  StringStream stream;
  const std::array<string_view, 3> words{"PUBLISH", "c", "x"};
  const std::string reported = command({"PUBLISH", "c", "x"});
  journal.set_active(true);
  journal.set_second_sink(&stream);
  append(journal, 0, {"SET", "a", "1"});
  journal.publish_to_replicas(words, 0);
  journal.publish_to_replicas(words, 9);
  journal.publish_to_replicas(words, 9);
  append(journal, 0, {"SET", "b", "1"});
  const std::string select_0 = command({"SELECT", "0"});
  const std::string select_9 = command({"SELECT", "9"});
  EXPECT_EQ(stream.pieces, (std::vector<std::string>{select_0 + command({"SET", "a", "1"}),
                                                     reported, select_9 + reported, reported,
                                                     select_0 + command({"SET", "b", "1"})}));
  EXPECT_EQ(taken(journal),
            select_0 + command({"SET", "a", "1"}) + select_0 + command({"SET", "b", "1"}));
  stream.pieces.clear();
  {
    const Journal::Group group(journal);
    append(journal, 2, {"SET", "c", "1"});
    journal.publish_to_replicas(words, 9);
  }
  append(journal, 2, {"SET", "d", "1"});
  const std::string select_2 = command({"SELECT", "2"});
  EXPECT_EQ(stream.pieces,
            (std::vector<std::string>{select_2 + command({"MULTI"}) + command({"SET", "c", "1"}) +
                                          select_9 + reported + command({"EXEC"}),
                                      select_2 + command({"SET", "d", "1"})}));
  EXPECT_EQ(taken(journal),
            select_2 + command({"SET", "c", "1"}) + select_2 + command({"SET", "d", "1"}));
}

TEST(Journal, KeepsNothingForALogThatIsOff) {
  Journal journal;
  StringStream stream;
  journal.set_second_sink(&stream);
  EXPECT_TRUE(journal.is_active());
  append(journal, 0, {"SET", "a", "1"});
  EXPECT_EQ(journal.end_offset(), 0);
  EXPECT_EQ(taken(journal), "");
  journal.set_active(true);
  journal.restate_database();
  append(journal, 0, {"SET", "b", "1"});
  EXPECT_EQ(taken(journal), command({"SELECT", "0"}) + command({"SET", "b", "1"}));
  journal.set_active(false);
  EXPECT_TRUE(journal.is_active());
  EXPECT_EQ(stream.pieces.size(), 2);
}

TEST(Journal, IgnoresAllCommandsWhileSuspended) {
  Journal journal;
  StringStream stream;
  journal.set_active(true);
  journal.set_second_sink(&stream);
  journal.suspend(true);
  append(journal, 0, {"SET", "a", "1"});
  journal.set_second_sink(&stream);
  append(journal, 0, {"SET", "a", "1"});
  EXPECT_TRUE(stream.pieces.empty());
  journal.suspend(false);
  append(journal, 0, {"SET", "a", "1"});
  EXPECT_EQ(stream.pieces.size(), 1);
  EXPECT_EQ(taken(journal), stream.pieces[0]);
}

TEST(Journal, GroupsOfThreadsAreNotInterleaved) {
  Journal journal;
  journal.set_active(true);
  constexpr int kRounds = 2000;
  const auto write = [&](string_view name) {
    for (int i = 0; i < kRounds; ++i) {
      const Journal::Group group(journal);
      append(journal, 0, {"INCR", name});
      append(journal, 0, {"INCR", name});
    }
  };
  {
    const std::jthread first(write, "a");
    const std::jthread second(write, "b");
  }
  const auto group_of = [](string_view name) {
    return command({"MULTI"}) + command({"INCR", name}) + command({"INCR", name}) +
           command({"EXEC"});
  };
  std::string bytes = taken(journal).substr(command({"SELECT", "0"}).size());
  const size_t size = group_of("a").size();
  ASSERT_EQ(bytes.size(), 2 * kRounds * size);
  for (size_t at = 0; at < bytes.size(); at += size) {
    const string_view one = string_view(bytes).substr(at, size);
    ASSERT_TRUE(one == group_of("a") || one == group_of("b")) << one;
  }
}

}  // namespace
}  // namespace persistence

// SPDX-License-Identifier: MIT
//
// Tests which commands make the server track their keys, and the options of CLIENT TRACKING.
// Replies were measured on Redis 7.0.15.
#include "server/commands/connection/client_tracking_commands.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <set>
#include <sstream>

#include "protocol/error_texts.h"
#include "server/base/process/server_state.h"
#include "server/session/pubsub/pub_sub.h"
#include "server/session/pubsub/tracking.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class ClientTrackingCommandsTest : public CommandTest {
 protected:
  // Returns the number of keys that the server has recorded for tracking, and clears these records.
  uint64_t remembered() {
    const uint64_t count = state_.tracking.keys;
    tracking_.invalidate_all();
    while (pubsub_.take(0)) continue;
    return count;
  }
  uint64_t remembered_after(const std::vector<std::string>& command) {
    run(command);
    return remembered();
  }
  void track(std::vector<std::string> options) {
    run({"CLIENT", "TRACKING", "OFF"});
    options.insert(options.begin(), {"CLIENT", "TRACKING", "ON"});
    EXPECT_EQ(run(options), kOk);
  }
};

TEST_F(ClientTrackingCommandsTest, KeysOfReadsAreRemembered) {
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  track({});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  EXPECT_EQ(remembered_after({"MGET", "k", "l", "k"}), 2U);
  EXPECT_EQ(remembered_after({"BF.KEXISTS", "2", "f", "g", "item"}), 2U);
  EXPECT_EQ(remembered_after({"MEMORY", "USAGE", "k"}), 1U);
  EXPECT_EQ(remembered_after({"SET", "k", "v", "GET"}), 0U);
  EXPECT_EQ(remembered_after({"KEYS", "*"}), 0U);
  EXPECT_EQ(remembered_after({"GET"}), 0U);
  run_as_other({"GET", "k"});
  EXPECT_EQ(remembered(), 0U);
}

TEST_F(ClientTrackingCommandsTest, BroadcastRemembersNothing) {
  track({"BCAST"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
}

TEST_F(ClientTrackingCommandsTest, OptInIsForOneCommandOrTransaction) {
  track({"OPTIN"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  run({"CLIENT", "CACHING", "YES"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  run({"CLIENT", "CACHING", "YES"});
  run({"CLIENT", "ID"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  run({"CLIENT", "CACHING", "YES"});
  run({"NOPE"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  run({"CLIENT", "CACHING", "YES"});
  run({"MULTI"});
  run({"GET", "k"});
  run({"GET", "l"});
  EXPECT_EQ(remembered_after({"EXEC"}), 2U);
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
}

TEST_F(ClientTrackingCommandsTest, OptOutIsForOneCommand) {
  track({"OPTOUT"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
  run({"CLIENT", "CACHING", "NO"});
  EXPECT_EQ(remembered_after({"GET", "k"}), 0U);
  EXPECT_EQ(remembered_after({"GET", "k"}), 1U);
}

TEST_F(ClientTrackingCommandsTest, EndsWithTheSessionAndWithRESET) {
  track({"BCAST", "PREFIX", "a"});
  EXPECT_EQ(state_.tracking.clients, 1U);
  run({"RESET"});
  EXPECT_EQ(state_.tracking.clients, 0U);
  track({});
  client_.reset();
  EXPECT_EQ(state_.tracking.clients, 0U);
  EXPECT_FALSE(state_.listeners.any());
}

TEST_F(ClientTrackingCommandsTest, PrefixesCostMemory) {
  track({});
  const uint64_t before = client_->session->client->memory_bytes();
  track({"BCAST", "PREFIX", std::string(10'000, 'x')});
  EXPECT_GT(client_->session->client->memory_bytes(), before + 10'000);
  run({"CLIENT", "TRACKING", "OFF"});
  EXPECT_EQ(client_->session->client->memory_bytes(), before);
}

// Tests of CLIENT TRACKING, CLIENT TRACKINGINFO and related commands, and of their errors.
class ClientTrackingRequestsTest : public CommandTest {
 protected:
  std::string track(std::vector<std::string> options) {
    options.insert(options.begin(), {"CLIENT", "TRACKING", "ON"});
    return run(options);
  }
  std::string caching(const std::string& word) { return run({"CLIENT", "CACHING", word}); }
  // Returns the reply of CLIENT TRACKINGINFO as "flags / redirect / prefixes".
  std::string shown() {
    const std::string reply = run({"CLIENT", "TRACKINGINFO"});
    std::istringstream lines(reply);
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      line.pop_back();
      if (line[0] == '$' || line[0] == '*') continue;
      if (line == "flags") continue;
      if (line == "redirect" || line == "prefixes") line = "/";
      text += (text.empty() ? "" : " ") + line;
    }
    return text;
  }

  const ::testing::Matcher<const std::string&> kSwitchesBroadcast = is_error("ERR", "switch BCAST");
  const ::testing::Matcher<const std::string&> kSwitchesOpting =
      is_error("ERR", "switch OPTIN/OPTOUT");
};

TEST_F(ClientTrackingRequestsTest, OnlyOnAndOffAreKnown) {
  EXPECT_EQ(run({"CLIENT", "TRACKING"}), error(protocol::wrong_arity("client|tracking")));
  EXPECT_EQ(run({"CLIENT", "TRACKING", "maybe"}), error(kSyntaxError));
  EXPECT_EQ(run({"CLIENT", "TRACKING", "on"}), kOk);
  EXPECT_EQ(run({"CLIENT", "TRACKING", "OFF"}), kOk);
  EXPECT_EQ(run({"CLIENT", "TRACKING", "OFF"}), kOk) << "again";
}

TEST_F(ClientTrackingRequestsTest, UnknownOptionsAreRefused) {
  EXPECT_EQ(track({"NOPE"}), error(kSyntaxError));
  EXPECT_EQ(track({"REDIRECT"}), error(kSyntaxError));
  EXPECT_EQ(track({"BCAST", "PREFIX"}), error(kSyntaxError));
  EXPECT_EQ(run({"CLIENT", "TRACKING", "OFF", "NOPE"}), error(kSyntaxError));
  EXPECT_EQ(run({"CLIENT", "TRACKING", "OFF", "BCAST"}), kOk);
}

TEST_F(ClientTrackingRequestsTest, ARedirectNamesOneClientThatIsThere) {
  const std::string id = std::to_string(other_->session->client->id);
  EXPECT_EQ(track({"REDIRECT", "x"}), error(kNotAnInteger));
  EXPECT_THAT(track({"REDIRECT", "99999"}), is_error("ERR", "does not exist"));
  EXPECT_THAT(track({"REDIRECT", id, "REDIRECT", id}), is_error("ERR", "single other client"));
  EXPECT_EQ(track({"REDIRECT", id, "NOLOOP"}), kOk);
  EXPECT_EQ(shown(), "on noloop / :" + id + " /");
  EXPECT_EQ(run({"CLIENT", "GETREDIR"}), ":" + id + "\r\n");
}

TEST_F(ClientTrackingRequestsTest, ModesThatExcludeEachOtherAreRefused) {
  EXPECT_THAT(track({"PREFIX", "x"}), is_error("ERR", "PREFIX"));
  EXPECT_THAT(track({"BCAST", "OPTIN"}), is_error("ERR", "compatible with BCAST"));
  EXPECT_THAT(track({"OPTIN", "OPTOUT"}), is_error("ERR", "both OPTIN"));
  EXPECT_EQ(shown(), "off / :-1 /");
  EXPECT_EQ(run({"CLIENT", "GETREDIR"}), integer(-1));
}

TEST_F(ClientTrackingRequestsTest, AModeIsLeftByTurningTrackingOff) {
  ASSERT_EQ(track({}), kOk);
  EXPECT_THAT(track({"BCAST"}), kSwitchesBroadcast);
  EXPECT_EQ(track({"OPTIN"}), kOk);
  EXPECT_THAT(track({"OPTOUT"}), kSwitchesOpting);
  EXPECT_EQ(shown(), "on optin / :0 /");
  ASSERT_EQ(run({"CLIENT", "TRACKING", "OFF"}), kOk);
  ASSERT_EQ(track({"BCAST"}), kOk);
  EXPECT_THAT(track({}), kSwitchesBroadcast);
}

TEST_F(ClientTrackingRequestsTest, PrefixesMustNotOverlap) {
  EXPECT_THAT(track({"BCAST", "PREFIX", "ab", "PREFIX", "a"}),
              is_error("ERR", "another provided prefix 'a'"));
  ASSERT_EQ(track({"BCAST", "PREFIX", "x", "PREFIX", "y"}), kOk);
  EXPECT_THAT(track({"BCAST", "PREFIX", "xy"}),
              is_error("ERR", "'xy' overlaps with an existing prefix 'x'"));
}

// Like Redis, CLIENT TRACKING compares each new prefix with the client's existing prefixes first,
// and then with the prefixes that follow in the command.
TEST_F(ClientTrackingCommandsTest, TheFirstOverlapIsReported) {
  std::mt19937_64 random(1);
  const auto word = [&] {
    std::string text(random() % 6 + 1, 'a');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 3);
    return text;
  };
  const auto overlap = [](const std::string& a, const std::string& b) {
    return a.starts_with(b) || b.starts_with(a);
  };
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    run({"CLIENT", "TRACKING", "OFF"});
    std::set<std::string> existing;
    for (int command = 0; command < 4; ++command) {
      std::vector<std::string> prefixes(random() % 6 + 1);
      std::vector<std::string> words{"CLIENT", "TRACKING", "ON", "BCAST"};
      for (std::string& prefix : prefixes) {
        prefix = word();
        words.insert(words.end(), {"PREFIX", prefix});
      }
      std::string expected;
      const auto expect_error = [&](size_t i, const char* kind, const std::string& other) {
        if (!expected.empty()) return;
        expected = error(overlap_error(prefixes[i], kind, other));
      };
      for (size_t i = 0; i < prefixes.size(); ++i) {
        for (const std::string& other : existing) {
          if (overlap(prefixes[i], other)) expect_error(i, "an existing", other);
        }
        for (size_t j = i + 1; j < prefixes.size(); ++j) {
          if (overlap(prefixes[i], prefixes[j])) expect_error(i, "another provided", prefixes[j]);
        }
      }
      errors += expected.empty() ? 0 : 1;
      ASSERT_EQ(run(words), expected.empty() ? kOk : expected) << fmt::format("round {}", round);
      if (expected.empty()) existing.insert(prefixes.begin(), prefixes.end());
    }
  }
  EXPECT_GT(errors, 100);
}

// If the server compared all pairs of prefixes, this test would exceed its time limit.
TEST_F(ClientTrackingCommandsTest, EqualPrefixesTakeLinearTime) {
  std::vector<std::string> words{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "z"};
  for (int i = 0; i < 1'000'000; ++i) words.insert(words.end(), {"PREFIX", "a"});
  EXPECT_EQ(run(words), error(overlap_error("a", "another provided", "a")));
}

TEST_F(ClientTrackingRequestsTest, PrefixesAreAdded) {
  ASSERT_EQ(track({"BCAST", "PREFIX", "x", "PREFIX", "y"}), kOk);
  ASSERT_EQ(track({"BCAST", "PREFIX", "z", "NOLOOP"}), kOk);
  EXPECT_EQ(shown(), "on bcast noloop / :0 / x y z");
  ASSERT_EQ(track({"BCAST"}), kOk);
  EXPECT_EQ(shown(), "on bcast / :0 /  x y z") << "the prefix of all keys is empty";
  EXPECT_THAT(track({"BCAST", "PREFIX", "xy"}),
              is_error("ERR", "'xy' overlaps with an existing prefix ''"));
  EXPECT_EQ(track({"BCAST"}), kOk);
}

TEST_F(ClientTrackingRequestsTest, CachingNeedsItsMode) {
  const auto needs_tracking = is_error("ERR", "OPTIN or OPTOUT");
  const auto needs_opt_in = is_error("ERR", "CACHING YES");
  const auto needs_opt_out = is_error("ERR", "CACHING NO");
  EXPECT_EQ(run({"CLIENT", "CACHING"}), error(protocol::wrong_arity("client|caching")));
  EXPECT_THAT(caching("YES"), needs_tracking);
  EXPECT_THAT(caching("NO"), needs_tracking);
  ASSERT_EQ(track({}), kOk);
  EXPECT_THAT(caching("YES"), needs_opt_in);
  EXPECT_THAT(caching("NO"), needs_opt_out);
  EXPECT_EQ(caching("perhaps"), error(kSyntaxError));
  ASSERT_EQ(track({"OPTIN"}), kOk);
  EXPECT_THAT(caching("NO"), needs_opt_out);
  EXPECT_EQ(caching("YES"), kOk);
}

TEST_F(ClientTrackingRequestsTest, TheMarkOfCachingIsShownUntilTheNextCommand) {
  ASSERT_EQ(track({"OPTIN"}), kOk);
  ASSERT_EQ(caching("YES"), kOk);
  EXPECT_EQ(shown(), "on optin caching-yes / :0 /");
  run({"PING"});
  EXPECT_EQ(shown(), "on optin / :0 /");
  run({"CLIENT", "TRACKING", "OFF"});
  ASSERT_EQ(track({"OPTOUT", "NOLOOP"}), kOk);
  ASSERT_EQ(caching("NO"), kOk);
  EXPECT_EQ(shown(), "on optout caching-no noloop / :0 /");
}

TEST_F(ClientTrackingRequestsTest, ATransactionMayBegin) {
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(track({}), "+QUEUED\r\n");
  EXPECT_EQ(run({"CLIENT", "TRACKINGINFO"}), "+QUEUED\r\n");
  EXPECT_TRUE(run({"EXEC"}).starts_with("*2\r\n+OK\r\n*6\r\n$5\r\nflags\r\n*1\r\n$2\r\non\r\n"));
  EXPECT_EQ(shown(), "on / :0 /");
}

TEST_F(ClientTrackingRequestsTest, Resp3ShowsAMapWithASet) {
  run({"HELLO", "3"});
  ASSERT_EQ(track({}), kOk);
  EXPECT_EQ(run({"CLIENT", "TRACKINGINFO"}), "%3\r\n" + bulk("flags") + "~1\r\n" + bulk("on") +
                                                 bulk("redirect") + integer(0) + bulk("prefixes") +
                                                 "*0\r\n");
}

TEST_F(ClientTrackingRequestsTest, FiguresAndLettersFollow) {
  const auto figures = [this] {
    std::istringstream lines(run({"INFO", "everything"}));
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("tracking_")) text += line.substr(line.find(':') + 1, 1);
    }
    // The text has four digits, the first digit of each of these fields: tracking_clients,
    // tracking_total_keys, tracking_total_items and tracking_total_prefixes.
    return text;
  };
  EXPECT_EQ(figures(), "0000");
  ASSERT_EQ(track({}), kOk);
  EXPECT_EQ(figures(), "1000");
  run({"GET", "a"});
  EXPECT_EQ(figures(), "1110");
  run({"MGET", "a", "b"});
  EXPECT_EQ(figures(), "1220");
  run({"SET", "a", "1"});
  EXPECT_EQ(figures(), "1110");
  run({"GET", "c"});
  EXPECT_EQ(figures(), "1220");
  tracking_.invalidate_all();
  EXPECT_EQ(figures(), "1000");
  run({"GET", "a"});
  run_as_other({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "y"});
  EXPECT_EQ(figures(), "2112");
  EXPECT_NE(run_as_other({"CLIENT", "INFO"}).find(" flags=tB "), std::string::npos);
  other_.reset();
  EXPECT_EQ(figures(), "1110");
}

}  // namespace
}  // namespace server

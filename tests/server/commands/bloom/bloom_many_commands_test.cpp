// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "protocol/error_texts.h"
#include "protocol/reply_writer.h"
#include "server/base/config/config.h"
#include "server/base/process/memory_monitor.h"
#include "server/commands/bloom/bloom_items.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/commands/server/introspection_commands.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

class BloomManyCommandsTest : public CommandTest {
 protected:
  void configure(const std::string& name, const std::string& value) {
    const std::vector<NamedValue> pairs{{name, value}};
    ASSERT_TRUE(config_.set(pairs)) << name;
  }
  static std::string row(const std::vector<int>& answers) {
    std::vector<std::string> replies;
    for (const int answer : answers) replies.push_back(integer(answer));
    return array(replies);
  }
  // Returns the replies of BF.MEXISTS for each key.
  std::string one_by_one(const std::vector<std::string>& keys,
                         const std::vector<std::string>& items) {
    std::vector<std::string> replies;
    for (const std::string& key : keys) {
      std::vector<std::string> command{"BF.MEXISTS", key};
      command.insert(command.end(), items.begin(), items.end());
      replies.push_back(run(command));
    }
    return array(replies);
  }
  static std::vector<std::string> many(const std::string& name,
                                       const std::vector<std::string>& keys,
                                       const std::vector<std::string>& items) {
    std::vector<std::string> command{name, std::to_string(keys.size())};
    command.insert(command.end(), keys.begin(), keys.end());
    command.insert(command.end(), items.begin(), items.end());
    return command;
  }
  static std::vector<std::string> numbered(const std::string& prefix, int count) {
    std::vector<std::string> words;
    for (int i = 0; i < count; ++i) words.push_back(prefix + std::to_string(i));
    return words;
  }

  const ::testing::Matcher<const std::string&> kNone = is_error("ERR", "numkeys");
  const ::testing::Matcher<const std::string&> kTooMany = is_error("ERR", "Number of keys");
};

TEST_F(BloomManyCommandsTest, AnArrayOfAnswersForEachKey) {
  run({"BF.MADD", "a", "x", "y"});
  run({"BF.MADD", "b", "y"});
  run({"SET", "string", "x"});
  EXPECT_EQ(run({"BF.KEXISTS", "2", "a", "b", "x", "y", "z"}),
            array({row({1, 1, 0}), row({0, 1, 0})}));
  EXPECT_EQ(run({"BF.KEXISTS", "1", "a", "x"}), array({row({1})}));
  EXPECT_EQ(run({"BF.KEXISTS", "4", "none", "string", "b", "b", "y"}),
            array({row({0}), row({0}), row({1}), row({1})}));
  client_->session->client->resp = protocol::RespVersion::kResp3;
  EXPECT_EQ(run({"BF.KEXISTS", "2", "a", "none", "x"}), "*2\r\n*1\r\n#t\r\n*1\r\n#f\r\n");
}

TEST_F(BloomManyCommandsTest, CountsAreCheckedFirst) {
  for (const std::string name : {"BF.KEXISTS", "BF.KADD"}) {
    for (const std::string count : {"0", "-1", "x", "", "1.5", "99999999999999999999"}) {
      EXPECT_THAT(run({name, count, "a", "x"}), kNone) << count;
    }
    EXPECT_THAT(run({name, "3", "a", "x"}), kTooMany);
    const std::string lower = name == "BF.KADD" ? "bf.kadd" : "bf.kexists";
    const std::string arity = error(protocol::wrong_arity(lower));
    EXPECT_EQ(run({name, "2", "a", "x"}), arity);
    EXPECT_EQ(run({name, "1", "a"}), arity);
  }
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
  for (const std::string name : {"BF.KEXISTS", "BF.KADD"}) {
    EXPECT_THAT(run(many(name, numbered("k", 1025), numbered("i", 1024))),
                is_error("ERR", "1048576"));
  }
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

// Each key takes more memory than its answer.
TEST_F(BloomManyCommandsTest, MemoryOfManyKeysIsChecked) {
  const auto command = many("BF.KEXISTS", numbered("k", 200'000), {"x"});
  memory_.set_limit(memory_.refresh() + (8 << 20));
  EXPECT_THAT(run(command), is_error("OOM", "maxmemory"));
  memory_.set_limit(0);
  EXPECT_TRUE(run(command).starts_with("*200000\r\n"));
}

TEST_F(BloomManyCommandsTest, AgreesWithLookupsOneByOneInEveryLayout) {
  std::vector<std::string> keys{"missing"};
  for (const std::string layout : {"native", "redisbloom", "valkey-bloom"}) {
    configure("bf-layout", layout);
    for (int i = 0; i < 20; ++i) {
      keys.push_back(layout + std::to_string(i));
      std::vector<std::string> command{"BF.MADD", keys.back()};
      // Some of the filters have several layers.
      for (int n = 0; n < 3 + 20 * i; ++n) command.push_back(std::to_string(n * (i + 1)));
      run(command);
    }
  }
  // The replies are correct although most of the filters do not have the layout that bf-layout sets
  // for new filters.
  for (const std::string layout : {"native", "redisbloom", "valkey-bloom"}) {
    configure("bf-layout", layout);
    for (const int item_count : {1, 2, 100}) {
      const auto items = numbered("", item_count);
      EXPECT_EQ(run(many("BF.KEXISTS", keys, items)), one_by_one(keys, items)) << layout;
    }
  }
}

TEST_F(BloomManyCommandsTest, MissingFilterDiffersFromMissingItem) {
  run({"BF.ADD", "a", "x"});
  run({"SET", "string", "x"});
  run({"BF.ADD", "old", "x"});
  run({"PEXPIRE", "old", "1"});
  advance_ms(2);
  configure("bf-exists-missing-key", "nil");
  const std::string nils = array({kNull, kNull});
  EXPECT_EQ(run({"BF.EXISTS", "none", "x"}), kNull);
  EXPECT_EQ(run({"BF.MEXISTS", "none", "x", "y"}), nils);
  EXPECT_EQ(run({"BF.MEXISTS", "old", "x", "y"}), nils);
  EXPECT_EQ(run({"BF.KEXISTS", "3", "none", "a", "string", "x", "y"}),
            array({nils, row({1, 0}), row({0, 0})}));
  // For a key that contains another type, BF.EXISTS returns 0. For a missing key, BF.EXISTS returns
  // nil, unless the option bf-exists-missing-key is set to "zero".
  EXPECT_EQ(run({"BF.EXISTS", "string", "x"}), integer(0));
  EXPECT_EQ(run({"BF.EXISTS", "a", "z"}), integer(0));
  client_->session->client->resp = protocol::RespVersion::kResp3;
  EXPECT_EQ(run({"BF.EXISTS", "none", "x"}), "_\r\n");
  EXPECT_EQ(run({"BF.MEXISTS", "none", "x"}), "*1\r\n_\r\n");
  EXPECT_EQ(run({"BF.KEXISTS", "1", "none", "x"}), "*1\r\n*1\r\n_\r\n");
  configure("bf-exists-missing-key", "zero");
  EXPECT_EQ(run({"BF.EXISTS", "none", "x"}), "#f\r\n");
  EXPECT_EQ(run({"BF.KEXISTS", "1", "none", "x"}), "*1\r\n*1\r\n#f\r\n");
}

TEST_F(BloomManyCommandsTest, WindowsTurnUnderBoth) {
  run({"BF.RESERVE", "w", "0.01", "1000", "WINDOW", "100"});
  EXPECT_EQ(run({"BF.KADD", "2", "w", "plain", "x"}), array({row({1}), row({1})}));
  EXPECT_EQ(run({"BF.KADD", "2", "w", "plain", "x"}), array({row({0}), row({0})}));
  advance_ms(126'000);
  EXPECT_EQ(run({"BF.KEXISTS", "2", "w", "plain", "x"}), array({row({0}), row({1})}));
  EXPECT_EQ(run({"BF.KADD", "2", "w", "plain", "x"}), array({row({1}), row({0})}));
  EXPECT_EQ(run({"BF.KEXISTS", "1", "w", "x"}), array({row({1})}));
}

TEST_F(BloomManyCommandsTest, KaddMakesWhatIsMissing) {
  run({"BF.RESERVE", "full", "0.01", "1", "NONSCALING"});
  run({"BF.ADD", "a", "x"});
  const std::string full = error(kFilterFull);
  // As with BF.MADD, the replies for a filter end with its first error, such as that of a full
  // filter.
  EXPECT_EQ(run({"BF.KADD", "3", "a", "full", "new", "x", "y", "z"}),
            array({row({0, 1, 1}), array({integer(1), full}), row({1, 1, 1})}));
  EXPECT_EQ(run({"BF.CARD", "new"}), integer(3));
  EXPECT_EQ(run({"BF.INFO", "new", "CAPACITY"}), array({integer(100)}));
  // If BF.KADD names a key twice, the second add to this key finds the item that the first add has
  // added.
  EXPECT_EQ(run({"BF.KADD", "2", "twice", "twice", "x"}), array({row({1}), row({0})}));
}

TEST_F(BloomManyCommandsTest, KaddRefusesAStringBeforeItAdds) {
  run({"SET", "string", "x"});
  EXPECT_EQ(run({"BF.KADD", "2", "a", "string", "x"}), error(kWrongType));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
  EXPECT_EQ(run({"GET", "string"}), bulk("x"));
}

TEST_F(BloomManyCommandsTest, KaddAnswersAFilterThatCannotBeMadeInItsPlace) {
  run({"BF.RESERVE", "a", "0.01", "10"});
  configure("bf.bloom-memory-usage-limit", "1kb");
  configure("bf-initial-size", "100000");
  EXPECT_EQ(run({"BF.KADD", "3", "new", "a", "other", "x"}),
            array({error(kFilterTooLarge), row({1}), error(kFilterTooLarge)}));
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
}

TEST_F(BloomManyCommandsTest, BothWorkInATransaction) {
  run({"MULTI"});
  run({"BF.KADD", "2", "a", "b", "x"});
  run({"BF.KEXISTS", "2", "a", "b", "x", "y"});
  EXPECT_EQ(run({"EXEC"}), array({array({row({1}), row({1})}), array({row({1, 0}), row({1, 0})})}));
}

TEST_F(BloomManyCommandsTest, KeysAreThoseThatAreCounted) {
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "BF.KEXISTS", "2", "a", "b", "x", "y"}),
            array({bulk("a"), bulk("b")}));
  EXPECT_EQ(run({"COMMAND", "GETKEYS", "BF.KADD", "9", "a", "x"}), error(kInvalidKeyArguments));
  const std::string info = run({"COMMAND", "INFO", "BF.KADD"});
  EXPECT_NE(info.find("movablekeys"), std::string::npos);
  EXPECT_NE(info.find("keynum"), std::string::npos);
}

TEST_F(BloomManyCommandsTest, ManyKeysInABigDatabase) {
  const auto keys = numbered("k", 10'000);
  for (size_t start = 0; start < keys.size(); start += 1000) {
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(start);
    run(many("BF.KADD", {first, first + 1000}, {"x" + std::to_string(start)}));
  }
  EXPECT_EQ(run({"DBSIZE"}), integer(10'000));
  const std::vector<std::string> some{"k0", "k1500", "nokey", "k9999", "k5000"};
  const std::vector<std::string> items{"x0", "x1000", "x5000", "x9000"};
  EXPECT_EQ(run(many("BF.KEXISTS", some, items)), one_by_one(some, items));
}

}  // namespace
}  // namespace server

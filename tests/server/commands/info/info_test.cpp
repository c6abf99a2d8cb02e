// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/info_test.h"

namespace server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

using InfoSectionsTest = InfoTest;

TEST_F(InfoSectionsTest, WithoutANameTheUsualOnesCome) {
  EXPECT_THAT(titles_in(info({})),
              ElementsAre("Server", "Clients", "Memory", "Persistence", "Stats", "Replication",
                          "CPU", "Modules", "Errorstats", "Cluster", "Keyspace"));
  EXPECT_EQ(titles_in(info({"default"})), titles_in(info({})));
}

TEST_F(InfoSectionsTest, AllHasThoseOfCommandsToo) {
  EXPECT_THAT(titles_in(info({"all"})), IsSupersetOf({"Commandstats", "Latencystats"}));
  EXPECT_THAT(titles_in(info({"all"})), Not(Contains("bf_bloom_core_metrics")));
}

TEST_F(InfoSectionsTest, EverythingHasThoseOfTheModuleToo) {
  EXPECT_THAT(titles_in(info({"everything"})),
              IsSupersetOf({"Commandstats", "bf_bloom_core_metrics", "bf_bloom_defrag_metrics"}));
}

TEST_F(InfoSectionsTest, TheModulesSectionsHaveANameTogether) {
  for (const char* const name : {"modules", "MODULES"}) {
    EXPECT_THAT(titles_in(info({name})),
                ElementsAre("Modules", "bf_bloom_core_metrics", "bf_bloom_defrag_metrics"));
  }
  EXPECT_THAT(titles_in(info({"bf"})),
              ElementsAre("bf_bloom_core_metrics", "bf_bloom_defrag_metrics"));
}

TEST_F(InfoSectionsTest, NamesAreKnownInAnyCase) {
  EXPECT_THAT(titles_in(info({"SERVER"})), ElementsAre("Server"));
  EXPECT_THAT(titles_in(info({"kEySpAcE"})), ElementsAre("Keyspace"));
}

TEST_F(InfoSectionsTest, EachComesOnceAndInTheOrderOfTheTable) {
  EXPECT_THAT(titles_in(info({"keyspace", "server", "keyspace", "SERVER"})),
              ElementsAre("Server", "Keyspace"));
}

TEST_F(InfoSectionsTest, UnknownNamesAddNothing) {
  EXPECT_EQ(info({"nosuch"}), "");
  EXPECT_THAT(titles_in(info({"nosuch", "cpu"})), ElementsAre("CPU"));
}

TEST_F(InfoSectionsTest, SectionsAreDividedByAnEmptyLine) {
  const std::string text = info({"cpu", "keyspace"});
  EXPECT_NE(text.find("\r\n\r\n# Keyspace\r\n"), std::string::npos);
  EXPECT_EQ(text.find("# CPU\r\n"), 0U);
}

TEST_F(InfoSectionsTest, AllOfThemRunInsideExec) {
  run({"BF.ADD", "f", "a"});
  run({"MULTI"});
  run({"INFO", "everything"});
  EXPECT_NE(run({"EXEC"}).find("bf_bloom_num_objects:1\r\n"), std::string::npos);
}

}  // namespace
}  // namespace server

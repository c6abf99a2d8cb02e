// SPDX-License-Identifier: MIT
#include "server/commands/info/memory_figures.h"

#include <gtest/gtest.h>

#include <string>

#include "core/keyspace/keyspace.h"
#include "tests/support/info_test.h"

namespace server {
namespace {

class MemoryFiguresTest : public InfoTest {
 protected:
  // Returns a number of MEMORY STATS.
  int64_t stat(const std::string& name) {
    const std::string reply = run({"MEMORY", "STATS"});
    const std::string label = bulk(name) + ":";
    const size_t start = reply.find(label);
    EXPECT_NE(start, std::string::npos) << name;
    return start == std::string::npos ? -1 : std::stoll(reply.substr(start + label.size()));
  }
};

TEST_F(MemoryFiguresTest, InfoAndMemoryStatsAgree) {
  run({"SET", "a", "1", "EX", "100"});
  run({"SELECT", "2"});
  run({"SET", "b", "1"});
  EXPECT_EQ(number("memory", "used_memory_overhead"), stat("overhead.total"));
  EXPECT_EQ(number("memory", "used_memory_startup"), stat("startup.allocated"));
  EXPECT_EQ(number("memory", "mem_clients_normal"), stat("clients.normal"));
}

TEST_F(MemoryFiguresTest, TablesOfAllDatabasesAreCounted) {
  const auto empty = measure_memory(services_, core::keyspace::Locking::kTake);
  EXPECT_EQ(empty.table_bytes, core::keyspace::table_memory_bytes(keyspace_));
  EXPECT_TRUE(empty.databases.empty());
  run({"SET", "a", "1", "EX", "100"});
  run({"SELECT", "2"});
  run({"SET", "b", "1"});
  const auto figures = measure_memory(services_, core::keyspace::Locking::kTake);
  EXPECT_EQ(figures.table_bytes, core::keyspace::table_memory_bytes(keyspace_));
  EXPECT_EQ(figures.key_count, 2U);
  ASSERT_EQ(figures.databases.size(), 2U);
  EXPECT_EQ(figures.databases[0].index, 0U);
  EXPECT_EQ(figures.databases[1].index, 2U);
  EXPECT_GT(figures.databases[0].expiries, figures.databases[1].expiries);
}

}  // namespace
}  // namespace server

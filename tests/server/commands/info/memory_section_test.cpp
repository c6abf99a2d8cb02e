// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "server/base/process/memory_monitor.h"
#include "server/commands/info/section.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"
#include "server/session/session.h"
#include "tests/support/info_test.h"

namespace server {
namespace {

using testing::MatchesRegex;

using MemorySectionTest = InfoTest;

TEST(HumanBytesTest, UnitsArePowersOf1024) {
  EXPECT_EQ(info::human_bytes(0), "0B");
  EXPECT_EQ(info::human_bytes(1023), "1023B");
  EXPECT_EQ(info::human_bytes(1024), "1.00K");
  EXPECT_EQ(info::human_bytes(1536), "1.50K");
  EXPECT_EQ(info::human_bytes(uint64_t{3} << 20), "3.00M");
  EXPECT_EQ(info::human_bytes(uint64_t{5} << 30), "5.00G");
  EXPECT_EQ(info::human_bytes(uint64_t{7} << 40), "7.00T");
}

TEST(HumanBytesTest, TheBiggestUnitTakesTheRest) {
  EXPECT_EQ(info::human_bytes(uint64_t{1} << 63), "8192.00P");
}

TEST_F(MemorySectionTest, UsedMemoryFollowsTheData) {
  const int64_t before = number("memory", "used_memory");
  run({"SET", "big", std::string(4'000'000, 'x')});
  EXPECT_GE(number("memory", "used_memory"), before + 4'000'000);
  EXPECT_THAT(field("memory", "used_memory_human"), MatchesRegex("[0-9.]+[KMG]"));
}

TEST_F(MemorySectionTest, ThePeakIsNotBelowWhatIsUsed) {
  run({"SET", "big", std::string(4'000'000, 'x')});
  const int64_t used = number("memory", "used_memory");
  EXPECT_GE(number("memory", "used_memory_peak"), used);
}

TEST_F(MemorySectionTest, TheDatasetIsWhatIsUsedBesidesTheOverhead) {
  const std::string text = "\n" + info({"memory"});
  const auto value = [&text](const std::string& name) {
    return std::stoll(text.substr(text.find("\n" + name + ":") + name.size() + 2));
  };
  const auto data = value("used_memory") - value("used_memory_overhead");
  EXPECT_EQ(value("used_memory_dataset"), std::max<int64_t>(data, 0));
}

TEST_F(MemorySectionTest, TheLimitAndThePolicyAreShown) {
  EXPECT_EQ(field("memory", "maxmemory"), "0");
  EXPECT_EQ(field("memory", "maxmemory_human"), "0B");
  EXPECT_EQ(field("memory", "maxmemory_policy"), "noeviction");
  memory_.set_limit(uint64_t{1} << 40);
  run({"CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"});
  EXPECT_EQ(field("memory", "maxmemory_human"), "1.00T");
  EXPECT_EQ(field("memory", "maxmemory_policy"), "allkeys-lfu");
}

TEST_F(MemorySectionTest, ClientsAreSummed) {
  const int64_t before = number("memory", "mem_clients_normal");
  other_->session->client->query_buffer_bytes = 1'000'000;
  EXPECT_EQ(number("memory", "mem_clients_normal"), before + 1'000'000);
}

TEST_F(MemorySectionTest, ReplicasAreShownApart) {
  const int64_t before = number("memory", "mem_clients_normal");
  EXPECT_EQ(number("memory", "mem_clients_slaves"), 0);
  other_->session->client->query_buffer_bytes = 1'000'000;
  other_->session->client->peer = Peer::kReplica;
  EXPECT_LT(number("memory", "mem_clients_normal"), before);
  const int64_t session_bytes = number("memory", "mem_clients_slaves");
  EXPECT_GT(session_bytes, 1'000'000);
  // The backlog keeps the stream bytes that a slow replica has not read. The bytes beyond the
  // backlog's configured size count as memory of the replica.
  Backlog& backlog = replication_.backlog();
  backlog.set_size(10'000);
  backlog.begin(0);
  const auto cursor = backlog.attach(0);
  backlog.append(std::string(1'000'000, 's'));
  EXPECT_GT(number("memory", "mem_clients_slaves"), session_bytes + 950'000);
  EXPECT_LT(number("memory", "mem_replication_backlog"), 50'000);
  EXPECT_GT(number("memory", "mem_total_replication_buffers"), 1'000'000);
  backlog.detach(*cursor);
  EXPECT_EQ(number("memory", "mem_clients_slaves"), session_bytes);
}

TEST_F(MemorySectionTest, ArraysOfBigFiltersAreReserved) {
  const int64_t before = number("memory", "mem_filter_arrays_reserved");
  run({"BF.RESERVE", "f", "0.001", "10000000"});
  EXPECT_GT(number("memory", "mem_filter_arrays_reserved"), before + 10'000'000);
  EXPECT_LT(number("memory", "mem_filter_arrays_resident"),
            number("memory", "mem_filter_arrays_reserved"))
      << "untouched pages are promised only";
}

}  // namespace
}  // namespace server

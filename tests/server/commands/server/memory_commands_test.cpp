// SPDX-License-Identifier: MIT
#include <string>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "protocol/reply_parser.h"
#include "tests/support/key_test.h"
#include "tests/support/waiting.h"

namespace server {
namespace {

class MemoryCommandsTest : public KeyTest {
 protected:
  int64_t usage(const std::string& key) {
    return std::stoll(run({"MEMORY", "USAGE", key}).substr(1));
  }
};

TEST_F(MemoryCommandsTest, UsageIsEntryAndShareOfTheTable) {
  put("a", std::string(1000, 'x'));
  EXPECT_GT(usage("a"), static_cast<int64_t>(entry_of("a")->memory_bytes()));
  EXPECT_LT(usage("a"), 4096);
  EXPECT_EQ(run({"MEMORY", "USAGE", "none"}), kNull);
}

TEST_F(MemoryCommandsTest, UsagesAddUpToTheKeyspace) {
  uint64_t entries = 0;
  for (int i = 0; i < 5000; ++i) {
    entries += put("key:" + std::to_string(i), "v").memory_bytes();
  }
  uint64_t usages = 0;
  for (int i = 0; i < 5000; ++i) {
    usages += static_cast<uint64_t>(usage("key:" + std::to_string(i)));
  }
  // MEMORY USAGE of a key includes a share of the hash tables' memory. Each share is rounded up by
  // at most one byte. No key has a share of the tables in stripes without keys.
  EXPECT_GT(usages, entries);
  EXPECT_LE(usages, entries + core::keyspace::table_memory_bytes(keyspace_) + 5000);
}

TEST_F(MemoryCommandsTest, UsageTakesSamplesForCompatibility) {
  put("a", "1");
  EXPECT_EQ(run({"MEMORY", "USAGE", "a", "SAMPLES", "0"}), run({"MEMORY", "USAGE", "a"}));
  EXPECT_EQ(run({"MEMORY", "USAGE", "a", "SAMPLES", "-1"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"MEMORY", "USAGE", "a", "SAMPLES"}), error(protocol::kSyntaxError));
  EXPECT_EQ(run({"MEMORY", "USAGE", "a", "SAMPLES", "x"}), error(protocol::kNotAnInteger));
}

TEST_F(MemoryCommandsTest, StatsAreAMapOfNumbers) {
  put("a", "1");
  const std::string stats = run({"MEMORY", "STATS"});
  EXPECT_TRUE(stats.starts_with("*74\r\n"));
  EXPECT_NE(stats.find(bulk("keys.count") + integer(1)), std::string::npos);
  EXPECT_NE(stats.find(bulk("total.allocated")), std::string::npos);
}

TEST_F(MemoryCommandsTest, DoctorPurgeAndReportAnswer) {
  EXPECT_TRUE(run({"MEMORY", "DOCTOR"}).starts_with("$"));
  put("big", std::string(size_t{6} << 20, 'x'));
  EXPECT_NE(run({"MEMORY", "DOCTOR"}).find(" MB"), std::string::npos) << "figures, not words alone";
  EXPECT_TRUE(run({"MEMORY", "MALLOC-STATS"}).starts_with("$"));
  EXPECT_EQ(run({"MEMORY", "PURGE"}), kOk);
}

TEST_F(MemoryCommandsTest, TheDoctorTellsOfAPeakWithFigures) {
  put("stays", std::string(size_t{6} << 20, 'x'));
  put("goes", std::string(size_t{200} << 20, 'x'));
  run({"MEMORY", "DOCTOR"});
  run({"DEL", "goes"});
  // Another thread frees the big value, so the test waits until the memory has fallen.
  std::string report;
  EXPECT_TRUE(support::wait_until([&] {
    report = run({"MEMORY", "DOCTOR"});
    return report.find("Peak: ") != std::string::npos;
  })) << report;
  EXPECT_NE(report.find(" MB were in use at some time, "), std::string::npos) << report;
  EXPECT_NE(report.find("MEMORY PURGE gives free pages back"), std::string::npos) << report;
}

TEST_F(MemoryCommandsTest, StatsRunInsideExec) {
  run({"MULTI"});
  run({"MEMORY", "STATS"});
  run({"MEMORY", "DOCTOR"});
  EXPECT_TRUE(run({"EXEC"}).starts_with("*2\r\n*72\r\n"));
}

// The fields of MEMORY STATS in Redis 7.0.15 with their types, in the same order, followed by the
// fields that only this server has.
TEST_F(MemoryCommandsTest, StatsHaveTheShapeOfRedis) {
  run({"HELLO", "3"});
  put("k", "v");
  run({"SELECT", "3"});
  put("k", "v");
  const std::string bytes = run({"MEMORY", "STATS"});
  protocol::ReplyParser parser;
  ASSERT_EQ(parser.parse(bytes), protocol::ReplyParser::Status::kReply);
  const protocol::Reply& stats = parser.reply();
  ASSERT_EQ(stats.type, protocol::Reply::Type::kMap);
  std::string shape;
  for (size_t i = 0; i + 1 < stats.elements.size(); i += 2) {
    const protocol::Reply& value = stats.elements[i + 1];
    shape += stats.elements[i].text;
    if (value.type == protocol::Reply::Type::kDouble) shape += "(double)";
    for (size_t j = 0; j < value.elements.size(); j += 2) {
      EXPECT_EQ(value.elements[j + 1].type, protocol::Reply::Type::kInteger);
      shape += (j == 0 ? "{" : ",") + value.elements[j].text;
    }
    shape += value.type == protocol::Reply::Type::kMap ? "} " : " ";
  }
  const std::string tables =
      "{overhead.hashtable.main,overhead.hashtable.expires,overhead.hashtable.slot-to-keys} ";
  EXPECT_EQ(shape,
            "peak.allocated total.allocated startup.allocated replication.backlog clients.slaves "
            "clients.normal cluster.links aof.buffer lua.caches functions.caches db.0" +
                tables + "db.3" + tables +
                "overhead.total keys.count keys.bytes-per-key dataset.bytes "
                "dataset.percentage(double) peak.percentage(double) allocator.allocated "
                "allocator.active allocator.resident allocator-fragmentation.ratio(double) "
                "allocator-fragmentation.bytes allocator-rss.ratio(double) allocator-rss.bytes "
                "rss-overhead.ratio(double) rss-overhead.bytes fragmentation(double) "
                "fragmentation.bytes heap.allocated filters.reserved filters.kept-for-child "
                "buffers.mapped lazyfree.pending filters.resident filters.huge-pages "
                "files.resident process.resident ");
}

TEST_F(MemoryCommandsTest, TheDoctorTakesNoWords) {
  EXPECT_EQ(run({"MEMORY", "DOCTOR", "x"}), error(protocol::wrong_arity("memory|doctor")));
}

}  // namespace
}  // namespace server

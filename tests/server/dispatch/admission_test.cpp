// SPDX-License-Identifier: MIT
//
// Configured limits apply only to commands of clients. Commands from a journal or a leader, and
// values from a snapshot, are not checked, because a server has accepted them earlier.
#include "server/dispatch/admission.h"

#include <gtest/gtest.h>

#include "core/bloom/redisbloom_layout.h"
#include "persistence/bytes/byte_codec.h"
#include "server/base/config/config.h"
#include "server/base/process/memory_monitor.h"
#include "server/dispatch/command_replayer.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

constexpr size_t kBigBytes = size_t{2} << 20;

class AdmissionTest : public CommandTest, public ::testing::WithParamInterface<CommandOrigin> {
 protected:
  void SetUp() override {
    run({"SET", "source", std::string(kBigBytes, 'x')});
    run({"BF.RESERVE", "filter", "0.01", "2000000", "LAYOUT", "redisbloom"});
    string_payload_ = payload_of(run({"DUMP", "source"}));
    filter_payload_ = payload_of(run({"DUMP", "filter"}));
    const std::string chunk = run({"BF.SCANDUMP", "filter", "0"});
    chunk_header_ = payload_of(chunk.substr(chunk.find('$')));
    memory_.set_limit(1);
    const std::vector<NamedValue> pairs{{"proto-max-bulk-len", "1mb"},
                                        {"bf.bloom-memory-usage-limit", "1000"}};
    ASSERT_TRUE(config_.set(pairs));
  }
  static std::string payload_of(const std::string& reply) {
    const size_t begin = reply.find("\r\n") + 2;
    return reply.substr(begin, reply.size() - begin - 2);
  }
  std::string replay(const std::vector<std::string>& command) {
    CommandReplayer replayer(services_, GetParam());
    const std::vector<std::string_view> words(command.begin(), command.end());
    return std::string(replayer.execute(words));
  }

  std::string string_payload_;
  std::string filter_payload_;
  std::string chunk_header_;
};

TEST_P(AdmissionTest, StringsOfAnySize) {
  const std::string big(kBigBytes, 'y');
  EXPECT_EQ(replay({"SET", "set", big}), kOk);
  EXPECT_EQ(replay({"MSET", "mset1", big, "mset2", big}), kOk);
  EXPECT_EQ(replay({"SET", "set", big}), kOk);
  EXPECT_EQ(replay({"APPEND", "set", big}), integer(2 * kBigBytes));
  EXPECT_EQ(replay({"SETRANGE", "range", std::to_string(kBigBytes), "x"}), integer(kBigBytes + 1));
  EXPECT_EQ(replay({"COPY", "source", "copy"}), integer(1));
  EXPECT_EQ(replay({"RESTORE", "restored", "0", string_payload_}), kOk);
}

TEST_P(AdmissionTest, BitsAtAnyOffset) {
  const std::string far = std::to_string(kBigBytes * 8);
  EXPECT_EQ(replay({"SETBIT", "bits", far, "1"}), integer(0));
  EXPECT_EQ(replay({"BITFIELD", "fields", "SET", "u8", far, "1"}), array({integer(0)}));
  EXPECT_EQ(replay({"BITOP", "NOT", "not", "source"}), integer(kBigBytes));
}

TEST_P(AdmissionTest, FiltersOfAnySize) {
  EXPECT_EQ(replay({"BF.RESERVE", "reserved", "0.01", "2000000"}), kOk);
  EXPECT_EQ(replay({"BF.INSERT", "inserted", "CAPACITY", "2000000", "ITEMS", "a"}),
            array({integer(1)}));
  EXPECT_EQ(replay({"BF.ADD", "inserted", "b"}), integer(1));
  EXPECT_EQ(replay({"RESTORE", "restored", "0", filter_payload_}), kOk);
  EXPECT_EQ(replay({"BF.LOADCHUNK", "loaded", "1", chunk_header_}), kOk);
  EXPECT_EQ(replay({"COPY", "filter", "copy"}), integer(1));
}

TEST_P(AdmissionTest, FailedAllocationIsAnErrorForEveryOrigin) {
  EXPECT_TRUE(replay({"SETRANGE", "a", "4611686018427387904", "x"}).starts_with("-OOM"));
  EXPECT_TRUE(replay({"SETBIT", "a", "9223372036854775807", "1"}).starts_with("-OOM"));
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

INSTANTIATE_TEST_SUITE_P(Origins, AdmissionTest,
                         ::testing::Values(CommandOrigin::kOwnJournal,
                                           CommandOrigin::kForeignJournal));

using AdmissionOfClientsTest = CommandTest;

TEST_F(AdmissionOfClientsTest, ClientsAreJudged) {
  const std::string text(kBigBytes / 2, 'x');
  EXPECT_EQ(run({"SET", "text", text}), kOk);
  const std::vector<NamedValue> pairs{{"proto-max-bulk-len", "1mb"}};
  ASSERT_TRUE(config_.set(pairs));
  EXPECT_TRUE(run({"APPEND", "text", "x"}).starts_with("-ERR string exceeds"));
  EXPECT_TRUE(run({"SETRANGE", "text", "1048576", "x"}).starts_with("-ERR string exceeds"));
  EXPECT_TRUE(run({"SETBIT", "text", "8388608", "1"}).starts_with("-ERR bit offset"));
  memory_.set_limit(memory_.refresh() + kBigBytes / 4);
  EXPECT_TRUE(run({"COPY", "text", "copy"}).starts_with("-OOM"));
  EXPECT_TRUE(run({"SETBIT", "bits", "8388607", "1"}).starts_with("-OOM"));
  EXPECT_TRUE(run({"BF.RESERVE", "filter", "0.01", "2000000"}).starts_with("-"));
}

// Returns the first chunk of a filter of 9 TiB.
std::string huge_chunk_header() {
  using core::bloom::RedisBloomLayout;
  constexpr uint64_t kCapacity = uint64_t{1} << 43;
  constexpr double kErrorRate = 0.01;
  const core::bloom::Geometry geometry = *RedisBloomLayout::size(kCapacity, kErrorRate);
  std::string header;
  persistence::ByteWriter out(header);
  out.u64(0);
  for (const uint32_t number : {1, 5, 2}) out.u32(number);  // layers, options, growth
  for (const uint64_t number : {geometry.bit_count / 8, geometry.bit_count, uint64_t{0}}) {
    out.u64(number);
  }
  out.f64(kErrorRate);
  out.f64(RedisBloomLayout::bits_per_item(kErrorRate));
  out.u32(geometry.hash_count);
  out.u64(kCapacity);
  out.u8(0);
  return header;
}

// Only a server with maxmemory may name it in an error.
TEST_F(AdmissionOfClientsTest, ErrorsNameTheMemoryThatIsShort) {
  const std::vector<std::string> load{"BF.LOADCHUNK", "f", "1", huge_chunk_header()};
  EXPECT_EQ(run(load), error(kMachineOutOfMemory));
  memory_.set_limit(memory_.refresh() + kBigBytes);
  EXPECT_EQ(run(load), error(kOutOfMemory));
  EXPECT_EQ(run({"EXISTS", "f"}), integer(0));
}

TEST_F(AdmissionOfClientsTest, AQueueIsMemory) {
  // The filter's array is big enough to be mapped. Mapped arrays count as used memory even if the
  // server is built with a sanitizer's allocator.
  EXPECT_EQ(run({"BF.RESERVE", "mapped", "0.01", "10000000"}), kOk);
  EXPECT_EQ(run({"MULTI"}), kOk);
  // The argument is so big that used memory is measured immediately.
  EXPECT_EQ(run({"GET", std::string(kBigBytes, 'k')}), "+QUEUED\r\n");
  EXPECT_GE(client_->session->client->queued_bytes, kBigBytes);
  memory_.set_limit(memory_.refresh() / 2);
  EXPECT_EQ(run({"GET", "a"}), error(kOutOfMemory));
  EXPECT_TRUE(run({"EXEC"}).starts_with("-EXECABORT"));
  EXPECT_EQ(client_->session->client->queued_bytes, 0U);
  memory_.set_limit(1);
  memory_.refresh();
  EXPECT_EQ(run({"MULTI"}), kOk);
  EXPECT_EQ(run({"DISCARD"}), kOk);
}

}  // namespace
}  // namespace server

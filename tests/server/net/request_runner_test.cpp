// SPDX-License-Identifier: MIT
#include "server/net/request_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/base/metrics/statistics.h"
#include "server/net/loop/reply_gate.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/fake_reply_log.h"
#include "tests/support/set_option.h"

namespace server::net {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using End = RequestRunner::End;

class RequestRunnerTest : public CommandTest {
 protected:
  // Appends `bytes` to the bytes kept from earlier calls, and runs the complete commands. Returns
  // their replies.
  std::string feed(std::string_view bytes, size_t reply_bytes_limit = RequestRunner::kNoLimit) {
    kept_ += bytes;
    const auto [end, consumed, pending] = runner_.run(kept_, batch_, gate_, reply_bytes_limit);
    EXPECT_LE(consumed, kept_.size());
    kept_.erase(0, consumed);
    end_ = end;
    std::string replies(gate_.fresh());
    gate_.drop_fresh();
    return replies;
  }

  FakeReplyLog log_;
  ReplyGate gate_{log_, [](bool) {}};
  Session& session_ = *client_->session;
  RequestRunner runner_{services_, statistics_.thread(0), session_};
  RequestBatch batch_;
  std::string kept_;
  End end_ = End::kNeedsInput;
};

const std::string kPipeline =
    "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n1234\r\nGET a\r\n*2\r\n$3\r\nDEL\r\n$1\r\na\r\nPING\r\n";
const std::string kReplies = "+OK\r\n$4\r\n1234\r\n:1\r\n+PONG\r\n";

TEST_F(RequestRunnerTest, RunsAllThatIsComplete) {
  EXPECT_EQ(feed(kPipeline + "GET"), kReplies);
  EXPECT_EQ(end_, End::kNeedsInput);
  EXPECT_EQ(feed(" a\r\n"), kNull);
  EXPECT_EQ(kept_, "");
  EXPECT_EQ(feed(""), "");
}

TEST_F(RequestRunnerTest, ASlowCommandDoesNotShortenLaterExpiries) {
  config_.replace(OptionId::kEnableDebugCommand, "yes");
  feed("SET a 1 PX 500000\r\n");
  clock_.step_ms = 1000;
  EXPECT_EQ(feed("DEBUG SLEEP 0.005\r\nSET b 1 PX 500000\r\n"), "+OK\r\n+OK\r\n");
  clock_.step_ms = 0;
  const auto expiry_ms = [&](const std::string& key) {
    return std::stoll(feed("PEXPIRETIME " + key + "\r\n").substr(1));
  };
  // The clock was read for the batch, and again after the slow command.
  EXPECT_GE(expiry_ms("b"), expiry_ms("a") + 2000);
}

TEST_F(RequestRunnerTest, AKilledClientRunsNothing) {
  session_.client->kill_requested = true;
  EXPECT_EQ(feed("SET a 1\r\n"), "");
  EXPECT_EQ(end_, End::kClosesClient);
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(RequestRunnerTest, AReplicaMaySendOnlyWhatBelongsToItsStream) {
  session_.client->peer = Peer::kReplica;
  session_.reply_mode = ReplyMode::kOff;
  EXPECT_EQ(feed("REPLCONF ACK 1\r\nreplconf ack 2\r\nPSYNC ? -1\r\nSYNC\r\n"), "");
  EXPECT_EQ(end_, End::kNeedsInput);
  for (const std::string command :
       {"SET a 1", "GET a", "DEL a", "FLUSHALL", "PUBLISH c m", "MULTI", "EXEC", "PING",
        "CLIENT REPLY ON", "CONFIG SET hz 20", "REPLICAOF NO ONE", "MONITOR", "SUBSCRIBE c",
        "SHUTDOWN", "NOSUCH"}) {
    EXPECT_EQ(feed("REPLCONF ACK 1\r\n" + command + "\r\nSET b 1\r\n"), "") << command;
    EXPECT_EQ(end_, End::kClosesClient) << command;
    kept_.clear();
  }
  EXPECT_EQ(session_.client->peer, Peer::kReplica);
  session_.client->peer = Peer::kClient;
  session_.reply_mode = ReplyMode::kOn;
  EXPECT_EQ(feed("EXISTS a b\r\n"), ":0\r\n");
  EXPECT_EQ(config_.hz(), 10);
}

TEST_F(RequestRunnerTest, RepliesAreNotStoredBeyondTheLimit) {
  constexpr size_t kLimit = size_t{4} << 20;
  run({"SET", "big", std::string(kLimit / 2, 'x')});
  std::string mget = "MGET";
  for (int i = 0; i < 100; ++i) mget += " big";
  const std::string commands[] = {
      mget + "\r\n",
      "MULTI\r\nGET big\r\nGETRANGE big 0 -1\r\nGET big\r\nSET after 1\r\nGET big\r\nEXEC\r\n",
  };
  for (const std::string& command : commands) {
    feed(command + "SET next 1\r\n", kLimit);
    EXPECT_EQ(end_, End::kOverOutputLimit);
    kept_.clear();
    EXPECT_LT(gate_.replies().capacity(), 2 * kLimit);
    EXPECT_EQ(gate_.replies().size(), 0U);
    EXPECT_EQ(run({"EXISTS", "next"}), integer(0)) << "no command runs behind the last one";
  }
  EXPECT_EQ(run({"GET", "after"}), bulk("1")) << "a transaction runs to its end";
  EXPECT_EQ(feed("GET after\r\n", kLimit), bulk("1"));
  EXPECT_EQ(end_, End::kNeedsInput);
}

TEST_F(RequestRunnerTest, TheLimitCountsWhatFitsIntoTheBufferToo) {
  run({"SET", "key", std::string(1000, 'x')});
  for (int i = 0; i < 3; ++i) {
    feed("GET key\r\n", 2000);
    EXPECT_EQ(end_, End::kNeedsInput);
    feed("GET key\r\nGET key\r\nGET key\r\nGET key\r\n", 2000);
    EXPECT_EQ(end_, End::kOverOutputLimit);
    EXPECT_NE(kept_, "") << "the rest has not run";
    kept_.clear();
  }
}

TEST_F(RequestRunnerTest, ListsOfKeysAreLimitedToo) {
  for (int i = 0; i < 1000; ++i) run({"SET", std::string(100, 'k') + std::to_string(i), ""});
  feed("KEYS *\r\n", 50'000);
  EXPECT_EQ(end_, End::kOverOutputLimit);
  EXPECT_LT(gate_.replies().capacity(), 100'000U);
  feed("SCAN 0 COUNT 1000\r\n", 50'000);
  EXPECT_EQ(end_, End::kOverOutputLimit);
  feed("SCAN 0 COUNT 100\r\n", 50'000);
  EXPECT_EQ(end_, End::kNeedsInput);
}

TEST_F(RequestRunnerTest, ASilencedReplyBreaksNoLimit) {
  run({"SET", "key", std::string(1000, 'x')});
  feed("CLIENT REPLY SKIP\r\nGET key\r\nCLIENT REPLY SKIP\r\n", 100);
  EXPECT_EQ(end_, End::kNeedsInput);
  EXPECT_EQ(feed("GET key\r\n", 100), "");
  EXPECT_EQ(feed("PING\r\n", 100), "+PONG\r\n");
  EXPECT_EQ(end_, End::kNeedsInput);
}

TEST_F(RequestRunnerTest, ResetAfterReplySkipHasNoReply) {
  EXPECT_EQ(feed("CLIENT REPLY SKIP\r\nRESET\r\nPING\r\n"), "+PONG\r\n");
  EXPECT_EQ(feed("CLIENT REPLY OFF\r\nPING\r\nRESET\r\nPING\r\n"), "+RESET\r\n+PONG\r\n");
}

TEST_F(RequestRunnerTest, BytesMayComeInAnyParts) {
  for (size_t cut = 0; cut <= kPipeline.size(); ++cut) {
    std::string replies = feed(std::string_view(kPipeline).substr(0, cut));
    replies += feed(std::string_view(kPipeline).substr(cut));
    EXPECT_EQ(replies, kReplies) << cut;
    EXPECT_EQ(kept_, "");
  }
}

TEST_F(RequestRunnerTest, MoreThanABatchRunsInOrder) {
  std::string requests;
  std::string replies;
  for (size_t i = 1; i <= 3 * kLookAheadMax + 1; ++i) {
    requests += "INCR n\r\n";
    replies += integer(static_cast<int64_t>(i));
  }
  EXPECT_EQ(feed(requests), replies);
}

TEST_F(RequestRunnerTest, HeldCommandsRunLater) {
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(feed("PING\r\nSET a 1\r\nPING\r\n"), "+PONG\r\n");
  EXPECT_EQ(end_, End::kHeldBack);
  EXPECT_EQ(kept_, "SET a 1\r\nPING\r\n");
  run({"CLIENT", "UNPAUSE"});
  EXPECT_EQ(feed(""), "+OK\r\n+PONG\r\n");
  EXPECT_EQ(end_, End::kNeedsInput);
}

TEST_F(RequestRunnerTest, BehindABlockedCommandNothingRuns) {
  EXPECT_EQ(feed("WAIT 1 100\r\nPING\r\n"), "");
  EXPECT_EQ(end_, End::kBlocked);
  EXPECT_EQ(kept_, "PING\r\n");
}

TEST_F(RequestRunnerTest, BehindTheLastCommandNothingRuns) {
  EXPECT_EQ(feed("QUIT\r\nPING\r\n"), kOk);
  EXPECT_EQ(end_, End::kClosesClient);
  session_.client->kill_requested = true;
  kept_.clear();
  EXPECT_EQ(feed("PING\r\nPING\r\n"), "");
  EXPECT_EQ(end_, End::kClosesClient);
}

TEST_F(RequestRunnerTest, ManyRepliesLeaveFirst) {
  const std::string value(150'000, 'x');
  run({"SET", "a", value});
  EXPECT_EQ(feed("GET a\r\nGET a\r\nGET a\r\n").size(), 2 * bulk(value).size());
  EXPECT_EQ(end_, End::kManyReplies);
  EXPECT_EQ(kept_, "GET a\r\n");
}

TEST_F(RequestRunnerTest, MalformedRequestEndsTheClient) {
  EXPECT_THAT(feed("PING\r\n*1\r\n:1\r\nPING\r\n"),
              StartsWith("+PONG\r\n-ERR Protocol error: expected '$'"));
  EXPECT_EQ(end_, End::kClosesClient);
}

TEST_F(RequestRunnerTest, IntoAReplicasStreamNoErrorComes) {
  session_.client->peer = Peer::kReplica;
  EXPECT_EQ(feed("*1\r\n:1\r\n"), "");
  EXPECT_EQ(end_, End::kClosesClient);
}

TEST_F(RequestRunnerTest, ALoginDecidesWhatTheNextRequestMayBe) {
  users_.set_default_password("secret");
  session_.authenticated = false;
  RequestRunner runner(services_, statistics_.thread(0), session_);
  const std::string big = "$20000\r\n" + std::string(20'000, 'x') + "\r\n";
  const std::string requests =
      "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n" + big;
  EXPECT_EQ(runner.run(requests, batch_, gate_).consumed_bytes, requests.size());
  EXPECT_EQ(gate_.fresh(), "+OK\r\n+OK\r\n");
  session_.authenticated = false;
  RequestRunner unknown(services_, statistics_.thread(0), session_);
  const size_t begin = gate_.fresh().size();
  EXPECT_EQ(unknown.run("*3\r\n$3\r\nSET\r\n$1\r\na\r\n" + big, batch_, gate_).end,
            End::kClosesClient);
  EXPECT_THAT(std::string(gate_.fresh().substr(begin)),
              HasSubstr(protocol::request_fault::kUnauthenticatedSize));
}

TEST_F(RequestRunnerTest, AnUnknownClientGetsFewReplies) {
  users_.set_default_password("secret");
  session_.authenticated = false;
  RequestRunner runner(services_, statistics_.thread(0), session_);
  const auto end_of = [&](int count) {
    std::string requests;
    for (int i = 0; i < count; ++i) requests += "GET a\r\n";
    const End end = runner.run(requests, batch_, gate_).end;
    gate_.drop_fresh();
    return end;
  };
  EXPECT_EQ(end_of(80), End::kNeedsInput);
  EXPECT_EQ(end_of(80), End::kClosesClient) << "it has not taken the first ones";
  runner.record_all_sent();
  EXPECT_EQ(end_of(80), End::kNeedsInput);
  EXPECT_EQ(statistics_.total(&ThreadStatistics::output_buffer_disconnections), 1U);
}

TEST_F(RequestRunnerTest, LimitsReachClientsThatAreThere) {
  const std::string request = "*2\r\n$3\r\nGET\r\n$2000000\r\n";
  EXPECT_EQ(feed(request), "");
  EXPECT_EQ(end_, End::kNeedsInput);
  set_option(config_, OptionId::kProtoMaxBulkLen, "1048576");
  EXPECT_EQ(feed(std::string(2'000'000, 'x') + "\r\n" + request),
            kNull + error(protocol::protocol_error(protocol::request_fault::kInvalidSize)))
      << "from the next request on";
}

}  // namespace
}  // namespace server::net

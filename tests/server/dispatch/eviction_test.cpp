// SPDX-License-Identifier: MIT
#include "server/dispatch/eviction.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/bloom/arrays/array_memory.h"
#include "core/memory/thread_heap.h"
#include "server/dispatch/admission.h"
#include "server/session/pubsub/tracking.h"
#include "tests/server/dispatch/eviction_fixture.h"
#include "tests/support/error_matcher.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
const std::string kOom = encoded_error(kOutOfMemory);

using EvictionTest = EvictionFixture;

TEST_F(EvictionTest, WithoutAPolicyCommandsAreRefused) {
  fill(100);
  limit_to_used(-1000);
  EXPECT_EQ(run({"SET", "a", "1"}), kOom);
  EXPECT_EQ(evicted(), 0U);
  EXPECT_FALSE(memory_.fits(kMiB));
}

TEST_F(EvictionTest, EveryPolicyKeepsTheLimit) {
  for (const std::string policy : {"allkeys-lru", "allkeys-lfu", "allkeys-random"}) {
    run({"FLUSHALL"});
    memory_.set_limit(0);
    fill(2000);
    set_policy(policy);
    limit_to_used(int64_t{100} << 10);
    const uint64_t before = evicted();
    EXPECT_EQ(set_many(2000), kOk) << policy;
    EXPECT_GT(evicted() - before, 1500U) << policy;
    EXPECT_LT(memory_.refresh(), memory_.limit_bytes() + (uint64_t{200} << 10)) << policy;
    EXPECT_EQ(keyspace_.db_size(0), 4000 - (evicted() - before)) << policy;
  }
}

TEST_F(EvictionTest, VolatilePoliciesTakeOnlyKeysThatExpire) {
  for (const std::string policy :
       {"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"}) {
    run({"FLUSHALL"});
    memory_.set_limit(0);
    fill(300);
    for (int i = 0; i < 100; ++i) run({"EXPIRE", "k" + std::to_string(i), "1000"});
    set_policy(policy);
    limit_to_used(-50'000);
    EXPECT_EQ(set_many(1), kOk) << policy;
    EXPECT_GT(keyspace_.expires_count(0), 0U) << policy;
    EXPECT_LT(keyspace_.expires_count(0), 70U) << policy;
    EXPECT_EQ(set_many(200), kOom) << policy;
    EXPECT_EQ(keyspace_.expires_count(0), 0U) << policy;
    EXPECT_EQ(keyspace_.db_size(0) >= 200, true) << policy;
    for (int i = 100; i < 300; ++i) EXPECT_NE(entry_of("k" + std::to_string(i)), nullptr);
  }
}

TEST_F(EvictionTest, KeysThatAreUsedStay) {
  fill(1000);
  set_policy("allkeys-lru");
  advance_ms(60'000);
  for (int i = 0; i < 100; ++i) run({"GET", "k" + std::to_string(i)});
  limit_to_used(-500'000);
  EXPECT_EQ(set_many(1), kOk);
  EXPECT_GT(evicted(), 300U);
  int stayed = 0;
  for (int i = 0; i < 100; ++i) stayed += entry_of("k" + std::to_string(i)) != nullptr ? 1 : 0;
  EXPECT_GE(stayed, 97);
}

TEST_F(EvictionTest, DeletionIsJournalledAndSeenByWatchers) {
  fill(1);
  run_as_other({"WATCH", "k0"});
  set_policy("allkeys-random");
  limit_to_used(-1);
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_EQ(entry_of("k0"), nullptr);
  EXPECT_NE(journalled().find("*2\r\n$3\r\nDEL\r\n$2\r\nk0\r\n*3\r\n$3\r\nSET\r\n$1\r\na"),
            std::string::npos);
  run_as_other({"MULTI"});
  EXPECT_EQ(run_as_other({"EXEC"}), "*-1\r\n");
}

TEST_F(EvictionTest, EveryWriteNearTheLimitIsJudgedExactly) {
  set_policy("allkeys-lru");
  fill(100);
  limit_to_used(100'000);
  uint64_t most = 0;
  for (int i = 0; i < support::rounds(6000, 1500); ++i) {
    ASSERT_EQ(run({"SETEX", "n" + std::to_string(i), "1000", std::string(5000, 'v')}), kOk) << i;
    most = std::max(most, memory_.refresh());
    journalled();
  }
  // The used memory may exceed the limit by the memory of one value, its key and its bytes in the
  // journal.
  EXPECT_LT(most, memory_.limit_bytes() + 16'000);
}

TEST_F(EvictionTest, RoomForABigArrivingValueIsMadeBefore) {
  set_policy("allkeys-lru");
  fill(4000);
  limit_to_used(1000);
  client_->session->client->query_buffer_bytes = kMiB;
  EXPECT_EQ(run({"SET", "a", std::string(kMiB, 'v')}), kOk);
  journalled();
  EXPECT_LT(memory_.refresh(), memory_.limit_bytes() + 50'000);
  EXPECT_GT(evicted(), 900U);
  // After FLUSHALL no key is left to evict. A new value is still accepted while the used memory is
  // below the limit.
  run({"FLUSHALL"});
  limit_to_used(50'000);
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
}

TEST_F(EvictionTest, ReadsEvictFirstAndAreNotRefused) {
  fill(100);
  set_policy("allkeys-lru");
  limit_to_used(-50'000);
  run({"GET", "none"});
  journalled();
  EXPECT_GT(evicted(), 30U);
  // GET writes its reply after the eviction, so the memory may exceed the limit by the size of the
  // reply buffer.
  EXPECT_LT(memory_.refresh(), memory_.limit_bytes() + 16'000);
  set_policy("noeviction");
  memory_.set_limit(memory_.refresh() - 1000);
  EXPECT_EQ(run({"GET", "none"}), kNull);
  EXPECT_EQ(run({"SET", "a", "1"}), kOom);
}

// If the append log fails, an error replaces the reply of a write, but not the invalidations.
TEST_F(EvictionTest, InvalidationsAreNoPartOfTheReply) {
  fill(1);
  run({"HELLO", "3"});
  run({"CLIENT", "TRACKING", "ON"});
  run({"GET", "k0"});
  EXPECT_EQ(client_->last_result.pushed_bytes, 0U);
  on_evicted_ = [&] { tracking_.invalidate({"k0", keyspace_.ref("k0").hash}, {0, 0}); };
  set_policy("allkeys-random");
  limit_to_used(-1);
  const std::string replies = run({"SET", "a", "1"});
  EXPECT_TRUE(replies.starts_with(">2\r\n$10\r\ninvalidate\r\n")) << replies;
  EXPECT_EQ(replies.substr(client_->last_result.pushed_bytes), kOk);
}

TEST_F(EvictionTest, InvalidationsEvictNoFurtherKeys) {
  fill(1000);
  set_policy("allkeys-lru");
  std::vector<std::string> published;
  on_evicted_ = [&] { published.emplace_back(2000, 'p'); };
  limit_to_used(-50'000);
  run({"GET", "none"});
  EXPECT_GT(evicted(), 30U);
  EXPECT_LT(evicted(), 60U);
}

TEST_F(EvictionTest, ExemptMemoryEvictsNothing) {
  fill(100);
  limit_to_used(10'000);
  const std::string stream(kMiB, 's');
  EXPECT_EQ(run({"SET", "a", "1"}), kOom);
  memory_.set_exempt([] { return 2 * kMiB; });
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  set_policy("allkeys-lru");
  EXPECT_EQ(run({"SET", "b", "1"}), kOk);
  EXPECT_EQ(evicted(), 0U);
}

TEST_F(EvictionTest, ArraysKeptForAChildEvictNothing) {
  fill(1000);
  run({"BF.RESERVE", "f", "0.001", "10000000"});  // The filter's array has 19 MB.
  set_policy("allkeys-lru");
  core::bloom::ArrayMemory::ChildGuard child;
  child.finish_fork();
  limit_to_used(1000);
  run({"DEL", "f"});
  while (reclaimer_.pending() != 0) std::this_thread::yield();
  EXPECT_GT(memory_.parts().kept_array_bytes, 18 * kMiB);
  EXPECT_GT(memory_.refresh() + 100'000, memory_.limit_bytes());
  fill(100, "more");
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_EQ(evicted(), 0U);
  // With noeviction, arrays that are kept for a child count towards the limit.
  set_policy("noeviction");
  EXPECT_EQ(run({"SET", "a", "1"}), kOom);
}

TEST_F(EvictionTest, AReplicaIgnoresTheLimitUnlessItShallNot) {
  fill(100);
  set_policy("allkeys-lru");
  limit_to_used(-50'000);
  state_.is_replica = true;
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_TRUE(memory_.fits(kMiB));
  EXPECT_FALSE(eviction_.go_on());
  EXPECT_EQ(evicted(), 0U);
  run({"CONFIG", "SET", "replica-ignore-maxmemory", "no"});
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  EXPECT_GT(evicted(), 0U);
}

TEST_F(EvictionTest, PausesAndLoadingPreventEviction) {
  fill(100);
  set_policy("allkeys-lru");
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  limit_to_used(-50'000);
  EXPECT_TRUE(eviction_.make_room(0));
  EXPECT_FALSE(eviction_.go_on());
  EXPECT_EQ(evicted(), 0U);
  state_.availability.begin(Availability::kLoading);
  run({"CLIENT", "UNPAUSE"});
  EXPECT_FALSE(eviction_.go_on());
  EXPECT_EQ(evicted(), 0U);
  state_.availability.end(Availability::kLoading);
  eviction_.go_on();
  EXPECT_GT(evicted(), 0U);
}

TEST_F(EvictionTest, ALoweredLimitIsReachedWithoutACommand) {
  fill(500);
  set_policy("allkeys-lru");
  run({"CONFIG", "SET", "maxmemory-eviction-tenacity", "0"});  // evicts one key at a time
  limit_to_used(-200'000);
  eviction_.tick();
  EXPECT_EQ(evicted(), 1U);
  while (posted_) std::exchange(posted_, nullptr)();
  EXPECT_LE(memory_.refresh(), memory_.limit_bytes());
  EXPECT_GT(evicted(), 100U);
}

TEST_F(EvictionTest, AFilterGetsItsRoomByEviction) {
  fill(8000);
  set_policy("allkeys-lru");
  limit_to_used(1000);
  // This filter takes about 2.3 MiB.
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.0001", "1000000"}), kOk);
  EXPECT_GT(evicted(), 1500U);
  EXPECT_NE(entry_of("f"), nullptr);
  journalled();  // unread journal bytes take memory too
  EXPECT_LE(memory_.refresh(), memory_.limit_bytes() + (kMiB >> 4));
}

// Evictions for a big allocation reach their time limit, because each reading of the clock takes
// `step_us`.
class SlowEvictionTest : public EvictionTest {
 protected:
  void reserve_with_clock_step(int64_t step_us) {
    fill(8000);
    set_policy("allkeys-lru");
    limit_to_used(1000);
    clock_.step_us = step_us;
    EXPECT_EQ(run({"BF.RESERVE", "f", "0.0001", "1000000"}), kOk);
    clock_.step_us = 0;
    journalled();
  }
};

TEST_F(SlowEvictionTest, BigAllocationExceedsTheLimitByHalfAMebibyte) {
  reserve_with_clock_step(20);
  EXPECT_GT(evicted(), 500U);
  EXPECT_LE(memory_.refresh(), memory_.limit_bytes() + kMiB * 9 / 16);
}

TEST_F(SlowEvictionTest, EvictionForABigAllocationEnds) {
  reserve_with_clock_step(1000);
  EXPECT_GT(evicted(), 20U);
  EXPECT_LT(evicted(), 100U);
}

TEST_F(EvictionTest, AFilterThatCouldNeverFitEvictsNothing) {
  fill(1000);
  set_policy("allkeys-lru");
  limit_to_used(1000);
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.0001", "100000000"}).front(), '-');
  EXPECT_EQ(evicted(), 0U);
}

TEST_F(EvictionTest, AGrowingFilterMakesRoomButNotOfItself) {
  run({"BF.RESERVE", "f", "0.01", "2000"});
  fill(3000);
  for (int i = 0; i < 3000; ++i) run({"EXPIRE", "k" + std::to_string(i), "1000"});
  set_policy("volatile-lru");
  journalled();
  limit_to_used(2000);
  for (int i = 0; i < support::rounds(15'000, 6'000); ++i) {
    const std::string reply = run({"BF.ADD", "f", std::to_string(i)});
    ASSERT_EQ(reply.front(), ':') << reply;
    if (i % 100 == 0) journalled();
  }
  EXPECT_GT(evicted(), 10U);
  EXPECT_NE(entry_of("f"), nullptr);
  EXPECT_EQ(run({"BF.EXISTS", "f", "1"}), integer(1));
}

TEST_F(EvictionTest, SmallFiltersGrowWhileEvictionIsBehind) {
  run({"BF.RESERVE", "f", "0.01", "1", "EXPANSION", "1"});
  fill(8000);
  set_policy("allkeys-lru");
  run({"CONFIG", "SET", "maxmemory-eviction-tenacity", "0"});
  memory_.set_limit(memory_.refresh() * 3 / 4);
  for (int i = 0; i < 20; ++i) {
    const std::string reply = run({"BF.ADD", "f", std::to_string(i)});
    ASSERT_EQ(reply.front(), ':') << reply;
  }
  EXPECT_GT(memory_.refresh(), memory_.limit_bytes() * 9 / 8);
  EXPECT_EQ(run({"BF.RESERVE", "g", "0.01", "1000000"}).front(), '-');
  run({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  EXPECT_EQ(run({"BF.ADD", "f", "more"}), kOom);
}

TEST_F(EvictionTest, TransactionDoesNotEvictItsOwnKeys) {
  fill(3000);
  set_policy("allkeys-lru");
  limit_to_used(1000);
  run({"MULTI"});
  run({"KEYS", "none"});  // KEYS makes EXEC lock all stripes
  run({"BF.RESERVE", "f", "0.0001", "1000000"});
  const std::string reply = run({"EXEC"});
  EXPECT_EQ(reply.substr(0, 9), "*2\r\n*0\r\n-") << reply;
  EXPECT_EQ(entry_of("f"), nullptr);
}

TEST_F(EvictionTest, FrequencyIsCountedUnderALfuPolicyOnly) {
  put("a", "1");
  run({"GET", "a"});
  set_policy("allkeys-lfu");
  run({"CONFIG", "SET", "lfu-log-factor", "0"});
  EXPECT_EQ(run({"OBJECT", "FREQ", "a"}), integer(5));
  run({"GET", "a"});
  run({"SET", "a", "2"});
  EXPECT_EQ(run({"OBJECT", "FREQ", "a"}), integer(7));
  run({"TOUCH", "a"});
  EXPECT_EQ(run({"OBJECT", "FREQ", "a"}), integer(8));
  EXPECT_EQ(run({"OBJECT", "FREQ", "a"}), integer(8));
  run({"CLIENT", "NO-TOUCH", "ON"});
  run({"GET", "a"});
  EXPECT_EQ(run({"OBJECT", "FREQ", "a"}), integer(8));
  advance_ms(120'000);
  EXPECT_EQ(run({"OBJECT", "FREQ", "a"}), integer(6));
  EXPECT_THAT(run({"OBJECT", "IDLETIME", "a"}), is_error("ERR", "idle time not tracked"));
  set_policy("allkeys-lru");
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(120));
}

TEST_F(EvictionTest, InfoHasTheFigures) {
  fill(100);
  set_policy("volatile-ttl");
  limit_to_used(-1000);
  EXPECT_EQ(run({"SET", "a", "1"}), kOom);
  advance_ms(300);
  std::string info = run({"INFO", "stats"});
  EXPECT_NE(info.find("\r\nevicted_keys:0\r\n"), std::string::npos);
  EXPECT_NE(info.find("\r\ntotal_eviction_exceeded_time:300\r\n"), std::string::npos);
  EXPECT_NE(info.find("\r\ncurrent_eviction_exceeded_time:300\r\n"), std::string::npos);
  for (int i = 0; i < 50; ++i) run({"EXPIRE", "k" + std::to_string(i), "100"});
  EXPECT_EQ(run({"SET", "a", "1"}), kOk);
  info = run({"INFO", "stats"});
  EXPECT_NE(info.find("\r\nevicted_keys:" + std::to_string(evicted()) + "\r\n"), std::string::npos);
  EXPECT_GT(evicted(), 0U);
  EXPECT_NE(info.find("\r\ncurrent_eviction_exceeded_time:0\r\n"), std::string::npos);
  run({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(evicted(), 0U);
}

TEST_F(EvictionTest, AnExcessThatIsOverIsNoLongerTimed) {
  fill(100);
  limit_to_used(-1000);
  EXPECT_EQ(run({"SET", "a", "1"}), kOom);
  advance_ms(300);
  memory_.set_limit(0);
  eviction_.tick();
  advance_ms(300);
  const std::string info = run({"INFO", "stats"});
  EXPECT_NE(info.find("\r\ntotal_eviction_exceeded_time:300\r\n"), std::string::npos);
  EXPECT_NE(info.find("\r\ncurrent_eviction_exceeded_time:0\r\n"), std::string::npos);
}

TEST_F(EvictionTest, ARestoredFilterNeedsRoomLikeAnyOther) {
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.001", "2000000"}), kOk);
  const std::string dumped = run({"DUMP", "f"});
  const std::string payload = dumped.substr(dumped.find("\r\n") + 2);
  run({"DEL", "f"});
  fill(8000);
  run({"EXPIRE", "k0", "100"});
  set_policy("volatile-lru");
  limit_to_used(100'000);
  const auto restore = [&] {
    return run({"RESTORE", "f", "0", payload.substr(0, payload.size() - 2)});
  };
  run({"CONFIG", "SET", "bf.bloom-memory-usage-limit", "5mb"});
  EXPECT_EQ(restore().substr(0, 4), "-OOM") << "the only key that may go is small";
  EXPECT_EQ(entry_of("f"), nullptr);
  memory_.set_limit(0);
  EXPECT_EQ(restore(), kOk);
}

TEST_F(EvictionTest, ThreadsMayEvictAtOnce) {
  fill(5000);
  set_policy("allkeys-lru");
  limit_to_used(-3'000'000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      core::count_thread_heap();
      EXPECT_TRUE(eviction_.make_room(0));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memory_.refresh(), memory_.limit_bytes());
  EXPECT_LT(evicted(), 4000U);
  EXPECT_EQ(keyspace_.db_size(0), 5000 - evicted());
}

TEST_F(EvictionTest, AFilterIsYoungerThanTheStringsThatGoForIt) {
  fill(8000);
  set_policy("allkeys-lru");
  advance_ms(2100);
  limit_to_used(100'000);
  EXPECT_EQ(run({"BF.RESERVE", "f", "0.001", "2000000"}), kOk);
  while (posted_) std::exchange(posted_, nullptr)();
  journalled();
  // Each eviction journals a DEL and allocates other memory, so the used memory may slightly exceed
  // the limit.
  EXPECT_LE(memory_.refresh(), memory_.limit_bytes() + 40'000);
  EXPECT_EQ(run({"EXISTS", "f"}), integer(1));
  EXPECT_EQ(run({"BF.RESERVE", "g", "0.001", "200000000"}).front(), '-') << "it never fits";
  // If the limit is lowered, more strings are evicted.
  memory_.set_limit(memory_.refresh() - 1'000'000);
  eviction_.tick();
  while (posted_) std::exchange(posted_, nullptr)();
  journalled();
  EXPECT_LE(memory_.refresh(), memory_.limit_bytes() + 20'000);
  EXPECT_GT(keyspace_.db_size(0), 100U);
}

TEST_F(EvictionTest, TheJournalLosesTheSameKeys) {
  set_policy("allkeys-random");
  limit_to_used(2'000'000);
  for (int i = 0; i < 4000; ++i) {
    ASSERT_EQ(run({"SET", "k" + std::to_string(i), std::string(1100, 'v')}), kOk);
    std::string stream;
    journal_.take(stream);
    replay(stream);
  }
  ASSERT_LT(keyspace_.db_size(0), 3000U);
  for (int i = 0; i < 4000; ++i) {
    const std::string name = "k" + std::to_string(i);
    ASSERT_EQ(replayed_.count(name) == 1, entry_of(name) != nullptr) << name;
  }
}

}  // namespace
}  // namespace server

// SPDX-License-Identifier: MIT
//
// Compares filters that have a window with a naive model that records when each item was added.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/bloom/layouts.h"
#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"
#include "tests/support/budget.h"
#include "tests/support/filters.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

using WindowedPtr = std::unique_ptr<ScalableFilter>;

const UnlimitedMemory kAnyMemory;
constexpr int64_t kBegin = 1'700'000'000'000;
// An error rate so low that no false positive occurs.
constexpr double kTinyRate = 1e-12;

struct WindowShape {
  uint64_t length = 10'000;
  WindowUnit unit = WindowUnit::kMilliseconds;
  uint8_t generations = 4;
  bool refreshes = false;
  uint64_t capacity = 400;
  double error_rate = kTinyRate;
};

FilterParameters window_parameters(const WindowShape& shape) {
  FilterParameters parameters;
  parameters.error_rate = shape.error_rate;
  parameters.capacity = shape.capacity;
  parameters.window = {.length = shape.length,
                       .unit = shape.unit,
                       .generations = shape.generations,
                       .refreshes = shape.refreshes};
  return parameters;
}

WindowedPtr make_window(const WindowShape& shape) {
  return *ScalableFilter::create(window_parameters(shape), kAnyMemory, kBegin);
}

// Performs the due rotation, as a leader does before an add.
void follow(ScalableFilter& filter, int64_t now_ms) {
  if (const auto rotation = filter.window()->rotation_due(now_ms)) {
    ASSERT_TRUE(filter.rotate(*rotation, kAnyMemory));
  }
}

bool is_idle(const ScalableFilter& filter) {
  return filter.window()->generations().size() == 1 && filter.item_count() == 0;
}

void expect_as_twin(const ScalableFilter& a, const ScalableFilter& b) {
  ASSERT_EQ(a.layer_count(), b.layer_count());
  ASSERT_EQ(a.window()->newest(), b.window()->newest());
  ASSERT_TRUE(std::ranges::equal(a.window()->generations(), b.window()->generations()));
  for (size_t i = 0; i < a.layer_count(); ++i) {
    ASSERT_EQ(a.layer_info(i).item_count, b.layer_info(i).item_count) << i;
    ASSERT_EQ(a.layer_info(i).capacity, b.layer_info(i).capacity) << i;
    ASSERT_TRUE(std::ranges::equal(a.layer_bits(i).bytes(), b.layer_bits(i).bytes())) << i;
  }
}

// TimeModel: runs random adds, batches, lookups and waits on a filter, with a clock that jumps. A
// second filter receives only the effects of the adds and rotations, as on a replica.
class TimeModel {
 public:
  TimeModel(const WindowShape& shape, uint64_t seed)
      : shape_(shape), random_(seed), filter_(make_window(shape)), replica_(make_window(shape)) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      switch (random_() % 16) {
        case 0:
          wait(static_cast<int64_t>(random_() % (2 * shape_.length)));
          break;
        case 1:
          if (random_() % 8 == 0) jump_back();
          break;
        case 2:
          rotate_by_leader();
          break;
        case 3:
        case 4:
          add_many(random_() % 300);
          break;
        default:
          add_many(1);
          wait(static_cast<int64_t>(random_() % (shape_.length / 20)));
      }
      if (i % 16 == 0) check();
    }
    EXPECT_GT(seen_gone_, 100);
  }

 private:
  struct Known {
    int64_t elapsed_ms = 0;  // time of the last add or refresh
    int jumps = 0;
  };

  std::string item_of(uint64_t number) { return fmt::format("item:{}", number); }

  void wait(int64_t ms) {
    now_ms_ += ms;
    elapsed_ms_ += ms;
  }
  // Sets the clock back. The server checks for due rotations several times a second. So this
  // function performs a due rotation just before the clock jumps, and another one just after it.
  void jump_back() {
    rotate_by_leader();
    now_ms_ -= static_cast<int64_t>(random_() % (4 * shape_.length));
    ++jumps_;
    rotate_by_leader();
  }
  // Carries out a due rotation on both filters without a write, as the server's periodic task does.
  void rotate_by_leader() {
    const auto rotation = filter_->window()->rotation_due(now_ms_);
    if (!rotation) return;
    ASSERT_TRUE(filter_->rotate(*rotation, kAnyMemory));
    ASSERT_TRUE(replica_->rotate(*rotation, kAnyMemory));
  }
  void add_many(size_t count) {
    rotate_by_leader();
    std::vector<std::string> items;
    for (size_t i = 0; i < count; ++i) items.push_back(item_of(random_() % 2000));
    const std::vector<std::string_view> views(items.begin(), items.end());
    std::vector<AddOutcome> outcomes(count);
    ASSERT_EQ(filter_->add_many(filters::hashes_of(*filter_, views), outcomes, kAnyMemory), count);
    for (size_t i = 0; i < count; ++i) {
      if (!has_effect(outcomes[i])) continue;
      if (outcomes[i] == AddOutcome::kRefreshed) {
        ASSERT_TRUE(shape_.refreshes);
      }
      replica_->add_new(replica_->hasher()(items[i]), kAnyMemory);
      known_[items[i]] = {elapsed_ms_, jumps_};
    }
  }

  void check() {
    const auto length = static_cast<int64_t>(shape_.length);
    const int64_t step = (length + shape_.generations - 1) / shape_.generations;
    for (auto it = known_.begin(); it != known_.end();) {
      const auto& [item, known] = *it;
      const int64_t age_ms = elapsed_ms_ - known.elapsed_ms;
      const bool found = filter_->may_contain(item, now_ms_);
      if (age_ms <= length) {
        ASSERT_TRUE(found) << item << " of age " << age_ms;
      }
      // A generation accepts items for one `step`. Each time the clock jumps back, the newest
      // generation may accept items for a further step.
      const int64_t jumps = jumps_ - known.jumps;
      if (age_ms <= length + step * (1 + jumps)) {
        ++it;
        continue;
      }
      ASSERT_FALSE(found) << item << " of age " << age_ms << " after jumps: " << jumps;
      ++seen_gone_;
      it = known_.erase(it);
    }
    const size_t generations = shape_.generations;
    ASSERT_LE(filter_->window()->generations().size(), generations + 1);
    expect_as_twin(*filter_, *replica_);
    ASSERT_EQ(filter_->take_dropped() == nullptr, replica_->take_dropped() == nullptr);
  }

  const WindowShape shape_;
  std::mt19937_64 random_;
  WindowedPtr filter_;
  WindowedPtr replica_;
  int64_t now_ms_ = kBegin;
  int64_t elapsed_ms_ = 0;
  int jumps_ = 0;
  int seen_gone_ = 0;
  std::map<std::string, Known> known_;
};

TEST(WindowedFilter, AgreesWithTheNaiveModel) {
  const WindowShape shapes[] = {
      {},
      {.refreshes = true},
      {.length = 7000, .generations = 3},
      {.length = 1000, .generations = 64, .capacity = 64},
      {.length = 5000, .generations = 1, .capacity = 50},
      {.length = 10'000, .generations = 4, .refreshes = true, .capacity = 8},
  };
  uint64_t seed = 20;
  for (const WindowShape& shape : shapes) {
    SCOPED_TRACE(fmt::format("seed {}, {} ms, {} generations, capacity {}", ++seed, shape.length,
                             shape.generations, shape.capacity));
    TimeModel(shape, seed).run(2000);
    if (HasFatalFailure()) return;
  }
}

TEST(WindowedFilter, ItemWindowForgetsByCount) {
  std::mt19937_64 random(3);
  for (const auto& [length, generations] : {std::pair{1000, 4}, {1000, 7}, {10, 10}, {64, 1}}) {
    SCOPED_TRACE(fmt::format("{} items, {} generations", length, generations));
    const WindowShape shape{.length = static_cast<uint64_t>(length),
                            .unit = WindowUnit::kItems,
                            .generations = static_cast<uint8_t>(generations),
                            .capacity = static_cast<uint64_t>(length)};
    const auto filter = make_window(shape);
    const auto replica = make_window(shape);
    const int step = (length + generations - 1) / generations;
    std::vector<std::string> added;
    while (added.size() < 5000) {
      std::vector<std::string> items(random() % 400 + 1);
      for (std::string& item : items) item = fmt::format("item:{}", added.size() + random());
      const std::vector<std::string_view> views(items.begin(), items.end());
      std::vector<AddOutcome> outcomes(items.size());
      ASSERT_EQ(filter->add_many(filters::hashes_of(*filter, views), outcomes, kAnyMemory),
                items.size());
      for (const std::string& item : items) {
        replica->add_new(replica->hasher()(item), kAnyMemory);
        added.push_back(item);
      }
      for (size_t i = random() % 8; i < added.size(); i += random() % 16 + 1) {
        const auto later = static_cast<int>(added.size() - 1 - i);
        const bool found = filter->may_contain(added[i]);
        if (later < length) {
          ASSERT_TRUE(found) << later;
        }
        if (later >= length + step) {
          ASSERT_FALSE(found) << later;
        }
      }
      expect_as_twin(*filter, *replica);
    }
    // No generation receives more items than its capacity, so each has one layer.
    EXPECT_LE(filter->layer_count(), static_cast<size_t>(generations) + 1);
  }
}

// A journal lists only the items whose add had an effect. A replay of these items alone must rotate
// the window as the original adds did.
TEST(WindowedFilter, ReplayOfEffectsRotatesAlike) {
  std::mt19937_64 random(4);
  for (int round = 0; round < support::rounds(60, 15); ++round) {
    const WindowShape shape{.length = random() % 100 + 8,
                            .unit = WindowUnit::kItems,
                            .generations = static_cast<uint8_t>(random() % 8 + 1),
                            .refreshes = random() % 2 == 0,
                            .capacity = random() % 100 + 1};
    SCOPED_TRACE(fmt::format("round {}: {} items, {} generations, refreshes {}, capacity {}", round,
                             shape.length, shape.generations, shape.refreshes, shape.capacity));
    const auto filter = make_window(shape);
    const auto replica = make_window(shape);
    for (int command = 0; command < 200; ++command) {
      std::vector<std::string> items(random() % (2 * shape.length) + 1);
      for (std::string& item : items) item = fmt::format("{}", random() % (3 * shape.length));
      const std::vector<std::string_view> views(items.begin(), items.end());
      std::vector<AddOutcome> outcomes(items.size());
      ASSERT_EQ(filter->add_many(filters::hashes_of(*filter, views), outcomes, kAnyMemory),
                items.size());
      for (size_t i = 0; i < items.size(); ++i) {
        if (!has_effect(outcomes[i])) continue;
        ASSERT_TRUE(has_effect(replica->add_new(replica->hasher()(items[i]), kAnyMemory)));
      }
      expect_as_twin(*filter, *replica);
    }
    EXPECT_GT(filter->window()->newest().ordinal, 0);
    if (HasFailure()) return;
  }
}

TEST(WindowedFilter, BatchesEqualSingleAdds) {
  const WindowShape shape{.length = 100, .unit = WindowUnit::kItems, .capacity = 30};
  const auto batched = make_window(shape);
  const auto single = make_window(shape);
  std::vector<std::string> items;
  for (int i = 0; i < 2000; ++i) items.push_back(fmt::format("{}", i * 7919 % 600));
  const std::vector<std::string_view> views(items.begin(), items.end());
  std::vector<AddOutcome> outcomes(items.size());
  ASSERT_EQ(batched->add_many(filters::hashes_of(*batched, views), outcomes, kAnyMemory),
            items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_EQ(single->add(items[i], kAnyMemory), outcomes[i]) << i;
  }
  expect_as_twin(*batched, *single);
  EXPECT_GT(batched->layer_count(), 5);
}

TEST(WindowedFilter, RepeatedAddRenewsOnlyWithRefresh) {
  for (const bool refreshes : {false, true}) {
    const auto filter = make_window({.refreshes = refreshes});
    ASSERT_EQ(filter->add("click", kAnyMemory), AddOutcome::kAdded);
    EXPECT_EQ(filter->add("click", kAnyMemory), AddOutcome::kPresent);
    follow(*filter, kBegin + 9000);
    EXPECT_EQ(filter->add("click", kAnyMemory),
              refreshes ? AddOutcome::kRefreshed : AddOutcome::kPresent);
    EXPECT_EQ(filter->add("click", kAnyMemory), AddOutcome::kPresent);
    EXPECT_EQ(filter->item_count(), refreshes ? 2 : 1);
    EXPECT_EQ(filter->may_contain("click", kBegin + 12'500), refreshes);
    EXPECT_EQ(filter->may_contain("click", kBegin + 19'999), refreshes);
    EXPECT_FALSE(filter->may_contain("click", kBegin + 20'000));
    follow(*filter, kBegin + 12'500);
    EXPECT_EQ(filter->add("click", kAnyMemory),
              refreshes ? AddOutcome::kRefreshed : AddOutcome::kAdded);
  }
}

TEST(WindowedFilter, LookupIgnoresExpiredItemsBeforeRotation) {
  const auto filter = make_window({});
  ASSERT_EQ(filter->add("a", kAnyMemory), AddOutcome::kAdded);
  const auto hashes = filters::hashes_of(*filter, std::array<std::string_view, 2>{"a", "b"});
  std::array<bool, 2> found{};
  filter->may_contain_many(hashes, found, kBegin + 12'499);
  EXPECT_EQ(found, (std::array{true, false}));
  filter->may_contain_many(hashes, found, kBegin + 12'500);
  EXPECT_EQ(found, (std::array{false, false}));
  // A lookup that is called without a time finds the item until the window has rotated.
  filter->may_contain_many(hashes, found);
  EXPECT_EQ(found, (std::array{true, false}));
  follow(*filter, kBegin + 12'500);
  filter->may_contain_many(hashes, found);
  EXPECT_EQ(found, (std::array{false, false}));
}

TEST(WindowedFilter, EmptyWindowRotatesWithoutANewLayer) {
  const auto filter = make_window({});
  EXPECT_TRUE(is_idle(*filter));
  follow(*filter, kBegin + 1'000'000);
  EXPECT_EQ(filter->layer_count(), 1);
  EXPECT_EQ(filter->take_dropped(), nullptr);
  filter->add("a", kAnyMemory);
  EXPECT_FALSE(is_idle(*filter));
  follow(*filter, kBegin + 1'003'000);
  EXPECT_EQ(filter->layer_count(), 2);
  follow(*filter, kBegin + 1'020'000);
  EXPECT_TRUE(is_idle(*filter));
  EXPECT_EQ(filter->item_count(), 0);
}

TEST(WindowedFilter, MemoryIsConstantUpToTheCapacity) {
  const WindowShape shape{
      .length = 60'000, .generations = 4, .capacity = 40'000, .error_rate = 0.01};
  const auto filter = make_window(shape);
  uint64_t size_bytes = 0;
  int number = 0;
  for (int step = 0; step < 40; ++step) {
    follow(*filter, kBegin + step * 15'000);
    for (int i = 0; i < 10'000; ++i) filter->add(fmt::format("{}", ++number), kAnyMemory);
    if (step == 4) size_bytes = filter->size_bytes();
    if (step >= 4) {
      ASSERT_EQ(filter->size_bytes(), size_bytes) << step;
    }
  }
  EXPECT_EQ(filter->layer_count(), 5);
  // A burst makes the newest generation grow; its memory is freed with the generation.
  for (int i = 0; i < 40'000; ++i) filter->add(fmt::format("{}", ++number), kAnyMemory);
  EXPECT_EQ(filter->window()->generations().back().layer_count, 3);
  EXPECT_GT(filter->size_bytes(), size_bytes);
  for (int step = 40; step < 46; ++step) {
    follow(*filter, kBegin + step * 15'000);
    filter->add(fmt::format("{}", ++number), kAnyMemory);
  }
  EXPECT_EQ(filter->size_bytes(), size_bytes);
}

TEST(WindowedFilter, ErrorRateHoldsOverAllGenerations) {
  for (const uint8_t generations : {uint8_t{1}, uint8_t{4}, uint8_t{16}}) {
    const auto filter = make_window(
        {.length = 60'000, .generations = generations, .capacity = 20'000, .error_rate = 0.01});
    int number = 0;
    // All generations are full, and the last generation has two layers.
    for (int step = 0; step <= generations; ++step) {
      follow(*filter, kBegin + step * 60'000 / generations + 1);
      const int count = 20'000 / generations * (step == generations ? 2 : 1);
      for (int i = 0; i < count; ++i) filter->add(fmt::format("item:{}", ++number), kAnyMemory);
    }
    ASSERT_EQ(filter->window()->generations().size(), generations + 1U);
    int wrong = 0;
    constexpr int kProbes = 200'000;
    for (int i = 0; i < kProbes; ++i) wrong += filter->may_contain(fmt::format("absent:{}", i));
    EXPECT_LT(filter->predicted_error_rate(), 0.01) << int{generations};
    EXPECT_LT(wrong, kProbes * 0.0105) << int{generations};
    EXPECT_NEAR(static_cast<double>(wrong) / kProbes, filter->predicted_error_rate(), 0.001);
  }
}

TEST(WindowedFilter, BudgetIsCheckedForAllGenerations) {
  const FilterParameters parameters = window_parameters({.capacity = 400'000, .error_rate = 0.01});
  const uint64_t layer_bytes = ScalableFilter::plan(parameters)->geometry.size_bytes();
  EXPECT_TRUE(ScalableFilter::create(parameters, support::Budget(5 * layer_bytes)));
  EXPECT_FALSE(ScalableFilter::create(parameters, support::Budget(5 * layer_bytes - 1)));
}

TEST(WindowedFilter, FullFixedGenerationWaitsForRotation) {
  FilterParameters parameters = window_parameters({.capacity = 40});
  parameters.expansion = 0;
  const auto filter = *ScalableFilter::create(parameters, kAnyMemory, kBegin);
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(filter->add(fmt::format("{}", i), kAnyMemory), AddOutcome::kAdded);
  EXPECT_EQ(filter->add("more", kAnyMemory), AddOutcome::kFull);
  follow(*filter, kBegin + 2500);
  EXPECT_EQ(filter->add("more", kAnyMemory), AddOutcome::kAdded);
}

TEST(WindowedFilter, CopyRotatesIndependently) {
  const auto filter = make_window({});
  filter->add("a", kAnyMemory);
  follow(*filter, kBegin + 2500);
  filter->add("b", kAnyMemory);
  const auto copy = filter->clone();
  expect_as_twin(*filter, *copy);
  follow(*copy, kBegin + 12'500);
  EXPECT_FALSE(copy->may_contain("a"));
  EXPECT_TRUE(copy->may_contain("b"));
  EXPECT_TRUE(filter->may_contain("a"));
  const auto dropped = copy->take_dropped();
  ASSERT_NE(dropped, nullptr);
  EXPECT_EQ(dropped->item_count(), 1);
  EXPECT_EQ(dropped->window(), nullptr);
  EXPECT_EQ(copy->take_dropped(), nullptr);
}

// A full window needs no more memory: its rotations drop as much as they add.
TEST(WindowedFilter, RotationsStayInTheBudget) {
  const auto filter = make_window({});
  const support::Budget none(0);
  const uint64_t layer_bytes = filter->layer_info(0).geometry.size_bytes();
  const support::Budget one_layer(layer_bytes);
  for (uint64_t ordinal = 1; ordinal <= 10; ++ordinal) {
    filter->add(std::to_string(ordinal), kAnyMemory);
    const WindowRotation rotation{ordinal, kBegin + static_cast<int64_t>(ordinal) * 2500};
    const size_t generations = filter->window()->generations().size();
    const bool is_full = generations == 5;
    ASSERT_EQ(filter->rotate(rotation, none), is_full) << ordinal;
    if (is_full) continue;
    EXPECT_EQ(filter->window()->generations().size(), generations);
    EXPECT_EQ(filter->window()->newest().ordinal, ordinal - 1);
    ASSERT_TRUE(filter->rotate(rotation, one_layer)) << ordinal;
  }
  EXPECT_EQ(filter->layer_count(), 5);
}

TEST(WindowedFilter, AnAddThatCannotRotateChangesNothing) {
  const auto filter = make_window({.length = 40, .unit = WindowUnit::kItems});
  for (uint64_t i = 0; i < 10; ++i) filter->add(std::to_string(i), kAnyMemory);
  const support::Budget none(0);
  EXPECT_EQ(filter->add("10", none), AddOutcome::kCannotGrow);
  EXPECT_EQ(filter->add("9", none), AddOutcome::kPresent);
  EXPECT_EQ(filter->item_count(), 10);
  EXPECT_EQ(filter->layer_count(), 1);
  EXPECT_EQ(filter->add("10", kAnyMemory), AddOutcome::kAdded);
}

TEST(WindowedFilter, InvalidRotationsAreRejected) {
  const auto filter = make_window({});
  filter->add("a", kAnyMemory);
  ASSERT_TRUE(filter->rotate({3, kBegin + 7500}, kAnyMemory));
  EXPECT_FALSE(filter->rotate({2, kBegin + 5000}, kAnyMemory));
  EXPECT_FALSE(filter->rotate({4, -1}, kAnyMemory));
  EXPECT_TRUE(filter->may_contain("a"));
  const auto counted = make_window({.length = 100, .unit = WindowUnit::kItems});
  EXPECT_FALSE(counted->rotate({1, 24}, kAnyMemory));
  EXPECT_FALSE(counted->rotate({2, 50}, kAnyMemory));
}

TEST(WindowedFilter, InvalidWindowsAreRejected) {
  FilterParameters parameters = window_parameters({});
  parameters.window.generations = 65;
  EXPECT_FALSE(ScalableFilter::create(parameters, kAnyMemory));
  parameters = window_parameters({});
  parameters.layout = RedisBloomLayout::kId;
  EXPECT_FALSE(ScalableFilter::create(parameters, kAnyMemory));
}

}  // namespace
}  // namespace core::bloom

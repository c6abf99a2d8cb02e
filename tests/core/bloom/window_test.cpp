// SPDX-License-Identifier: MIT
#include "core/bloom/window.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace core::bloom {
namespace {

using Generation = Window::Generation;
using Generations = std::vector<Generation>;

constexpr int64_t kStart = 1'700'000'000'000;

WindowSettings of_time(uint64_t length_ms, uint8_t generations) {
  return {.length = length_ms, .unit = WindowUnit::kMilliseconds, .generations = generations};
}

WindowSettings of_items(uint64_t length, uint8_t generations) {
  return {.length = length, .unit = WindowUnit::kItems, .generations = generations};
}

Generations generations_of(const Window& window) {
  return {window.generations().begin(), window.generations().end()};
}

void follow(Window& window, int64_t now, bool is_newest_empty = false) {
  if (const auto rotation = window.rotation_due(now)) window.rotate(*rotation, is_newest_empty);
}

TEST(WindowSettings, RangesAreChecked) {
  EXPECT_FALSE(WindowSettings{}.is_set());
  EXPECT_FALSE(WindowSettings{}.is_valid());
  EXPECT_TRUE(of_time(1000, 64).is_valid());
  EXPECT_FALSE(of_time(999, 4).is_valid());
  EXPECT_FALSE(of_time(1000, 0).is_valid());
  EXPECT_FALSE(of_time(1000, 65).is_valid());
  EXPECT_TRUE(of_time(WindowSettings::kSecondsMax * 1000, 1).is_valid());
  EXPECT_FALSE(of_time(WindowSettings::kSecondsMax * 1000 + 1, 1).is_valid());
  EXPECT_TRUE(of_items(4, 4).is_valid());
  EXPECT_FALSE(of_items(3, 4).is_valid());
  EXPECT_FALSE(of_items(WindowSettings::kItemsMax + 1, 4).is_valid());
}

TEST(Window, GenerationsFollowTheGrid) {
  Window window(of_time(10'000, 4), kStart);
  EXPECT_EQ(window.newest(), (WindowRotation{0, kStart}));
  EXPECT_FALSE(window.rotation_due(kStart + 2499));
  EXPECT_EQ(window.rotation_due(kStart + 2500), (WindowRotation{1, kStart + 2500}));
  EXPECT_EQ(window.rotation_due(kStart + 7499), (WindowRotation{2, kStart + 5000}));
  for (int i = 1; i <= 4; ++i) {
    EXPECT_EQ(window.rotate(*window.rotation_due(kStart + i * 2500 + 7), false), 0) << i;
  }
  EXPECT_EQ(generations_of(window), (Generations{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}));
  EXPECT_EQ(window.rotate(*window.rotation_due(kStart + 12'500), false), 1);
  EXPECT_EQ(window.generations().front().ordinal, 1);
}

// 7000/3 ms is not a whole number. Each window still has three generations.
TEST(Window, FractionalStepsKeepTheWindowLength) {
  const Window window(of_time(7000, 3), kStart);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(window.start_of(i + 3) - window.start_of(i), 7000);
    const int64_t step = window.start_of(i + 1) - window.start_of(i);
    EXPECT_GE(step, 2333);
    EXPECT_LE(step, 2334);
  }
}

TEST(Window, PositionBelongsToTheLastBegunGeneration) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const auto generations = static_cast<uint8_t>(random() % 64 + 1);
    const Window window(of_time(random() % 100'000 + 1000, generations), kStart);
    const auto now = kStart + static_cast<int64_t>(random() % 1'000'000);
    const WindowRotation at = window.rotation_due(now).value_or(window.newest());
    ASSERT_LE(at.start, now);
    ASSERT_EQ(at.start, window.start_of(at.ordinal));
    ASSERT_GT(window.start_of(at.ordinal + 1), now);
  }
}

TEST(Window, EmptyNewestGenerationIsReused) {
  Window window(of_time(10'000, 4), kStart);
  follow(window, kStart + 3000, true);
  EXPECT_EQ(generations_of(window), (Generations{{1, 1}}));
  follow(window, kStart + 5000);
  follow(window, kStart + 7500, true);
  EXPECT_EQ(generations_of(window), (Generations{{1, 1}, {3, 1}}));
}

TEST(Window, FarJumpForwardKeepsOnlyTheNewGeneration) {
  Window window(of_time(10'000, 4), kStart);
  follow(window, kStart + 2500);
  window.record_layer();
  const auto rotation = window.rotation_due(kStart + 1'000'000'001);
  ASSERT_TRUE(rotation);
  EXPECT_EQ(window.rotate(*rotation, false), 3);
  EXPECT_EQ(generations_of(window), (Generations{{400'000, 1}}));
  EXPECT_EQ(window.newest().start, kStart + 1'000'000'000);
}

TEST(Window, JumpBackMovesTheGrid) {
  Window window(of_time(10'000, 4), kStart);
  follow(window, kStart + 2500);
  EXPECT_FALSE(window.rotation_due(kStart + 2500));
  const int64_t earlier = kStart - 86'400'000;
  EXPECT_EQ(window.rotation_due(earlier), (WindowRotation{1, earlier}));
  EXPECT_EQ(window.rotate(*window.rotation_due(earlier), false), 0);
  EXPECT_EQ(window.start_of(0), earlier - 2500);
  EXPECT_EQ(window.next_start(), earlier + 2500);
  EXPECT_EQ(window.layers_over_at(earlier + 9999), 0);
  EXPECT_EQ(window.layers_over_at(earlier + 10'000), 1);
}

TEST(Window, LayersExpireWithTheirGeneration) {
  Window window(of_time(10'000, 4), kStart);
  window.record_layer();
  follow(window, kStart + 2500);
  EXPECT_EQ(window.layers_over_at(kStart + 12'499), 0);
  EXPECT_EQ(window.layers_over_at(kStart + 12'500), 2);
  EXPECT_EQ(window.layers_over_at(kStart + 15'000), 3);
  EXPECT_EQ(window.layers_over_at(std::numeric_limits<int64_t>::max()), 3);
  EXPECT_EQ(window.layers_over_at(kNoTime), 0);
}

TEST(Window, ItemWindowDividesItsItemsByGenerations) {
  Window window(of_items(10, 4), kStart);
  EXPECT_EQ(window.newest().start, 0);
  std::vector<uint64_t> quotas;
  for (int i = 0; i < 4; ++i) {
    quotas.push_back(window.newest_quota());
    const uint64_t next = window.newest().ordinal + 1;
    window.rotate({next, window.start_of(next)}, false);
  }
  EXPECT_EQ(quotas, (std::vector<uint64_t>{2, 3, 2, 3}));
  EXPECT_EQ(window.layers_over_at(kStart), 0);
  EXPECT_TRUE(window.allows({5, 12}));
  EXPECT_FALSE(window.allows({5, 13}));
  EXPECT_FALSE(window.allows({6, 15}));
}

TEST(Window, ReceivedRotationsAreValidated) {
  Window window(of_time(10'000, 4), kStart);
  window.rotate({7, kStart}, false);
  EXPECT_TRUE(window.allows({7, 0}));
  EXPECT_TRUE(window.allows({8, Window::kPositionMax}));
  EXPECT_FALSE(window.allows({6, kStart}));
  EXPECT_FALSE(window.allows({8, -1}));
  EXPECT_FALSE(window.allows({8, Window::kPositionMax + 1}));
  EXPECT_FALSE(window.allows({std::numeric_limits<uint64_t>::max(), kStart}));
}

TEST(Window, RestoredWindowEqualsTheOriginal) {
  Window window(of_time(10'000, 4), kStart);
  follow(window, kStart + 2500);
  follow(window, kStart + 7600);
  window.record_layer();
  const auto copy = Window::restore(window.settings(), window.newest(), generations_of(window));
  ASSERT_TRUE(copy);
  EXPECT_EQ(generations_of(*copy), generations_of(window));
  EXPECT_EQ(copy->start_of(0), kStart);
  EXPECT_EQ(copy->layers_over_at(kStart + 12'500), 1);
}

TEST(Window, InvalidPartsAreRejected) {
  const WindowSettings time = of_time(10'000, 4);
  const Generations good{{3, 1}, {7, 2}};
  EXPECT_TRUE(Window::restore(time, {7, kStart}, good));
  EXPECT_FALSE(Window::restore(of_time(1, 4), {7, kStart}, good));
  EXPECT_FALSE(Window::restore({}, {7, kStart}, good));
  EXPECT_FALSE(Window::restore(time, {7, kStart}, {}));
  EXPECT_FALSE(Window::restore(time, {8, kStart}, good));
  EXPECT_FALSE(Window::restore(time, {7, -1}, good));
  EXPECT_FALSE(Window::restore(time, {7, Window::kPositionMax + 1}, good));
  EXPECT_FALSE(Window::restore(time, {7, kStart}, {{2, 1}, {7, 2}}));
  EXPECT_FALSE(Window::restore(time, {7, kStart}, {{7, 1}, {7, 2}}));
  EXPECT_FALSE(Window::restore(time, {7, kStart}, {{6, 1}, {5, 1}, {7, 2}}));
  EXPECT_FALSE(Window::restore(time, {7, kStart}, {{3, 0}, {7, 2}}));
  constexpr uint64_t kHuge = uint64_t{1} << 60;
  EXPECT_FALSE(Window::restore(time, {kHuge, kStart}, {{kHuge, 1}}));
  // In a window that counts items, each generation must start where the previous one ends.
  EXPECT_TRUE(Window::restore(of_items(100, 4), {7, 175}, good));
  EXPECT_FALSE(Window::restore(of_items(100, 4), {7, 176}, good));
}

TEST(Window, RotatesButDoesNotGrowBeyondTheLimit) {
  const WindowSettings settings = of_time(4000, 4);
  Window window(settings, kStart);
  while (window.may_grow()) window.record_layer();
  EXPECT_EQ(window.layer_count(), Window::kGrownLayersMax);
  for (int rotation = 1; rotation <= 4; ++rotation) {
    follow(window, kStart + rotation * 1000);
    EXPECT_FALSE(window.may_grow());
    EXPECT_EQ(window.layer_count(), Window::kGrownLayersMax + rotation);
    EXPECT_TRUE(Window::restore(settings, window.newest(), generations_of(window)));
  }
  EXPECT_EQ(window.layer_count(), Window::layers_max(settings));
  Generations generations = generations_of(window);
  ++generations.front().layer_count;
  EXPECT_FALSE(Window::restore(settings, window.newest(), generations));
  follow(window, kStart + 5000);
  EXPECT_EQ(window.layer_count(), 5U);
  EXPECT_TRUE(window.may_grow());
}

}  // namespace
}  // namespace core::bloom

// SPDX-License-Identifier: MIT
#include "server/commands/bloom/window_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace server {
namespace {

using core::bloom::WindowSettings;
using core::bloom::WindowUnit;

struct ParsedWords {
  WindowSettings settings{};
  std::string error{};
  std::vector<std::string_view> rest{};
  std::optional<int64_t> start_ms{};
};

ParsedWords parse(const std::vector<std::string_view>& words,
                  WindowWords::Form form = WindowWords::Form::kReserve, bool is_own = false) {
  protocol::ArgumentCursor cursor(words);
  WindowWords window(form, is_own);
  while (!cursor.done() && window.take(cursor)) {
  }
  if (!cursor.ok()) return {.error = std::string(cursor.error())};
  const auto settings = window.settings();
  if (!settings) return {.error = settings.error().message};
  return {*settings, "", {cursor.rest().begin(), cursor.rest().end()}, window.start_ms()};
}

TEST(WindowOptions, SecondsAreTheUnit) {
  const WindowSettings settings = parse({"WINDOW", "600"}).settings;
  EXPECT_EQ(settings.unit, WindowUnit::kMilliseconds);
  EXPECT_EQ(settings.length, 600'000);
  EXPECT_EQ(settings.generations, 4);
  EXPECT_FALSE(settings.refreshes);
}

TEST(WindowOptions, WordsComeInAnyOrderAndCase) {
  const WindowSettings settings =
      parse({"refresh", "Generations", "64", "window", "1000", "items"}).settings;
  EXPECT_EQ(settings.unit, WindowUnit::kItems);
  EXPECT_EQ(settings.length, 1000);
  EXPECT_EQ(settings.generations, 64);
  EXPECT_TRUE(settings.refreshes);
  EXPECT_FALSE(parse({}).settings.is_set());
}

TEST(WindowOptions, OfInsertTakesItemsAsUnitWhereAnotherFollows) {
  using enum WindowWords::Form;
  const ParsedWords items = parse({"WINDOW", "9", "ITEMS", "a", "ITEMS"}, kInsert);
  EXPECT_EQ(items.settings.unit, WindowUnit::kMilliseconds);
  EXPECT_EQ(items.rest, (std::vector<std::string_view>{"ITEMS", "a", "ITEMS"}));
  for (const auto& words : std::vector<std::vector<std::string_view>>{
           {"WINDOW", "9", "ITEMS", "ITEMS", "a"},
           {"WINDOW", "9", "ITEMS", "REFRESH", "GENERATIONS", "4", "items", "a"},
           {"WINDOW", "9", "ITEMS", "CAPACITY", "7", "EX", "5", "NOCREATE", "ITEMS", "a"}}) {
    EXPECT_EQ(parse(words, kInsert).settings.unit, WindowUnit::kItems);
  }
  EXPECT_EQ(parse({"WINDOW", "9", "ITEMS"}, kInsert).settings.unit, WindowUnit::kMilliseconds);
  EXPECT_EQ(parse({"WINDOW", "9", "ITEMS", "CAPACITY"}, kInsert).settings.unit,
            WindowUnit::kMilliseconds);
}

TEST(WindowOptions, InvalidWindowsAreRejected) {
  EXPECT_EQ(parse({"WINDOW"}).error, protocol::kSyntaxError);
  EXPECT_EQ(parse({"WINDOW", "x"}).error, kBadWindow);
  for (const char* length : {"0", "-1", "4294967296"}) {
    EXPECT_EQ(parse({"WINDOW", length}).error, kSecondsRange);
  }
  EXPECT_EQ(parse({"WINDOW", "4294967295"}).error, "");
  EXPECT_EQ(parse({"WINDOW", "281474976710657", "ITEMS"}).error, kItemsRange);
  for (const char* count : {"0", "65", "x", "-4"}) {
    EXPECT_EQ(parse({"WINDOW", "1", "GENERATIONS", count}).error, kGenerationsRange);
  }
  EXPECT_EQ(parse({"GENERATIONS", "4"}).error, kNeedsWindow);
  EXPECT_EQ(parse({"REFRESH"}).error, kNeedsWindow);
  EXPECT_EQ(parse({"WINDOW", "3", "ITEMS"}).error, kWindowTooShort);
}

TEST(WindowOptions, AStartIsForJournals) {
  EXPECT_EQ(parse({"WINDOW", "9", "START", "17"}).rest.size(), 2);
  const ParsedWords own = parse({"WINDOW", "9", "START", "17"}, WindowWords::Form::kReserve, true);
  EXPECT_EQ(own.start_ms, 17);
  EXPECT_TRUE(own.rest.empty());
}

}  // namespace
}  // namespace server

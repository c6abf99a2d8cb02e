// SPDX-License-Identifier: MIT
#include "core/bloom/arrays/line_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/bloom/arrays/lane_sets.h"
#include "tests/support/sanitized.h"

namespace core::bloom {
namespace {

TEST(LineModelTest, SmallestCasesEqualExactCounts) {
  // An added item has set one bit in the only line, which has 512 bits. The probe of an absent item
  // hits this bit once in 512 cases.
  EXPECT_NEAR((LineModel{1, 1, 1}.error_rate(1)), 1.0 / 512, 1e-15);
  // The two bits of an item are equal in one of 512 cases. For a false positive, both bits of the
  // probed item must be among them.
  const double two = (511.0 / 512 * 4 + 1.0 / 512) / (512.0 * 512);
  EXPECT_NEAR((LineModel{1, 1, 2}.error_rate(1)), two, 1e-13);
  // An item may select the only line twice, with one bit each time. The error rate is then the same
  // as with two bits in one selection.
  EXPECT_NEAR((LineModel{1, 2, 1}.error_rate(1)), two, 1e-13);
  // If the array has two lines, half of all lookups read the line of the added item.
  EXPECT_NEAR((LineModel{2, 1, 1}.error_rate(1)), 0.5 / 512, 1e-15);
  EXPECT_EQ((LineModel{2, 1, 1}.error_rate(0)), 0.0);
}

constexpr unsigned kFills = support::rounds(3000U, 600U);
constexpr unsigned kProbesPerFill = 300;

// Calls function(bit) for each bit of a random item in the line that begins at `start`.
template <class Function>
void each_random_bit(const LineModel& model, size_t start, std::mt19937_64& random,
                     const Function& function) {
  if (!model.has_lanes) {
    for (unsigned bit = 0; bit < model.bits_per_line; ++bit) {
      function(start + random() % model.line_bits);
    }
    return;
  }
  // Rotates the base set of lanes at random, and chooses a random bit in each lane of the result.
  const unsigned set = lane_set(model.bits_per_line, unsigned(random() % kLanes));
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if ((set >> lane & 1) != 0) function(start + lane * kLaneBits + random() % kLaneBits);
  }
}

// Measures the error rate with random bits instead of evaluating the formula.
double simulated_error(const LineModel& model, unsigned item_count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const unsigned line_count = unsigned(model.line_count);
  unsigned found = 0;
  for (unsigned fill = 0; fill < kFills; ++fill) {
    std::vector<bool> bits(line_count * model.line_bits);
    const auto each_bit = [&](auto function) {
      for (unsigned line = 0; line < model.lines_per_lookup; ++line) {
        each_random_bit(model, random() % line_count * model.line_bits, random, function);
      }
    };
    for (unsigned item = 0; item < item_count; ++item) each_bit([&](size_t x) { bits[x] = true; });
    for (unsigned probe = 0; probe < kProbesPerFill; ++probe) {
      bool all_set = true;
      each_bit([&](size_t x) { all_set = all_set && bits[x]; });
      found += all_set;
    }
  }
  return double(found) / (double(kFills) * kProbesPerFill);
}

TEST(LineModelTest, FewLinesBehaveAsSimulated) {
  constexpr uint64_t kSeed = 4711;
  struct Case {
    LineModel model;
    unsigned item_count;
  };
  const Case cases[] = {{{1, 1, 5}, 60},      {{1, 3, 2}, 60},      {{2, 1, 6}, 110},
                        {{2, 2, 3}, 110},     {{3, 2, 5}, 110},     {{4, 4, 2}, 180},
                        {{8, 1, 4}, 500},     {{8, 3, 3}, 400},     {{20, 2, 4}, 900},
                        {{2, 1, 6, 256}, 60}, {{8, 3, 3, 409}, 320}};
  for (const auto& [model, item_count] : cases) {
    const double simulated = simulated_error(model, item_count, kSeed);
    const double slack = 5 * std::sqrt(simulated / (kFills * kProbesPerFill));
    EXPECT_NEAR(model.error_rate(item_count), simulated, 0.02 * simulated + slack)
        << model.line_count << " lines, " << model.lines_per_lookup << " per lookup, seed "
        << kSeed;
  }
}

TEST(LineModelTest, LinesOfLanesBehaveAsSimulated) {
  constexpr uint64_t kSeed = 4712;
  struct Case {
    unsigned lines, lines_per_lookup, lanes, item_count;
  };
  for (const auto& [lines, lines_per_lookup, lanes, item_count] : {Case{1, 1, 1, 60},
                                                                   {1, 1, 5, 60},
                                                                   {2, 1, 8, 90},
                                                                   {3, 1, 10, 110},
                                                                   {1, 3, 2, 60},
                                                                   {4, 2, 4, 150},
                                                                   {8, 3, 3, 400},
                                                                   {20, 2, 9, 500}}) {
    LineModel model{double(lines), lines_per_lookup, lanes};
    model.has_lanes = true;
    const double simulated = simulated_error(model, item_count, kSeed);
    const double slack = 5 * std::sqrt(simulated / (kFills * kProbesPerFill));
    EXPECT_NEAR(model.error_rate(item_count), simulated, 0.02 * simulated + slack)
        << lines << " lines, " << lines_per_lookup << " per lookup, " << lanes << " lanes, seed "
        << kSeed;
  }
}

// Nearly empty lines are excluded: rounding alone changes their error rate by about 1e-15 per line.
TEST(LineModelTest, ErrorFallsWithLinesAndRisesWithItems) {
  for (const unsigned lines_per_lookup : {1U, 2U, 5U, 16U}) {
    double last = 1;
    for (double lines = 1; lines < 300 * lines_per_lookup; lines *= 1.5) {
      const LineModel model{lines, lines_per_lookup, 4};
      EXPECT_LE(model.error_rate(1000), last * (1 + 1e-9));
      last = model.error_rate(1000);
    }
    const LineModel model{1000, lines_per_lookup, 4};
    last = 0;
    for (double items = 4000; items < 1e7; items *= 2) {
      EXPECT_GE(model.error_rate(items), last);
      last = model.error_rate(items);
    }
    EXPECT_NEAR(last, 1, 1e-3);
  }
}

TEST(LineModelTest, SolutionKeepsTheErrorWithTheFewestLines) {
  for (const uint64_t capacity : {1ULL, 7ULL, 100ULL, 12345ULL, 1ULL << 40}) {
    for (const double rate : {0.9, 0.1, 0.01, 1e-5, 1e-9, 1e-20}) {
      auto model = solve_line_model(capacity, rate);
      ASSERT_TRUE(model) << capacity << " at " << rate;
      EXPECT_LE(model->error_rate(double(capacity)), rate);
      EXPECT_EQ(model->line_count, std::floor(model->line_count));
      if (model->line_count > 1 && model->line_count < 1e6) {
        model->line_count -= 1;
        EXPECT_GT(model->error_rate(double(capacity)), rate) << capacity << " at " << rate;
      }
    }
  }
}

TEST(LineModelTest, OnesAreSpreadAsSimulated) {
  constexpr uint64_t kSeed = 815;
  struct Case {
    LineModel model;
    unsigned item_count;
  };
  const Case cases[] = {
      {{1, 1, 5}, 60}, {{3, 2, 5}, 110}, {{8, 1, 7, 409}, 300}, {{20, 3, 2}, 900}};
  std::mt19937_64 random(kSeed);
  for (const auto& [model, item_count] : cases) {
    constexpr unsigned kRounds = 4000;
    double sum = 0, squares = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
      std::vector<bool> bits(unsigned(model.line_count) * model.line_bits);
      for (unsigned line = 0; line < item_count * model.lines_per_lookup; ++line) {
        const size_t start = random() % unsigned(model.line_count) * model.line_bits;
        for (unsigned bit = 0; bit < model.bits_per_line; ++bit) {
          bits[start + random() % model.line_bits] = true;
        }
      }
      const double ones = double(std::ranges::count(bits, true));
      sum += ones;
      squares += ones * ones;
    }
    const double mean = sum / kRounds;
    const double variance = squares / kRounds - mean * mean;
    EXPECT_NEAR(model.expected_ones(item_count), mean, 5 * std::sqrt(variance / kRounds));
    // The relative error of a measured variance is about sqrt(2 / rounds).
    EXPECT_NEAR(model.variance_of_ones(item_count), variance, 0.12 * variance) << kSeed;
    EXPECT_NEAR(model.items_of_ones(model.expected_ones(item_count)), item_count, 1e-6);
  }
}

}  // namespace
}  // namespace core::bloom

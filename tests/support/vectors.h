// SPDX-License-Identifier: MIT
//
// Reads the files in tests/vectors, which other servers wrote. Also reads the false positives that
// these servers found in the filters of these files.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace vectors {

inline std::filesystem::path path(const std::string& name) {
  return std::filesystem::path(BLOOMERY_VECTORS) / name;
}

inline std::string read(const std::string& name) {
  std::ifstream file(path(name), std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Expected {
  std::string name;
  uint64_t capacity = 0;
  uint64_t layer_count = 0;
  uint64_t item_count = 0;
  // Growth factor of the layers; 0 if the filter never grows.
  uint64_t expansion = 0;
  // The numbers n below 1000 for which the filter finds "absent:n", which was never added.
  std::vector<int> false_positives;
};

// Reads expected.txt of "redisbloom" or "valkey-bloom". Each line is a filter: name, capacity,
// layers, items, expansion, then the false positives.
inline std::vector<Expected> expected(const std::string& writer) {
  std::ifstream file(path(writer + "/expected.txt"));
  std::vector<Expected> filters;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Expected filter;
    words >> filter.name >> filter.capacity >> filter.layer_count >> filter.item_count >>
        filter.expansion;
    for (int number = 0; words >> number;) filter.false_positives.push_back(number);
    filters.push_back(filter);
  }
  EXPECT_FALSE(filters.empty());
  return filters;
}

}  // namespace vectors

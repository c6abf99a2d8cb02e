// SPDX-License-Identifier: MIT
//
// ConfigTest: a fixture with a Config, and with a new directory for the files that the Config
// reads.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "persistence/files/file.h"
#include "server/base/config/config.h"

namespace server {

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = ::testing::TempDir() + "bloomery_config_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = directory_ + "/" + name;
    EXPECT_TRUE(persistence::write_file_atomically(path, text));
    return path;
  }
  static std::string read(const std::string& path) {
    return persistence::read_whole_file(path, 1 << 20).value();
  }

  // Loads the arguments. Returns "" on success, otherwise the error that a start would print.
  static std::string load(Config& config, const std::vector<std::string>& arguments,
                          int stdin_descriptor = -1) {
    std::vector<const char*> argv = {"bloomery-server"};
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    const auto loaded = config.load(static_cast<int>(argv.size()), argv.data(), stdin_descriptor);
    return loaded ? "" : loaded.error().message;
  }
  std::string load(const std::vector<std::string>& arguments) { return load(config_, arguments); }

  // Runs CONFIG SET. Returns "OK" or the error.
  std::string set(const std::vector<NamedValue>& pairs, Origin origin = Origin::kRemote) {
    const auto done = config_.set(pairs, origin);
    return done ? "OK" : done.error().message;
  }
  static std::string get(const Config& config, std::string_view name) {
    const std::string_view patterns[] = {name};
    const auto found = config.get(patterns);
    return found.size() == 1 ? found[0].second : "(" + std::to_string(found.size()) + " found)";
  }
  std::string get(std::string_view name) const { return get(config_, name); }

  std::string directory_;
  Config config_;
};

}  // namespace server

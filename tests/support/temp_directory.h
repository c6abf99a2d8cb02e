// SPDX-License-Identifier: MIT
//
// TempDirectory: a new directory, which the destructor removes.
//
// Thread safety: path() may be called from any thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace support {

class TempDirectory {
 public:
  TempDirectory() : path_(::testing::TempDir() + "bloomery_XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace support

// SPDX-License-Identifier: MIT
#include "server/startup_banner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/durability/loading/load_figures.h"
#include "server/durability/loading/recovery.h"
#include "tests/support/upsert.h"

namespace server {
namespace {

TEST(ReadyLine, TellsWhatHasStartedAndWhatItHas) {
  Config config;
  const char* argv[] = {"server",     "--port", "7000",         "--bind", "127.0.0.1",
                        "--tls-port", "0",      "--io-threads", "3"};
  ASSERT_TRUE(config.load(std::size(argv), argv));
  core::keyspace::Keyspace keyspace(4, 1);
  LoadFigures loaded;
  const std::string start = fmt::format(
      "Ready to accept connections: Bloomery {}, port 7000 at 127.0.0.1, 3 I/O threads, data in "
      "'{}', ",
      BLOOMERY_VERSION, std::filesystem::current_path().string());
  EXPECT_EQ(startup_banner(config, loaded, keyspace), start + "nothing to load");
  loaded.source = "snapshot";
  loaded.took_us = 1'234'567;
  for (const unsigned database : {0U, 3U}) {
    core::keyspace::upsert(keyspace, database, keyspace.ref("key"), core::keyspace::kIgnoreExpiry);
  }
  EXPECT_EQ(startup_banner(config, loaded, keyspace),
            start + "2 keys from the snapshot in 1.235 s");
}

TEST(ReadyLine, NamesTheAddressesOfEachPort) {
  Config config;
  const char* argv[] = {"server",     "--port",       "7000",        "--bind", "10.0.0.1",
                        "--tls-port", "7001",         "--http-port", "8080",   "--http-bind",
                        "127.0.0.1",  "--unixsocket", "/run/b.sock"};
  ASSERT_TRUE(config.load(std::size(argv), argv));
  const std::string line = startup_banner(config, {}, core::keyspace::Keyspace(1, 1));
  EXPECT_NE(line.find(", port 7000 at 10.0.0.1, TLS port 7001 at 10.0.0.1, "
                      "http://127.0.0.1:8080/, socket /run/b.sock, "),
            std::string::npos)
      << line;
}

}  // namespace
}  // namespace server

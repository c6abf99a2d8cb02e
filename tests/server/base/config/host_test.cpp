// SPDX-License-Identifier: MIT
#include "server/base/config/host.h"

#include <gtest/gtest.h>

namespace server {
namespace {

using namespace std::string_view_literals;

TEST(Host, NamesAndAddressesAreHosts) {
  for (const auto host : {"localhost", "a", "10.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1",
                          "db-1.example.com", "my_container", "xn--bcher-kva.example."}) {
    EXPECT_TRUE(is_host(host)) << host;
  }
  EXPECT_TRUE(is_host(std::string(255, 'a')));
}

TEST(Host, NothingElseIs) {
  for (const auto host :
       {""sv, " "sv, "a b"sv, "a\nb"sv, "a\r"sv, "a\0b"sv, "a,b"sv, "a=b"sv, "a\"b"sv, "*"sv,
        "-a"sv, "a\x7f"sv, "b\xc3\xbc"sv, "[::1]"sv, "/run/s"sv}) {
    EXPECT_FALSE(is_host(host)) << host;
  }
  EXPECT_FALSE(is_host(std::string(256, 'a')));
}

TEST(Host, PortsAreWholeNumbersThatASocketCanHave) {
  EXPECT_EQ(parse_port("0"), 0) << "as in Redis";
  EXPECT_EQ(parse_port("1"), 1);
  EXPECT_EQ(parse_port("65535"), 65535);
  for (const auto text : {"", "-1", "65536", "6379 ", "+1", "01", "1.0", "99999999999999999999"}) {
    EXPECT_FALSE(parse_port(text)) << text;
  }
}

}  // namespace
}  // namespace server

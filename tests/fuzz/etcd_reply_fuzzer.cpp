// SPDX-License-Identifier: MIT
//
// Reads any bytes as the JSON replies of an etcd member. The library Beast parses the HTTP around
// them, so it is not tested here.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/cluster/etcd_messages.h"

namespace {

void parse(std::string_view json) {
  using namespace server::cluster;
  if (const auto range = parse_etcd_range(json)) (void)range->find("a");
  (void)parse_etcd_txn(json);
  (void)parse_etcd_grant(json);
  (void)parse_etcd_keep_alive(json);
  (void)parse_etcd_revoke(json);
  (void)parse_etcd_watch(json);
  const EtcdError error = parse_etcd_error(500, json);
  if (error.message.empty() || error.message.find('\n') != std::string::npos) std::abort();
  // The token becomes part of a request line, so it must contain no line break and no space.
  if (const auto token = parse_etcd_token(json)) {
    if (token->find_first_of("\r\n ") != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 64 * 1024;
  if (size <= kBytesMax) parse({reinterpret_cast<const char*>(data), size});
  return 0;
}

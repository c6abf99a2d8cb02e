// SPDX-License-Identifier: MIT
//
// Reads any bytes as the reply of an etcd member: HTTP, fed whole and in pieces, and the JSON in
// it. Both ways of feeding must give the same result. The input's first byte chooses the size of
// the pieces and the kind of the reply.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/cluster/etcd_http.h"
#include "server/cluster/etcd_messages.h"

namespace {

using server::cluster::EtcdHttpReader;

struct Outcome {
  bool failed = false;
  bool done = false;
  std::string body;
  std::vector<std::string> lines;

  bool operator==(const Outcome&) const = default;
};

Outcome feed(std::string_view bytes, EtcdHttpReader::Kind kind, size_t piece) {
  EtcdHttpReader reader(kind);
  Outcome outcome;
  while (!bytes.empty() && !reader.is_done() && !outcome.failed) {
    const std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    outcome.failed = !reader.feed(part);
    for (std::string& line : reader.take_lines()) outcome.lines.push_back(std::move(line));
  }
  outcome.done = reader.is_done();
  if (!outcome.failed) outcome.body = reader.body();
  if (!outcome.failed && !outcome.done) (void)reader.feed_end();
  return outcome;
}

void parse(std::string_view json) {
  using namespace server::cluster;
  if (const auto range = parse_etcd_range(json)) (void)range->find("a");
  (void)parse_etcd_put(json);
  (void)parse_etcd_txn(json);
  (void)parse_etcd_grant(json);
  (void)parse_etcd_keep_alive(json);
  (void)parse_etcd_revoke(json);
  (void)parse_etcd_watch(json);
  const EtcdError error = parse_etcd_error(500, json);
  if (error.message.empty() || error.message.find('\n') != std::string::npos) std::abort();
  // The token becomes part of a request line.
  if (const auto token = parse_etcd_token(json)) {
    if (token->find_first_of("\r\n ") != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 64 * 1024;
  if (size == 0 || size > kBytesMax) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto kind = data[0] % 2 == 0 ? EtcdHttpReader::Kind::kReply : EtcdHttpReader::Kind::kStream;
  const Outcome whole = feed(bytes, kind, bytes.size());
  const Outcome pieces = feed(bytes, kind, size_t{data[0]} / 2 + 1);
  // An error may be found earlier if the bytes come at once. A complete reply must not be an error
  // in either way.
  if (whole.done ? pieces.failed : pieces.done) std::abort();
  if (!whole.failed && !pieces.failed && whole != pieces) std::abort();
  parse(whole.body);
  for (const std::string& line : whole.lines) parse(line);
  parse(bytes);
  return 0;
}

// SPDX-License-Identifier: MIT
//
// Parses any bytes as HTTP requests to the admin port, twice: in pieces of the size that a
// connection reads, and in small pieces. Both times the requests must be the same, up to the first
// error. Decoding an encoded path or query value must give the original text. The size of the small
// pieces is the input's first byte plus one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/admin/http_message.h"
#include "server/admin/request_reader.h"

namespace {

using server::admin::HttpRequest;
using server::admin::RequestReader;
using server::admin::UrlPart;
using Status = RequestReader::Status;

struct Outcome {
  bool failed = false;
  std::vector<std::string> requests;
};

void check(const HttpRequest& request) {
  using server::admin::decode_url;
  using server::admin::encode_url;
  if (!request.path.starts_with('/') || request.path.find('\0') != std::string::npos) std::abort();
  if (decode_url(encode_url(request.path), UrlPart::kPath) != request.path) std::abort();
  for (const auto& [name, value] : request.query) {
    if (decode_url(encode_url(value), UrlPart::kQuery) != value) std::abort();
    if (!request.parameter(name)) std::abort();
  }
}

Outcome feed(std::string_view bytes, size_t piece) {
  RequestReader reader;
  Outcome outcome;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    reader.feed(part);
    Status status = reader.next();
    for (; status == Status::kRequest; status = reader.next()) {
      const HttpRequest& request = reader.request();
      check(request);
      outcome.requests.push_back(request.method + ' ' + request.path + ' ' + request.host);
    }
    if (status == Status::kNeedMore) continue;
    if (reader.refusal().status < 400) std::abort();
    outcome.failed = true;
    break;
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 64 * 1024;
  constexpr size_t kReceived = 4096;
  if (size == 0 || size > kBytesMax) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome usual = feed(bytes, kReceived);
  const Outcome small = feed(bytes, size_t{data[0]} + 1);
  // The size of the pieces may decide at which request a limit is exceeded. So one reader may
  // accept more requests than the other. The requests that both readers accept must be equal.
  const size_t count = std::min(usual.requests.size(), small.requests.size());
  if (!std::equal(usual.requests.begin(), usual.requests.begin() + static_cast<ptrdiff_t>(count),
                  small.requests.begin())) {
    std::abort();
  }
  if (!usual.failed && !small.failed && usual.requests.size() != small.requests.size()) {
    std::abort();
  }
  return 0;
}

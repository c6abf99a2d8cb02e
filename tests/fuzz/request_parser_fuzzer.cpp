// SPDX-License-Identifier: MIT
//
// Parses the same bytes whole and in random pieces, and aborts if the results differ.
//
// The first byte of an input chooses the limits. The second byte is the seed of the random sizes of
// the pieces. The remaining bytes are the stream.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_parser.h"

namespace {

using protocol::Limits;
using protocol::RequestParser;
using Status = RequestParser::Status;

struct Outcome {
  std::vector<std::vector<std::string>> requests;
  std::string error;
  size_t consumed = 0;

  bool operator==(const Outcome&) const = default;
};

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::unique_ptr<RequestParser> make_parser(uint8_t choice) {
  Limits limits;
  if ((choice & 1) != 0) limits.inline_size_max_bytes = 16;
  if ((choice & 2) != 0) limits.bulk_size_max_bytes = 12;
  if ((choice & 4) != 0) limits.argument_count_max = 3;
  auto parser = std::make_unique<RequestParser>(limits);
  parser->set_authenticated((choice & 8) == 0);
  return parser;
}

// The buffer is a new block of exactly the pending size at each step. So AddressSanitizer detects a
// stale view and a read past the end. `step_max` 0 feeds all bytes at once.
Outcome feed(RequestParser& parser, std::string_view bytes, uint32_t seed, size_t step_max) {
  std::minstd_rand random(seed + 1);
  Outcome outcome;
  size_t end = 0;
  do {
    const size_t step = step_max == 0 ? bytes.size() : 1 + random() % step_max;
    end = std::min(bytes.size(), end + step);
    for (;;) {
      const size_t pending = end - outcome.consumed;
      const auto block = std::make_unique<char[]>(pending);
      bytes.copy(block.get(), pending, outcome.consumed);
      std::vector<std::string_view> words;
      const Status status = parser.parse({block.get(), pending}, words);
      require(parser.consumed() <= pending, "consumed more than there was");
      outcome.consumed += parser.consumed();
      if (status == Status::kError) outcome.error = parser.error();
      require(words.empty() == (status != Status::kRequest), "words without a request, or none");
      if (status != Status::kRequest) break;
      outcome.requests.emplace_back(words.begin(), words.end());
    }
  } while (outcome.error.empty() && end < bytes.size());
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Outcome whole = feed(*make_parser(data[0]), bytes, data[1], 0);
  for (const size_t step_max : {1, 2, 7, 64}) {
    require(feed(*make_parser(data[0]), bytes, data[1], step_max) == whole, "cuts change meaning");
  }
  require(whole.error.find_first_of("\r\n") == std::string::npos, "line break in an error");
  return 0;
}

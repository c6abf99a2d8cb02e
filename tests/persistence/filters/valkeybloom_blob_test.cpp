// SPDX-License-Identifier: MIT
#include "persistence/filters/valkeybloom_codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/filter_forms.h"
#include "tests/support/vectors.h"

namespace persistence {
namespace {

using namespace filter_forms;

struct LoadPair {
  std::string load;
  std::string dump;
};

TEST(ValkeyBloomBlob, LoadPayloadsAreReadAndWritten) {
  std::vector<LoadPair> pairs;
  for (const char* name : {"auto", "empty", "exp1", "exp4", "ins", "loose", "nonscaling", "scaled",
                           "tight", "tiny", "ttlbf", "binkey"}) {
    pairs.push_back({fmt::format("valkey-bloom/load/{}.bin", name),
                     fmt::format("valkey-bloom/dump/{}.bin", name)});
  }
  for (const char* name : {"rnd", "rndscaled"}) {
    pairs.push_back({fmt::format("valkey-bloom/random-seed/{}.load.bin", name),
                     fmt::format("valkey-bloom/random-seed/{}.dump.bin", name)});
  }
  for (const LoadPair& pair : pairs) {
    SCOPED_TRACE(pair.load);
    const std::string payload = vectors::read(pair.load);
    const auto filter = decode_load_payload(payload, kUnlimited);
    ASSERT_TRUE(filter) << filter.error().message;
    EXPECT_EQ(load_payload_of(**filter), payload);
    const auto dumped = load(vectors::read(pair.dump));
    ASSERT_TRUE(dumped);
    expect_equal(**filter, **dumped);
  }
}

TEST(ValkeyBloomBlob, EveryTruncationIsRejected) {
  const std::string scaled = vectors::read("valkey-bloom/load/scaled.bin");
  for (size_t size = 0; size < scaled.size(); ++size) {
    EXPECT_FALSE(decode_load_payload(scaled.substr(0, size), kUnlimited)) << size;
  }
}

}  // namespace
}  // namespace persistence

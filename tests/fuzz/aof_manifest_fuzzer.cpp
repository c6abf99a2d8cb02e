// SPDX-License-Identifier: MIT
//
// Aborts if an accepted manifest changes when it is written and read again. Also aborts if a member
// function of the manifest changes it so that it is no longer accepted.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "persistence/aof/aof_manifest.h"

namespace {

using persistence::AofManifest;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void require_stable(const AofManifest& manifest) {
  const auto again = AofManifest::parse(manifest.encode(), "m");
  require(bool(again), "a manifest that was written cannot be read");
  require(*again == manifest, "a manifest changed on its way");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto manifest = AofManifest::parse(text, "m");
  if (!manifest) return 0;
  require_stable(*manifest);
  const persistence::AofNames names("appendonly.aof");
  manifest->add_incremental(names);
  manifest->replace_base(names, persistence::AofBaseFormat::kRdb);
  require_stable(*manifest);
  manifest->drop_history();
  require_stable(*manifest);
  return 0;
}

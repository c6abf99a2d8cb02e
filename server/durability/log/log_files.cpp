// SPDX-License-Identifier: MIT
#include "server/durability/log/log_files.h"

#include <utility>

#include "server/base/log/log.h"

namespace server {

using Begin = persistence::AofWriter::Begin;

LogFiles::LogFiles(const Config& config, const core::Clock& clock, persistence::Journal& journal,
                   persistence::FileSystem& files)
    : directory_(files, ".", config.text(OptionId::kAppendDirName),
                 persistence::AofNames(config.text(OptionId::kAppendFileName))),
      writer_(files, journal, clock, directory_.place) {
  directory_.on_removed = [](const std::string& path) {
    log_notice("Removed '{}', which no append log needs", path);
  };
}

core::Result<> LogFiles::open_found(persistence::AofManifest manifest,
                                    const std::optional<persistence::AofWriter::Tail>& tail,
                                    uint64_t files_bytes, bool needs_base) {
  if (auto swept = directory_.sweep(manifest); !swept) return swept;
  return writer_.open(std::move(manifest), tail, files_bytes,
                      needs_base ? Begin::kWithBase : Begin::kNow);
}

core::Result<> LogFiles::open_without_base(persistence::AofManifest manifest) {
  return writer_.open(std::move(manifest), std::nullopt, 0,
                      are_stale_ ? Begin::kAfresh : Begin::kWithBase);
}

core::Result<> LogFiles::replace_base(const std::string& path, persistence::AofBaseFormat format) {
  auto replaced = writer_.is_open() ? writer_.replace_base(path, format)
                                    : directory_.replace_files(path, format);
  if (replaced) are_stale_ = false;
  return replaced;
}

}  // namespace server

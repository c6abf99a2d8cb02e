// SPDX-License-Identifier: MIT
#include "server/startup_banner.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/durability/loading/load_figures.h"
#include "server/durability/loading/recovery.h"

namespace server {
namespace {

// Returns the dashboard's address for a browser on this machine.
std::string http_address(const Config& config) {
  std::string host = split_at_spaces(config.text(OptionId::kHttpBind)).front();
  if (host.starts_with('-')) host.erase(0, 1);
  if (host == "*") host = "127.0.0.1";
  if (host == "::*") host = "::1";
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}/", config.flag(OptionId::kHttpTls) ? "https" : "http",
                     is_v6 ? '[' + host + ']' : host, config.integer(OptionId::kHttpPort));
}

std::string addresses(const Config& config) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, int64_t port, OptionId bind) {
    if (port != 0) parts.push_back(fmt::format("{} {} at {}", name, port, config.text(bind)));
  };
  add("port", config.port(), OptionId::kBind);
  add("TLS port", config.integer(OptionId::kTlsPort), OptionId::kBind);
  if (config.integer(OptionId::kHttpPort) != 0) parts.push_back(http_address(config));
  const std::string socket = config.text(OptionId::kUnixSocket);
  if (!socket.empty()) parts.push_back("socket " + socket);
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Returns the absolute path of `dir`, because the reader of the log does not know the working
// directory.
std::string directory(const Config& config) {
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  return error ? config.directory() : path.string();
}

std::string loaded_text(const LoadFigures& loaded, const core::keyspace::Keyspace& keyspace) {
  const char* const source = loaded.source;
  if (source == nullptr) return "nothing to load";
  uint64_t key_count = 0;
  for (unsigned i = 0; i < keyspace.database_count(); ++i) key_count += keyspace.db_size(i);
  return fmt::format("{} keys from the {} in {:.3f} s", key_count, source,
                     double(loaded.took_us) / 1e6);
}

}  // namespace

std::string startup_banner(const Config& config, const LoadFigures& loaded,
                           const core::keyspace::Keyspace& keyspace) {
  return fmt::format(
      "Ready to accept connections: Bloomery {}, {}, {} I/O threads, data in '{}', {}",
      BLOOMERY_VERSION, addresses(config), config.io_thread_count(), directory(config),
      loaded_text(loaded, keyspace));
}

}  // namespace server

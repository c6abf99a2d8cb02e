// SPDX-License-Identifier: MIT
#include "server/base/process/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "server/base/config/config.h"
#include "server/base/log/log.h"

namespace server {

void raise_descriptor_limit(Config& config) {
  // The number of descriptors that are reserved for the server's own files and for clients of the
  // admin port.
  const rlim_t reserved = config.integer(OptionId::kHttpPort) == 0 ? 32 : 128;
  const rlim_t wanted = static_cast<rlim_t>(config.max_clients()) + reserved;
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  struct rlimit raised = limit;
  raised.rlim_cur = wanted;
  raised.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  raised.rlim_cur = raised.rlim_max = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &raised);
  const rlim_t clients = raised.rlim_cur > reserved ? raised.rlim_cur - reserved : 1;
  if (clients >= static_cast<rlim_t>(config.max_clients())) return;
  log_warning("maxclients has been reduced to {}: the limit of open files is {}", clients,
              raised.rlim_cur);
  const NamedValue reduced{"maxclients", std::to_string(clients)};
  if (auto set = config.set({&reduced, 1}); !set) log_warning("{}", set.error().message);
}

}  // namespace server

// SPDX-License-Identifier: MIT
#include "server/commands/server/rewrite_command.h"

#include <string>
#include <vector>

#include "server/base/log/log.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/session/acl/acl_file.h"

namespace server {

/* CONFIG REWRITE */
void rewrite_config(Context& ctx, Config::Extent extent) {
  // If there is an ACL file, users are not written to the configuration file.
  const bool has_acl_file = !ctx.services.config.text(OptionId::kAclFile).empty();
  const auto rewritten = ctx.services.config.rewrite(
      has_acl_file ? std::vector<std::string>{} : acl::user_config_lines(ctx.services.users),
      extent);
  if (!rewritten) {
    log_warning("CONFIG REWRITE failed: {}", rewritten.error().message);
    return ctx.reply.error(rewritten.error().message);
  }
  log_notice("CONFIG REWRITE executed with success.");
  ctx.reply.ok();
}

}  // namespace server

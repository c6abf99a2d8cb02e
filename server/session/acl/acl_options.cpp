// SPDX-License-Identifier: MIT
#include "server/session/acl/acl_options.h"

#include "server/base/config/config.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/acl_file.h"
#include "server/session/acl/selector.h"
#include "server/session/acl/users.h"

namespace server::acl {

core::Result<> prepare_users(Users& users, Config& config) {
  config.follow({OptionId::kAclLogMaxLen, OptionId::kAclPubsubDefault}, [&users, &config] {
    users.log().set_limit(static_cast<size_t>(config.integer(OptionId::kAclLogMaxLen)));
    const auto channels = config.integer(OptionId::kAclPubsubDefault);
    users.set_channel_default(static_cast<ChannelDefault>(channels));
  });
  config.follow(OptionId::kRequirePass, [&users, &config] {
    users.set_default_password(config.text(OptionId::kRequirePass));
  });
  return load_users(users, config.other_directives().users, config.text(OptionId::kAclFile));
}

}  // namespace server::acl

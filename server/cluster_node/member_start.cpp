// SPDX-License-Identifier: MIT
#include "server/cluster_node/member_start.h"

#include <fstream>

#include "server/base/config/config.h"
#include "server/cluster/permit_clock.h"

namespace server::cluster {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

MemberOptions member_options(const NodeFile& file, const PermitTimes& times, const Config& config) {
  return {.id = file.id,
          .times = times,
          .started_us = permit_clock_us(),
          .kept_shard = file.kept_shard,
          .kept_epoch = file.kept_epoch,
          .is_same_boot = !file.kept_boot.empty() && file.kept_boot == boot_id(),
          .awaits_acks = config.integer(OptionId::kClusterWriteAcks) != 0};
}

}  // namespace server::cluster

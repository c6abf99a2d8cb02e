// SPDX-License-Identifier: MIT
#include "server/cluster_node/member_start.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/cluster/permit_clock.h"

namespace server::cluster {
namespace {

constexpr std::chrono::milliseconds kEtcdCallLimitMin{700};
// Election::wait_us() gives a peer two seconds to learn of an election, also if its first call of
// etcd is not answered.
constexpr std::chrono::milliseconds kEtcdCallLimitMax{1000};

}  // namespace

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

EtcdOptions etcd_options(const Config& config) {
  const std::chrono::milliseconds timeout(config.integer(OptionId::kClusterNodeTimeout));
  return {.endpoints = split_at_spaces(config.text(OptionId::kClusterEtcd)),
          .user = config.text(OptionId::kClusterEtcdUser),
          .password = config.text(OptionId::kClusterEtcdPassword),
          .ca_file = {config.text(OptionId::kClusterEtcdCaFile), "cluster-etcd-ca-file"},
          .cert_file = {config.text(OptionId::kClusterEtcdCertFile), "cluster-etcd-cert-file"},
          .key_file = {config.text(OptionId::kClusterEtcdKeyFile), "cluster-etcd-key-file"},
          .call_limit = std::clamp(timeout / 10, kEtcdCallLimitMin, kEtcdCallLimitMax)};
}

}  // namespace server::cluster

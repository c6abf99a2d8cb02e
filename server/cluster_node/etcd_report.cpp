// SPDX-License-Identifier: MIT
#include "server/cluster_node/etcd_report.h"

#include <fmt/format.h>

#include <string_view>

#include "server/base/log/log.h"

namespace server::cluster {
namespace {

constexpr int64_t kReportAgainUs = 60'000'000;
constexpr size_t kReportLinesMax = 32;
constexpr std::string_view kRequestNames[kEtcdRequestKinds] = {"a read", "a change",
                                                               "a request for a lease", "a watch"};

std::string_view remedy(const EtcdError& error) {
  const auto says = [&](std::string_view text) {
    return error.message.find(text) != std::string::npos;
  };
  if (error.code == EtcdCode::kPermissionDenied) {
    return "; grant cluster-etcd-user `readwrite` for the keys below bloomery/<cluster-name>/";
  }
  if (says("authentication failed") || says("user name is empty")) {
    return "; correct cluster-etcd-user and cluster-etcd-password";
  }
  if (says("database space exceeded")) {
    return "; compact and defragment etcd, then run `etcdctl alarm disarm`";
  }
  return "";
}

// Returns whether the node is prepared for the error: its lease has ended, or the revisions that
// its watch asks for were compacted.
bool is_usual(EtcdRequest request, const EtcdError& error) {
  if (request == EtcdRequest::kWatch) return error.code == EtcdCode::kOutOfRange;
  return error.code == EtcdCode::kNotFound &&
         error.message.find("lease not found") != std::string::npos;
}

}  // namespace

void EtcdReport::record(EtcdRequest request, const EtcdError& error, int64_t now_us) {
  if (is_usual(request, error)) return;
  Kind& kind = kinds_[static_cast<size_t>(request)];
  if (error.code == EtcdCode::kOk) {
    kind = Kind();
    const bool fails =
        std::ranges::any_of(kinds_, [=](const Kind& other) { return other.failed_us > now_us; });
    if (is_reported_ && !fails) {
      is_reported_ = false;
      log_notice("Cluster: etcd accepts this node's requests again");
    }
    return;
  }
  kind.failed_us = now_us + kReportAgainUs;
  if (!is_refusal(error.code)) {
    return log(fmt::format("Cluster: etcd does not answer: {}", error.message), false, now_us);
  }
  kind.refused_us = kind.failed_us;
  log(fmt::format("Cluster: etcd refuses {}: {}{}", kRequestNames[static_cast<size_t>(request)],
                  error.message, remedy(error)),
      true, now_us);
}

void EtcdReport::log(const std::string& line, bool is_warning, int64_t now_us) {
  std::erase_if(logged_us_,
                [=](const auto& logged) { return logged.second <= now_us - kReportAgainUs; });
  is_reported_ = true;
  if (logged_us_.size() == kReportLinesMax || !logged_us_.emplace(line, now_us).second) return;
  if (is_warning) {
    log_warning("{}", line);
  } else {
    log_notice("{}", line);
  }
}

}  // namespace server::cluster

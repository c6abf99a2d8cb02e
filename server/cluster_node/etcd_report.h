// SPDX-License-Identifier: MIT
//
// EtcdReport: logs the errors of etcd, and knows whether etcd refuses this node's requests. A node
// retries its requests several times a second, so the same line is logged once a minute.
//
// Invariants: a request that etcd has executed, and a lease or revision that no longer exists, are
// no errors.
// Thread safety: belongs to one thread; times are monotonic, in microseconds, given by the caller.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "server/cluster/etcd_client.h"

namespace server::cluster {

class EtcdReport {
 public:
  // Called with the result of each request. The code of `error` is kOk if etcd has executed it.
  void record(EtcdRequest request, const EtcdError& error, int64_t now_us);
  // Returns false if etcd has refused the last request of some kind. A node may have no further
  // request of that kind, so a refusal counts for a minute.
  bool accepts(int64_t now_us) const {
    return std::ranges::none_of(kinds_, [=](const Kind& kind) { return kind.refused_us > now_us; });
  }

 private:
  struct Kind {
    int64_t failed_us = 0;   // the time until which the last failure counts; 0 after a success
    int64_t refused_us = 0;  // the same for the last refusal
  };

  void log(const std::string& line, bool is_warning, int64_t now_us);

  std::array<Kind, kEtcdRequestKinds> kinds_;
  std::map<std::string, int64_t> logged_us_;  // when each line was logged
  bool is_reported_ = false;                  // true after an error, until etcd accepts again
};

}  // namespace server::cluster

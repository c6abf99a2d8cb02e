// SPDX-License-Identifier: MIT
//
// Availability: the conditions that restrict service: loading, a disk that accepts no writes,
// replication, membership of a cluster.
//
// Invariants: any() only reads one atomic variable, so that every command can call it.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace server {

inline constexpr std::string_view kServerIsLoading =
    "LOADING Redis is loading the dataset in memory";
inline constexpr std::string_view kLinkIsDown =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
inline constexpr std::string_view kReplicaIsReadOnly =
    "READONLY You can't write against a read only replica.";
inline constexpr std::string_view kNotEnoughReplicas =
    "NOREPLICAS Not enough good replicas to write.";

class Availability {
 public:
  enum Trouble : uint32_t {
    kLoading = 1U << 0,
    kAppendLogFails = 1U << 1,
    kSnapshotFailed = 1U << 2,
    kTooFewReplicas = 1U << 3,
    kReadOnlyReplica = 1U << 4,
    kStaleReplica = 1U << 5,
    // True if this server is a node of a cluster. The flag does not change while the process runs.
    kInCluster = 1U << 6,
  };

  bool any() const { return troubles_.load(std::memory_order_relaxed) != 0; }
  // Returns whether service is restricted by any condition other than kInCluster.
  bool any_passing() const {
    return (troubles_.load(std::memory_order_relaxed) & ~uint32_t{kInCluster}) != 0;
  }
  bool has(Trouble trouble) const {
    return (troubles_.load(std::memory_order_acquire) & trouble) != 0;
  }
  void begin(Trouble trouble) { troubles_.fetch_or(trouble, std::memory_order_acq_rel); }
  void end(Trouble trouble) { troubles_.fetch_and(~uint32_t{trouble}, std::memory_order_acq_rel); }
  void set(Trouble trouble, bool is_so) { is_so ? begin(trouble) : end(trouble); }

  // Records that the append log has failed. Returns true if it had worked until now.
  bool append_log_failed(const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    append_log_reason_ = reason;
    return (troubles_.fetch_or(kAppendLogFails, std::memory_order_acq_rel) & kAppendLogFails) == 0;
  }

  std::string append_log_reason() const {
    const std::scoped_lock lock(mutex_);
    return append_log_reason_;
  }

  // Returns the reason why writes are rejected now; empty if they are accepted.
  std::string write_refusal(bool stops_on_snapshot_error) const {
    if (has(kAppendLogFails)) {
      return "MISCONF Errors writing to the AOF file: " + append_log_reason();
    }
    if (has(kSnapshotFailed) && stops_on_snapshot_error) {
      return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
             "persist to disk. Commands that may modify the data set are disabled, because this "
             "instance is configured to report errors during writes if RDB snapshotting fails "
             "(stop-writes-on-bgsave-error option). Please check the Redis logs for details about "
             "the RDB error.";
    }
    return "";
  }

 private:
  std::atomic<uint32_t> troubles_{0};
  mutable std::mutex mutex_;  // this mutex guards append_log_reason_
  std::string append_log_reason_;
};

}  // namespace server

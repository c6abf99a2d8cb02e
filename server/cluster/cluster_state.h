// SPDX-License-Identifier: MIT
//
// ClusterState: the newest View and the Service, which the cluster's thread publishes to the
// threads that serve clients. The Service states whether this server may serve the slots that it
// leads.
//
// Invariants: without a cluster there is no view, and no thread reads one. A thread sees views in
// the order in which they were published.
// Thread safety: publish() and the setters may be called by one thread at a time. Functions with a
// thread index may be called by that thread only, all others by any thread.
// Source: readers compare versions instead of taking locks, as in server/session/acl/users.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/keyspace/slot.h"
#include "server/cluster/cluster_counters.h"
#include "server/cluster/permit_clock.h"

namespace server::cluster {

class View;

// Whether this server serves the slots of its shard.
enum class Service : uint8_t {
  kDown,  // this server does not lead the shard, or has no permit to acknowledge writes

  // Clients wait, because this server is handing the shard over or is taking it over. Clients of a
  // new leader also wait while the former leader may still have a permit.
  kHeld,
  kUp,
};

class ClusterState {
 public:
  explicit ClusterState(size_t io_thread_count) : seen_(io_thread_count + 1) {}

  // The thread index of the admin port's thread; the I/O threads have the indices below it.
  size_t admin_thread() const { return seen_.size() - 1; }

  void publish(std::shared_ptr<const View> view);
  // Returns whether this server is a node of a cluster.
  bool is_on() const { return version_.load(std::memory_order_relaxed) != 0; }
  // A View and the Service that belonged together at one moment.
  struct Observation {
    const View& view;
    Service service;
  };
  // Returns the newest View together with the Service of that moment. Two separate reads could
  // combine an old Service with a new View, so a new leader would seem to have no permit. The
  // reference is valid until the thread calls look() again. REQUIRES: publish() was called.
  Observation look(size_t thread_index) {
    Seen& seen = seen_[thread_index];
    if (seen.version != version_.load(std::memory_order_acquire)) [[unlikely]]
      refresh(seen);
    return {*seen.view, seen.service};
  }
  const View& view_of(size_t thread_index) { return look(thread_index).view; }
  // Returns whether this server serves every command whose keys lie in the slot. As in route(), the
  // server must lead the slot's shard, and its Service must be kUp. Returns false until the thread
  // has called look() for the newest view.
  bool serves(size_t thread_index, unsigned slot) const {
    const Seen& seen = seen_[thread_index];
    return seen.version == version_.load(std::memory_order_acquire) && (*seen.served_slots)[slot];
  }
  // Returns the newest view; null if this server is not a node of a cluster.
  std::shared_ptr<const View> latest() const {
    const std::scoped_lock lock(mutex_);
    return view_;
  }

  Service service() const { return service_.load(std::memory_order_relaxed); }
  void set_service(Service service);

  // Permits replies to writes to be sent while from_us <= permit_clock_us() < until_us.
  void set_permit(int64_t from_us, int64_t until_us) {
    if (from_us != permit_from_us_.load(std::memory_order_relaxed)) {
      // A reader must never combine the end of the new permit with the beginning of the old one.
      // permits_replies() reads the end first.
      permit_until_us_.store(0, std::memory_order_release);
      permit_from_us_.store(from_us, std::memory_order_release);
    }
    permit_until_us_.store(until_us, std::memory_order_release);
  }
  int64_t permit_until_us() const { return permit_until_us_.load(std::memory_order_acquire); }
  bool permits_replies(int64_t now_us) const {
    return now_us < permit_until_us() && permit_from_us_.load(std::memory_order_acquire) <= now_us;
  }

  // set_leader_silence() records how long ago this replica received bytes from its leader.
  // leader_silence_us() returns the time that has passed since those bytes. While the link is down,
  // `silence_us` is the largest int64_t, and leader_silence_us() returns the time since the machine
  // started.
  void set_leader_silence(int64_t silence_us) {
    const int64_t now_us = permit_clock_us();
    leader_heard_us_.store(silence_us > now_us ? 0 : now_us - silence_us,
                           std::memory_order_relaxed);
  }
  int64_t leader_silence_us() const {
    return permit_clock_us() - leader_heard_us_.load(std::memory_order_relaxed);
  }

  // With `cluster-write-acks insync`, the reply to a write is sent only after the members with
  // these ids have acknowledged the write.
  using Ids = std::set<std::string, std::less<>>;
  std::shared_ptr<const Ids> required_acks() const {
    const std::scoped_lock lock(mutex_);
    return required_acks_;
  }
  // Sets the ids that required_acks() returns. Returns whether the ids have changed.
  bool require_acks(const Ids& ids) {
    const std::scoped_lock lock(mutex_);
    if (ids == *required_acks_) return false;
    required_acks_ = std::make_shared<const Ids>(ids);
    return true;
  }

  // Returns the counters that CLUSTER INFO and metrics show.
  ClusterCounters& counters() { return counters_; }
  const ClusterCounters& counters() const { return counters_; }
  bool etcd_is_up() const { return etcd_is_up_.load(std::memory_order_relaxed); }
  void set_etcd_up(bool is_up) { etcd_is_up_.store(is_up, std::memory_order_relaxed); }

 private:
  static constexpr size_t kCacheLine = 64;
  static const core::keyspace::SlotSet kNoSlots;
  struct alignas(kCacheLine) Seen {
    uint64_t version = 0;
    Service service = Service::kDown;
    std::shared_ptr<const View> view;
    const core::keyspace::SlotSet* served_slots =
        &kNoSlots;  // slots that this node leads and serves; empty unless the Service is kUp
  };

  void refresh(Seen& seen) const;

  // The number of the last published View or Service; 0 before the first View.
  std::atomic<uint64_t> version_{0};
  std::atomic<Service> service_{Service::kDown};
  std::atomic<int64_t> permit_from_us_{0};
  std::atomic<int64_t> permit_until_us_{0};
  std::atomic<bool> etcd_is_up_{false};
  // The time, by permit_clock_us(), at which bytes last arrived from the leader.
  std::atomic<int64_t> leader_heard_us_{0};
  ClusterCounters counters_;
  mutable std::mutex mutex_;  // this mutex guards view_, required_acks_, and changes of service_
  std::shared_ptr<const View> view_;
  std::shared_ptr<const Ids> required_acks_ = std::make_shared<const Ids>();
  std::vector<Seen> seen_;  // the views last seen by the threads, by thread index
};

}  // namespace server::cluster

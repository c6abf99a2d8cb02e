// SPDX-License-Identifier: MIT
#include "server/cluster_node/presence.h"

#include <algorithm>
#include <utility>

#include "server/base/log/log.h"
#include "server/cluster/permit_clock.h"

namespace server::cluster {
namespace {

constexpr std::chrono::milliseconds kPresenceRetry{200};
constexpr int kLeasesOfTheDead = 4;
constexpr std::chrono::minutes kLogAgain{1};

int64_t in_us(std::chrono::microseconds duration) {
  return duration.count();
}

}  // namespace

Presence::Presence(boost::asio::io_context& io, EtcdClient& client, LeaseSettings settings,
                   std::function<bool()> may_appear)
    : client_(client),
      settings_(std::move(settings)),
      may_appear_(std::move(may_appear)),
      timer_(io) {}

void Presence::step() {
  if (has_left_) return;
  if (lease_ == 0) return ask_lease();
  if (mod_revision_ == 0 && may_appear_()) return appear();
  keep_alive();
}

void Presence::step_in(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) step();
  });
}

void Presence::ask_lease() {
  const auto ttl_s = static_cast<uint64_t>((settings_.timeout.count() + 999) / 1000);
  client_.grant(ttl_s, [this, sent_us = permit_clock_us()](const auto& result) {
    etcd_answers_ = result.answered();
    if (!result.answered()) return step_in(kPresenceRetry);
    record_lease(sent_us);
    lease_ = result.reply.lease;
    step();
  });
}

void Presence::appear() {
  const EtcdTxn txn{{EtcdCompare::absent(settings_.key)},
                    {EtcdPut{settings_.key, settings_.value, lease_}},
                    {EtcdRange{settings_.key}}};
  client_.txn(txn, [this](const EtcdResult<EtcdTxnReply>& result) {
    etcd_answers_ = result.answered();
    if (result.answered()) {
      took(result.reply);
    } else if (result.error.code == EtcdCode::kNotFound) {
      lose();
    }
    step_in(kPresenceRetry);
  });
}

void Presence::took(const EtcdTxnReply& reply) {
  if (reply.succeeded) {
    mod_revision_ = reply.revision;
    barred_us_ = twin_logged_us_ = 0;
    return;
  }
  const EtcdKeyValue* const there =
      reply.responses.empty() ? nullptr : reply.responses[0].find(settings_.key);
  if (there == nullptr) return;
  // An earlier attempt of this process, whose outcome was unknown, has written the key.
  if (there->lease == lease_) {
    mod_revision_ = there->mod_revision;
  } else {
    wait_for_other();
  }
}

void Presence::wait_for_other() {
  const int64_t now_us = permit_clock_us();
  if (barred_us_ == 0) {
    barred_us_ = now_us;
    return log_warning(
        "Cluster: {} is there already, from this node's last run or from another process with its "
        "id; this process leads nothing until the key is gone",
        settings_.key);
  }
  // The lease of a dead process ends within kLeasesOfTheDead node timeouts, even if etcd changes
  // its own leader. If the key exists for longer, another process with this node's id is alive,
  // which is an error.
  const bool may_be_dead = now_us - barred_us_ < kLeasesOfTheDead * in_us(settings_.timeout);
  const bool is_logged = twin_logged_us_ != 0 && now_us - twin_logged_us_ < in_us(kLogAgain);
  if (may_be_dead || is_logged) return;
  twin_logged_us_ = now_us;
  log_error(
      "Cluster: another process with this node's id is alive ({}): this one leads nothing; stop "
      "one of them, or give this one a data directory and a cluster-node-id of its own",
      settings_.key);
}

void Presence::keep_alive() {
  client_.keep_alive(lease_, [this, sent_us = permit_clock_us()](const auto& result) {
    etcd_answers_ = result.answered();
    if (result.answered()) result.reply.ttl_s == 0 ? lose() : record_lease(sent_us);
    const bool is_settled = result.answered() && mod_revision_ != 0;
    step_in(is_settled ? std::max(settings_.timeout / 4, kPresenceRetry / 2) : kPresenceRetry);
  });
}

// Records the end of the lease. `sent_us` is the time at which the request was sent to etcd.
void Presence::record_lease(int64_t sent_us) {
  lease_until_us_ = sent_us + in_us(settings_.timeout);
}

void Presence::lose() {
  log_notice("Cluster: the lease of {} has ended", settings_.key);
  lease_ = 0;
  mod_revision_ = 0;
}

void Presence::leave(std::function<void()> done) {
  has_left_ = true;
  timer_.cancel();
  if (lease_ == 0) return done();
  client_.revoke(lease_, [done = std::move(done)](const EtcdResult<EtcdRevokeReply>&) { done(); });
}

}  // namespace server::cluster

// SPDX-License-Identifier: MIT
#include "server/cluster/node/presence.h"

#include <algorithm>
#include <utility>

#include "server/process/log.h"

namespace server::cluster {
namespace {

constexpr std::chrono::milliseconds kPresenceRetry{200};

}  // namespace

Presence::Presence(boost::asio::io_context& io, EtcdClient& client, Terms terms,
                   std::function<bool()> may_appear)
    : client_(client), terms_(std::move(terms)), may_appear_(std::move(may_appear)), timer_(io) {}

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
  const auto ttl_s = static_cast<uint64_t>((terms_.timeout.count() + 999) / 1000);
  client_.grant(ttl_s, [this](const EtcdResult<EtcdLeaseReply>& result) {
    etcd_answers_ = result.answered();
    if (!result.answered()) return step_in(kPresenceRetry);
    lease_ = result.reply.lease;
    step();
  });
}

void Presence::appear() {
  EtcdTxn txn;
  txn.compares = {EtcdCompare::absent(terms_.key)};
  txn.success = {EtcdPut{terms_.key, terms_.value, lease_}};
  txn.failure = {EtcdRange{terms_.key}};
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
    has_warned_ = false;
    return;
  }
  const EtcdKeyValue* const there =
      reply.responses.empty() ? nullptr : reply.responses[0].find(terms_.key);
  if (there == nullptr) return;
  // An earlier try of this process, whose outcome was not known.
  if (there->lease == lease_) {
    mod_revision_ = there->mod_revision;
  } else if (!std::exchange(has_warned_, true)) {
    log_warning(
        "Cluster: {} is there already: of this node's last run, or of another process with its id",
        terms_.key);
  }
}

void Presence::keep_alive() {
  client_.keep_alive(lease_, [this](const EtcdResult<EtcdLeaseReply>& result) {
    etcd_answers_ = result.answered();
    if (result.answered() && result.reply.ttl_s == 0) lose();
    const bool is_settled = result.answered() && mod_revision_ != 0;
    step_in(is_settled ? std::max(terms_.timeout / 4, kPresenceRetry / 2) : kPresenceRetry);
  });
}

void Presence::lose() {
  log_notice("Cluster: the lease of {} has ended", terms_.key);
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

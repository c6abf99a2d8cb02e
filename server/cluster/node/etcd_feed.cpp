// SPDX-License-Identifier: MIT
#include "server/cluster/node/etcd_feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/process/log.h"

namespace server::cluster {
namespace {

constexpr std::chrono::milliseconds kFeedRetry{200};

}  // namespace

TopologyCheck check_of(uint64_t known_revision, const EtcdKeyValue* stored) {
  TopologyCheck check{known_revision, ReadOutcome::kUnchanged};
  if (stored == nullptr) {
    check.outcome = ReadOutcome::kAbsent;
  } else if (stored->mod_revision != known_revision) {
    auto parsed = parse_topology(stored->value);
    check.outcome = parsed ? ReadOutcome::kChanged : ReadOutcome::kInvalid;
    if (parsed) check.version = {*std::move(parsed), stored->mod_revision};
  }
  return check;
}

EtcdFeed::EtcdFeed(boost::asio::io_context& io, EtcdClient& client, const EtcdKeys& keys,
                   std::chrono::milliseconds check_interval, Handlers handlers)
    : client_(client),
      keys_(keys),
      check_interval_(check_interval),
      handlers_(std::move(handlers)),
      timer_(io) {}

void EtcdFeed::read() {
  EtcdTxn txn;
  txn.success = {EtcdRange{keys_.topology}, EtcdRange::prefix(keys_.alive_prefix)};
  const uint64_t known_revision = handlers_.known_revision();
  const uint64_t floor = store_revision_;
  client_.txn(txn, [this, known_revision, floor](const EtcdResult<EtcdTxnReply>& result) {
    if (!result.answered() || result.reply.responses.size() != 2) return read_in(kFeedRetry);
    const EtcdTxnReply& reply = result.reply;
    if (has_gone_back(reply, floor)) {
      client_.cancel(std::exchange(watch_, 0));
      revision_ = 0;
    }
    const EtcdKeyValue* const stored = reply.responses[0].find(keys_.topology);
    handlers_.on_check(check_of(known_revision, stored));
    take_all(reply);
    read_in(check_interval_);
  });
}

bool EtcdFeed::has_gone_back(const EtcdTxnReply& reply, uint64_t floor) {
  const bool is_another = !cluster_id_.empty() && reply.cluster_id != cluster_id_;
  if (reply.cluster_id != cluster_id_) handlers_.on_etcd(reply.cluster_id);
  cluster_id_ = reply.cluster_id;
  if (!is_another && reply.revision >= floor) return false;
  log_warning("Cluster: etcd was restored or replaced: it is at revision {} and was at {}",
              reply.revision, floor);
  return true;
}

void EtcdFeed::read_in(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) read();
  });
}

void EtcdFeed::take_all(const EtcdTxnReply& reply) {
  // The watch has reported later changes meanwhile.
  if (watch_ != 0 && reply.revision < store_revision_) return;
  IdSet alive;
  for (const EtcdKeyValue& one : reply.responses[1].kvs) {
    alive.insert(one.key.substr(keys_.alive_prefix.size()));
  }
  const EtcdKeyValue* const stored = reply.responses[0].find(keys_.topology);
  const bool is_news = alive != alive_ || (stored != nullptr && stored->mod_revision > revision_);
  if (watch_ != 0 && !is_news) return;
  if (watch_ != 0) {
    log_notice("Cluster: the watch of etcd missed changes that a read shows: it is started again");
  }
  watch_from(reply.revision + 1);
  alive_ = std::move(alive);
  if (stored != nullptr) take_topology(*stored);
  handlers_.on_alive(alive_);
}

void EtcdFeed::watch_from(uint64_t revision) {
  client_.cancel(std::exchange(watch_, 0));
  const EtcdRange all = EtcdRange::prefix(keys_.prefix);
  watch_ = client_.watch({all.key, all.range_end, revision},
                         [this](const EtcdWatchNews& news) { take_news(news); });
  store_revision_ = revision - 1;
}

void EtcdFeed::take_news(const EtcdWatchNews& news) {
  if (const auto* end = std::get_if<EtcdWatchEnd>(&news)) {
    log_notice("Cluster: the watch of etcd ends: {}", end->error.message);
    watch_ = 0;
    return read_in(kFeedRetry);
  }
  const auto& changes = std::get<EtcdChanges>(news);
  store_revision_ = std::max(store_revision_, changes.revision);
  for (const EtcdEvent& event : changes.events) take_event(event);
}

void EtcdFeed::take_event(const EtcdEvent& event) {
  const std::string& key = event.kv.key;
  if (key == keys_.topology)
    return event.deleted ? handlers_.on_deleted() : take_topology(event.kv);
  if (!key.starts_with(keys_.alive_prefix)) return;
  const std::string id = key.substr(keys_.alive_prefix.size());
  if (event.deleted) {
    alive_.erase(id);
  } else {
    alive_.insert(id);
  }
  handlers_.on_alive(alive_);
}

void EtcdFeed::take_topology(const EtcdKeyValue& stored) {
  if (stored.mod_revision <= revision_) return;
  revision_ = stored.mod_revision;
  auto parsed = parse_topology(stored.value);
  if (!parsed) {
    log_warning("Cluster: the topology in etcd is not valid: {}", parsed.error().message);
    return;
  }
  handlers_.on_topology({*std::move(parsed), stored.mod_revision});
}

}  // namespace server::cluster

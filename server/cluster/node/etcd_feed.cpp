// SPDX-License-Identifier: MIT
#include "server/cluster/node/etcd_feed.h"

#include <chrono>
#include <utility>

#include "server/process/log.h"

namespace server::cluster {
namespace {

constexpr std::chrono::milliseconds kFeedRetry{200};

}  // namespace

EtcdFeed::EtcdFeed(boost::asio::io_context& io, EtcdClient& client, const EtcdKeys& keys,
                   Handlers handlers)
    : client_(client), keys_(keys), handlers_(std::move(handlers)), timer_(io) {}

void EtcdFeed::read() {
  EtcdTxn txn;
  txn.success = {EtcdRange{keys_.topology}, EtcdRange::prefix(keys_.alive_prefix)};
  client_.txn(txn, [this](const EtcdResult<EtcdTxnReply>& result) {
    if (!result.answered() || result.reply.responses.size() != 2) return read_later();
    take_all(result.reply);
    const EtcdRange all = EtcdRange::prefix(keys_.prefix);
    client_.watch({all.key, all.range_end, result.reply.revision + 1},
                  [this](const EtcdWatchNews& news) { take_news(news); });
  });
}

void EtcdFeed::read_later() {
  timer_.expires_after(kFeedRetry);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) read();
  });
}

void EtcdFeed::take_all(const EtcdTxnReply& reply) {
  alive_.clear();
  for (const EtcdKeyValue& one : reply.responses[1].kvs) {
    alive_.insert(one.key.substr(keys_.alive_prefix.size()));
  }
  if (const EtcdKeyValue* stored = reply.responses[0].find(keys_.topology)) take_topology(*stored);
  handlers_.on_alive(alive_);
}

void EtcdFeed::take_news(const EtcdWatchNews& news) {
  if (const auto* end = std::get_if<EtcdWatchEnd>(&news)) {
    log_notice("Cluster: the watch of etcd ends: {}", end->error.message);
    return read_later();
  }
  for (const EtcdEvent& event : std::get<EtcdChanges>(news).events) take_event(event);
}

void EtcdFeed::take_event(const EtcdEvent& event) {
  const std::string& key = event.kv.key;
  if (key == keys_.topology) {
    if (!event.deleted) take_topology(event.kv);
    return;
  }
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
  auto parsed = parse_topology(stored.value);
  if (!parsed) {
    log_warning("Cluster: the topology in etcd is not valid: {}", parsed.error().message);
    return;
  }
  revision_ = stored.mod_revision;
  handlers_.on_topology({*std::move(parsed), stored.mod_revision});
}

}  // namespace server::cluster

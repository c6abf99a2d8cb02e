// SPDX-License-Identifier: MIT
#include "server/cluster_node/etcd_feed.h"

#include <algorithm>
#include <utility>

#include "server/base/log/log.h"

namespace server::cluster {
namespace {

constexpr std::chrono::milliseconds kFeedRetry{200};
// Indexes of the key ranges in the reply to the transaction of read(). kAliveRange has the keys
// below alive/. This range is missing in transactions that contain only the operations of ranges().
constexpr size_t kTopologyRange = 0;
constexpr size_t kSlotsRange = 1;
constexpr size_t kAliveRange = 2;

const EtcdKeyValue* found_in(const EtcdTxnReply& reply, size_t index, const std::string& key) {
  return index < reply.responses.size() ? reply.responses[index].find(key) : nullptr;
}

}  // namespace

EtcdFeed::EtcdFeed(boost::asio::io_context& io, EtcdClient& client, const EtcdKeys& keys,
                   std::chrono::milliseconds check_interval, Handlers handlers)
    : client_(client),
      keys_(keys),
      check_interval_(check_interval),
      handlers_(std::move(handlers)),
      timer_(io) {}

std::vector<EtcdOperation> EtcdFeed::ranges() const {
  return {EtcdRange{keys_.topology}, EtcdRange{keys_.slots}};
}

TopologyCheck EtcdFeed::check_of(uint64_t known_revision, const EtcdTxnReply& reply) {
  const EtcdKeyValue* const stored = found_in(reply, kTopologyRange, keys_.topology);
  if (stored == nullptr) return {known_revision, ReadOutcome::kAbsent};
  if (stored->mod_revision == known_revision && !is_recovered(*stored)) {
    return {known_revision, ReadOutcome::kUnchanged};
  }
  take_record(found_in(reply, kSlotsRange, keys_.slots));
  auto accepted = accept(*stored);
  if (!accepted) return {known_revision, ReadOutcome::kInvalid};
  return {known_revision, ReadOutcome::kChanged, {*std::move(accepted), stored->mod_revision}};
}

// Returns whether the stored topology must replace the known one, even if they have the same
// revision. Two topologies can have the same revision if etcd was restored from a backup, and
// `bloomery-cluster recover` then wrote a topology.
bool EtcdFeed::is_recovered(const EtcdKeyValue& stored) const {
  const auto parsed = parse_topology(stored.value);
  return parsed && supersedes({*parsed, stored.mod_revision}, handlers_.known());
}

void EtcdFeed::take(const EtcdTxnReply& reply) {
  take_record(found_in(reply, kSlotsRange, keys_.slots));
  const EtcdKeyValue* const stored = found_in(reply, kTopologyRange, keys_.topology);
  if (stored != nullptr) take_topology(*stored);
}

core::Result<Topology> EtcdFeed::accept(const EtcdKeyValue& stored) const {
  auto parsed = parse_topology(stored.value);
  if (!parsed) return parsed;
  if (auto checked = record_.check(*parsed, handlers_.known()); !checked) return checked.error();
  return parsed;
}

void EtcdFeed::take_record(const EtcdKeyValue* stored) {
  record_.checksum = stored == nullptr ? "" : stored->value;
}

void EtcdFeed::read() {
  EtcdTxn txn;
  txn.success = ranges();
  txn.success.emplace_back(EtcdRange::prefix(keys_.alive_prefix));
  const uint64_t known_revision = handlers_.known().revision;
  const uint64_t floor = store_revision_;
  client_.txn(txn, [this, known_revision, floor](const EtcdResult<EtcdTxnReply>& result) {
    if (!result.answered() || result.reply.responses.size() != kAliveRange + 1)
      return read_in(kFeedRetry);
    const EtcdTxnReply& reply = result.reply;
    if (has_gone_back(reply, floor)) {
      client_.cancel(std::exchange(watch_, 0));
      revision_ = 0;
    }
    handlers_.on_check(check_of(known_revision, reply));
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
  // A reply is ignored if its revision is lower than a revision that the watch has reported.
  if (watch_ != 0 && reply.revision < store_revision_) return;
  IdSet alive;
  for (const EtcdKeyValue& one : reply.responses[kAliveRange].kvs) {
    alive.insert(one.key.substr(keys_.alive_prefix.size()));
  }
  const EtcdKeyValue* const stored = found_in(reply, kTopologyRange, keys_.topology);
  const bool is_news = alive != alive_ || (stored != nullptr && stored->mod_revision > revision_);
  if (watch_ != 0 && !is_news) return;
  if (watch_ != 0) {
    log_notice("Cluster: the watch of etcd missed changes that a read shows: it is started again");
  }
  watch_from(reply.revision + 1);
  alive_ = std::move(alive);
  take(reply);
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
  if (const auto* error = std::get_if<EtcdError>(&news)) {
    if (error->code == EtcdCode::kOutOfRange) {
      log_notice("Cluster: the watch of etcd ends: {}", error->message);
    }
    watch_ = 0;
    return read_in(kFeedRetry);
  }
  const auto& changes = std::get<EtcdChanges>(news);
  store_revision_ = std::max(store_revision_, changes.revision);
  // A set of changes may list the key `slots` after the topology. The key holds the checksum with
  // which the topology is checked (SlotRecord), so the key is handled first.
  for (const EtcdEvent& event : changes.events) {
    if (event.kv.key == keys_.slots) take_record(event.deleted ? nullptr : &event.kv);
  }
  for (const EtcdEvent& event : changes.events) take_event(event);
}

void EtcdFeed::take_event(const EtcdEvent& event) {
  const std::string& key = event.kv.key;
  if (key == keys_.topology)
    return event.deleted ? handlers_.on_deleted() : take_topology(event.kv);
  if (key == keys_.slots && refused_) {
    revision_ = 0;
    return take_topology(EtcdKeyValue(*refused_));
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
  revision_ = stored.mod_revision;
  auto accepted = accept(stored);
  refused_.reset();
  if (!accepted) {
    refused_ = stored;
    log_error(
        "Cluster: the topology in etcd is refused, revision {}: {}; this node keeps revision {}",
        stored.mod_revision, core::without_code(accepted.error().message),
        handlers_.known().revision);
    return;
  }
  handlers_.on_topology({*std::move(accepted), stored.mod_revision});
}

}  // namespace server::cluster

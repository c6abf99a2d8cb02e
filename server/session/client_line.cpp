// SPDX-License-Identifier: MIT
#include "server/session/client_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/clock.h"

namespace server {
namespace {

// Returns the letters of the `flags` field; "N" if no flag is set.
std::string flag_letters(const Client& client) {
  std::string letters;
  const Peer peer = client.peer;
  if (peer == Peer::kReplica) letters += 'S';
  if (peer == Peer::kMonitor) letters += 'O';
  if (peer == Peer::kLeader) letters += 'M';
  if (client.subscriptions.any()) letters += 'P';
  if (client.wait != ClientWait::kNone) letters += 'b';
  if (client.queued_commands >= 0) letters += 'x';
  if (client.subscriptions.tracks) letters += 't';
  if (client.subscriptions.redirect_is_broken) letters += 'R';
  if (client.subscriptions.is_broadcast) letters += 'B';
  if (client.reads_replicas) letters += 'r';
  if (client.kill_requested.load(std::memory_order_relaxed)) letters += 'A';
  if (client.socket.is_unix) letters += 'U';
  if (client.no_evict) letters += 'e';
  if (client.no_touch) letters += 'T';
  return letters.empty() ? "N" : letters;
}

// Returns the id of the client that CLIENT TRACKING redirects to; 0 for none, -1 while tracking is
// off.
int64_t redirect_of(const Client& client) {
  const SubscriptionFigures& subscriptions = client.subscriptions;
  return subscriptions.tracks ? static_cast<int64_t>(subscriptions.redirect.get()) : -1;
}

int64_t seconds_since(int64_t then_us, int64_t now_us) {
  // Another thread may have stored `then_us` after the caller has read the clock. The difference is
  // then negative, and the result is 0.
  return std::max<int64_t>(0, (now_us - then_us) / core::kSecondUs);
}

}  // namespace

std::string client_line(const Client& client, int64_t now_us, size_t argument_bytes) {
  const ClientNames::Values names = client.names.get();
  const std::string* command = client.traffic.last_command;
  const uint64_t query = client.query_buffer_bytes;
  const uint64_t query_free = client.query_buffer_free_bytes;
  const uint64_t output = client.output_buffer_bytes;
  std::string line;
  const auto out = std::back_inserter(line);
  fmt::format_to(out, "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={}",
                 client.id, client.address, client.local_address, client.socket.descriptor,
                 names.name, seconds_since(client.created_us, now_us),
                 seconds_since(client.last_interaction_us, now_us), flag_letters(client),
                 int{client.database});
  const SubscriptionFigures& subscriptions = client.subscriptions;
  fmt::format_to(out, " sub={} psub={} ssub={} multi={} qbuf={} qbuf-free={}",
                 subscriptions.count(SubscriptionKind::kChannel),
                 subscriptions.count(SubscriptionKind::kPattern),
                 subscriptions.count(SubscriptionKind::kShardChannel), client.queued_commands,
                 query, query_free);
  // The arguments are views of the query buffer, so the field tot-mem already includes them.
  argument_bytes += client.argument_bytes;
  fmt::format_to(out, " argv-mem={} multi-mem={} rbs={} rbp={} obl={} oll=0 omem={} tot-mem={}",
                 argument_bytes, client.queued_bytes, client.output_buffer_capacity_bytes,
                 client.output_buffer_peak_bytes, output, output, client.published_memory_bytes());
  fmt::format_to(out, " events={} cmd={} user={} redir={} resp={}", output == 0 ? "r" : "rw",
                 command == nullptr ? "NULL" : *command, names.user, redirect_of(client),
                 static_cast<int>(protocol::RespVersion{client.resp}));
  // The fields that Redis added after 7.0 come last, in the order of the Redis versions that added
  // them.
  fmt::format_to(out, " lib-name={} lib-ver={} watch={} tot-net-in={} tot-net-out={} tot-cmds={}\n",
                 names.library, names.library_version, client.watched_keys,
                 client.traffic.received_bytes, client.traffic.sent_bytes, client.traffic.commands);
  return line;
}

}  // namespace server

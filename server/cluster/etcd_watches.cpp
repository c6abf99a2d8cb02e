// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_watches.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

namespace server::cluster {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds kDelayMin{50};
constexpr milliseconds kDelayMax{1000};

EtcdError lost_connection(const EtcdEndpoint& endpoint, std::string_view message) {
  return {EtcdCode::kUnavailable,
          fmt::format("{}: {}", endpoint.url(), core::without_code(message))};
}

// Why etcd has ended a watch: "rpc error: code = PermissionDenied desc = …", or any text.
EtcdError cancel_error(const EtcdWatchReply& reply) {
  if (reply.compact_revision != 0) {
    return {EtcdCode::kOutOfRange,
            fmt::format("the changes before revision {} are compacted", reply.compact_revision)};
  }
  constexpr std::pair<std::string_view, EtcdCode> kNames[] = {
      {"InvalidArgument", EtcdCode::kInvalidArgument},
      {"PermissionDenied", EtcdCode::kPermissionDenied},
      {"permission denied", EtcdCode::kPermissionDenied},
      {"Unauthenticated", EtcdCode::kUnauthenticated},
  };
  for (const auto& [name, code] : kNames) {
    if (reply.cancel_reason.find(name) != std::string::npos) return {code, reply.cancel_reason};
  }
  return {EtcdCode::kUnavailable, "the watch was canceled: " + reply.cancel_reason};
}

}  // namespace

struct EtcdWatches::Watch {
  Watch(asio::io_context& io, EtcdWatch asked) : request(std::move(asked)), delay(io) {}

  EtcdWatch request;  // its start_revision follows what has been told
  std::function<void(EtcdWatchNews)> handler;
  asio::steady_timer delay;
  milliseconds delay_time = kDelayMin;
  EtcdCalls::Connection connection;
  size_t endpoint = 0;
  bool canceled = false;
  bool begun = false;            // by the connection that it has
  bool asked_new_token = false;  // since it has begun last

  // The handler may cancel the watch, and so end the life of what is captured.
  void tell(EtcdWatchNews news) {
    if (canceled) return;
    const auto keep = handler;
    keep(std::move(news));
  }
};

uint64_t EtcdWatches::start(const EtcdWatch& request, std::function<void(EtcdWatchNews)> handler) {
  auto watch = std::make_shared<Watch>(calls_->io(), request);
  watch->handler = std::move(handler);
  watches_.emplace(++last_number_, watch);
  asio::post(calls_->io(), [self = shared_from_this(), watch] {
    asio::co_spawn(self->calls_->io(), self->run(watch), asio::detached);
  });
  return last_number_;
}

void EtcdWatches::cancel(uint64_t number) {
  const auto found = watches_.find(number);
  if (found == watches_.end()) return;
  const WatchPointer watch = found->second;
  watches_.erase(found);
  watch->canceled = true;
  watch->handler = nullptr;
  watch->delay.cancel();
  if (watch->connection) watch->connection->close();
}

void EtcdWatches::stop() {
  while (!watches_.empty()) cancel(watches_.begin()->first);
}

void EtcdWatches::move() {
  for (const auto& [number, watch] : watches_) {
    if (watch->connection && watch->endpoint != calls_->current()) watch->connection->close();
  }
}

asio::awaitable<void> EtcdWatches::run(WatchPointer watch) {
  const auto self = shared_from_this();  // the client may be destroyed meanwhile
  while (!watch->canceled) {
    watch->begun = false;
    const EtcdError error = co_await follow(watch);
    if (watch->canceled) co_return;
    if (is_final(watch, error)) {
      watch->tell(EtcdWatchEnd{error});
      std::erase_if(watches_, [&](const auto& entry) { return entry.second == watch; });
      co_return;
    }
    const bool moved = watch->endpoint != calls_->current();
    calls_->move_on(watch->endpoint);
    if (watch->begun) watch->delay_time = kDelayMin;
    if (watch->begun && moved) continue;
    watch->delay.expires_after(watch->delay_time);
    watch->delay_time = std::min(2 * watch->delay_time, kDelayMax);
    co_await watch->delay.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

// Whether the caller must hear of it, because another attempt would be in vain.
bool EtcdWatches::is_final(const WatchPointer& watch, const EtcdError& error) {
  const bool denied = error.code == EtcdCode::kPermissionDenied;
  if (!denied && !wants_new_token(error)) return is_refusal(error.code);
  // A token that is too old is told as a permission that is missing.
  if (calls_->options().user.empty() || watch->asked_new_token) return true;
  watch->asked_new_token = true;
  calls_->forget_token();
  return false;
}

asio::awaitable<EtcdError> EtcdWatches::follow(WatchPointer watch) {
  watch->endpoint = calls_->current();
  watch->connection = calls_->make_connection(watch->endpoint);
  const EtcdCalls::Connection connection = watch->connection;
  const EtcdEndpoint& endpoint = calls_->endpoint(watch->endpoint);
  const EtcdError unopened = co_await calls_->open(connection, watch->endpoint);
  if (watch->canceled || unopened.code != EtcdCode::kOk) co_return unopened;

  connection->close_after(calls_->options().call_limit);  // until it has begun
  const std::string request =
      etcd_request(endpoint, "/v3/watch", calls_->token(), etcd_watch_json(watch->request));
  const auto written = co_await connection->write(request);
  if (!written) co_return lost_connection(endpoint, written.error().message);
  const EtcdError error = co_await read_messages(watch);
  connection->close();
  co_return error;
}

asio::awaitable<EtcdError> EtcdWatches::read_messages(WatchPointer watch) {
  const EtcdCalls::Connection connection = watch->connection;
  const EtcdEndpoint& endpoint = calls_->endpoint(watch->endpoint);
  EtcdHttpReader reader(EtcdHttpReader::Kind::kStream);
  while (!reader.is_done()) {
    const auto bytes = co_await connection->read();
    if (watch->canceled) co_return EtcdError{};
    if (!bytes) co_return lost_connection(endpoint, bytes.error().message);
    const auto fed = bytes->empty() ? reader.feed_end() : reader.feed(*bytes);
    for (const std::string& line : reader.take_lines()) {
      const EtcdError error = on_message(watch, line);
      if (watch->canceled || error.code != EtcdCode::kOk) co_return error;
    }
    if (!fed) {
      // Asking once more would bring the same message.
      const bool too_large = reader.has_header() && reader.body().size() > kEtcdReplyBytesMax;
      if (too_large) co_return EtcdError{EtcdCode::kOutOfRange, "too many changes at once"};
      co_return lost_connection(endpoint, fed.error().message);
    }
  }
  if (reader.status() != kHttpOk) co_return parse_etcd_error(reader.status(), reader.body());
  co_return lost_connection(endpoint, "the watch has ended");
}

EtcdError EtcdWatches::on_message(const WatchPointer& watch, std::string_view line) {
  auto message = parse_etcd_watch(line);
  if (!message) {
    return lost_connection(calls_->endpoint(watch->endpoint), message.error().message);
  }
  if (const auto* error = std::get_if<EtcdError>(&*message)) return *error;
  auto& reply = std::get<EtcdWatchReply>(*message);
  if (reply.canceled) return cancel_error(reply);
  if (reply.created) {
    watch->begun = true;
    watch->asked_new_token = false;
    watch->connection->disarm();
  }
  on_changes(watch, std::move(reply));
  return {};
}

void EtcdWatches::on_changes(const WatchPointer& watch, EtcdWatchReply reply) {
  uint64_t& next = watch->request.start_revision;
  const bool is_progress = reply.events.empty() && !reply.created;
  std::erase_if(reply.events, [&](const EtcdEvent& event) { return event.kv.mod_revision < next; });
  EtcdChanges changes;
  if (!reply.events.empty()) {
    // The header may be ahead of the events.
    changes.revision = reply.events.back().kv.mod_revision;
  } else if (is_progress || next == 0) {
    changes.revision = reply.revision;  // nothing has happened up to it
  } else {
    changes.revision = next - 1;
  }
  next = std::max(next, changes.revision + 1);
  const bool is_news = reply.created || !reply.events.empty();
  changes.events = std::move(reply.events);
  if (is_news) watch->tell(std::move(changes));
}

}  // namespace server::cluster

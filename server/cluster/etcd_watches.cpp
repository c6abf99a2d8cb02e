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
// etcd reports a watch's progress every ten minutes plus up to one minute of random delay.
constexpr std::chrono::minutes kSilenceMax{15};

// Returns the error with which etcd has ended a watch. The code is derived from cancel_reason,
// which may be any text, such as "rpc error: code = PermissionDenied desc = …".
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

  // A new connection watches from request.start_revision, which follows the last reported change.
  EtcdWatch request;
  std::function<void(EtcdWatchNews)> handler;
  asio::steady_timer delay;
  milliseconds delay_time = kDelayMin;
  EtcdCalls::LinkPointer link;
  bool canceled = false;
  bool begun = false;  // true if etcd has confirmed the watch on the present connection

  // True if a new token was requested since etcd last confirmed the watch.
  bool asked_new_token = false;

  // Calls a copy of the handler. The handler may cancel the watch, which destroys `handler` and its
  // captures.
  void deliver(EtcdWatchNews news) {
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
  EtcdCalls::close(watch->link);
}

void EtcdWatches::stop() {
  while (!watches_.empty()) cancel(watches_.begin()->first);
}

void EtcdWatches::move() {
  for (const auto& [number, watch] : watches_) {
    const bool is_elsewhere = watch->link && EtcdCalls::member_of(watch->link) != calls_->current();
    if (is_elsewhere) EtcdCalls::close(watch->link);
  }
}

asio::awaitable<void> EtcdWatches::run(WatchPointer watch) {
  const auto self = shared_from_this();  // keeps this object alive if a handler destroys the client
  while (!watch->canceled) {
    watch->begun = false;
    const EtcdError error = co_await follow(watch);
    if (watch->canceled) co_return;
    if (is_final(watch, error)) {
      watch->deliver(error);
      std::erase_if(watches_, [&](const auto& entry) { return entry.second == watch; });
      co_return;
    }
    const size_t member = EtcdCalls::member_of(watch->link);
    const bool moved = member != calls_->current();
    if (EtcdCalls::was_opened(watch->link)) calls_->move_on(member);
    if (watch->begun) watch->delay_time = kDelayMin;
    if (watch->begun && moved) continue;
    watch->delay.expires_after(watch->delay_time);
    watch->delay_time = std::min(2 * watch->delay_time, kDelayMax);
    co_await watch->delay.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

// Returns whether the error ends the watch, because another attempt would fail, too.
bool EtcdWatches::is_final(const WatchPointer& watch, const EtcdError& error) {
  const bool denied = error.code == EtcdCode::kPermissionDenied;
  if (!denied && !wants_new_token(error)) return is_refusal(error.code);
  // etcd reports a token that is too old as a missing permission.
  if (!calls_->has_user() || watch->asked_new_token) return true;
  watch->asked_new_token = true;
  calls_->forget_token();
  return false;
}

asio::awaitable<EtcdError> EtcdWatches::follow(WatchPointer watch) {
  watch->link = calls_->make_link();
  const EtcdCalls::LinkPointer link = watch->link;
  const EtcdCalls::Stream stream = stream_of(watch);
  const EtcdError error = co_await calls_->run_stream(link, stream);
  EtcdCalls::close(link);
  co_return error;
}

EtcdCalls::Stream EtcdWatches::stream_of(const WatchPointer& watch) {
  return {"/v3/watch", etcd_watch_json(watch->request),
          [this, watch](std::string_view line) { return on_message(watch, line); }, kSilenceMax};
}

EtcdError EtcdWatches::on_message(const WatchPointer& watch, std::string_view line) {
  auto message = parse_etcd_watch(line);
  if (!message) {
    const core::Error error = message.error();
    return {EtcdCode::kUnavailable, std::string(core::without_code(error.message))};
  }
  if (const auto* error = std::get_if<EtcdError>(&*message)) return *error;
  auto& reply = std::get<EtcdWatchReply>(*message);
  if (reply.canceled) return cancel_error(reply);
  if (reply.created) {
    watch->begun = true;
    watch->asked_new_token = false;
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
    // The reply's header may have a higher revision than the last event. The changes end with the
    // last event, so they get its revision.
    changes.revision = reply.events.back().kv.mod_revision;
  } else if (is_progress || next == 0) {
    // A reply without events confirms that nothing changed up to this revision.
    changes.revision = reply.revision;
  } else {
    changes.revision = next - 1;
  }
  next = std::max(next, changes.revision + 1);
  const bool is_news = reply.created || !reply.events.empty();
  changes.events = std::move(reply.events);
  if (is_news) watch->deliver(std::move(changes));
}

}  // namespace server::cluster

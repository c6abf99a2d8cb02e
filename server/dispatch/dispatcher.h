// SPDX-License-Identifier: MIT
//
// Dispatcher: takes one request of one session to its handler. It finds the row, makes the checks
// that the row asks for, queues inside MULTI, runs the handler and counts.
//
// Invariants: every request gets exactly one reply, unless CLIENT REPLY silences it or it is held
// back; no command is named here.
// Thread safety: belongs to its session's thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "protocol/output_buffer.h"
#include "server/dispatch/command.h"
#include "server/process/tick_clock.h"

namespace core::keyspace {
class Keyspace;
}

namespace server::cluster {
class View;
enum class Route : uint8_t;
}  // namespace server::cluster

namespace server {

class Context;
class Session;
struct Environment;
struct QueuedCommand;
struct RegisteredCommand;
struct ThreadStatistics;

enum class Outcome : uint8_t {
  kDone,
  kClose,     // close the connection once the replies are sent
  kBlocked,   // Session::awaited gives the reply, later
  kHeldBack,  // nothing has happened; try the same request again later
};

class Dispatcher {
 public:
  Dispatcher(Environment& environment, ThreadStatistics& counters, Session& session)
      : environment_(environment), counters_(counters), session_(session) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // One request of those that look_ahead() has just seen. REQUIRES: in their order, with nothing
  // that takes long in between.
  Outcome execute(const Request& request, int64_t now_ms, protocol::OutputBuffer& replies);
  // A request by itself.
  Outcome execute(Arguments args, int64_t now_ms, protocol::OutputBuffer& replies) {
    begin_ticks_ = TickClock::now();
    return execute(Request{.args = args}, now_ms, replies);
  }

  // Fetches into the cache what the commands of a pipeline are about to touch: first all their
  // buckets, then all entries, then all values, so that the waits for memory overlap. Notes in the
  // requests what it finds out. REQUIRES: at most kLookAheadMax requests.
  void look_ahead(std::span<Request> requests, int64_t now_ms);
  static constexpr size_t kLookAheadMax = 16;

  // Runs one queued command of EXEC. REQUIRES: the locks of its keys; ctx.in_exec.
  void run_queued(Context& ctx, const QueuedCommand& queued);

  // After a change of the users: false if the session must end.
  bool keeps_rights();

  // Releases the session's entries in shared structures (watches, subscriptions).
  void end_session();

 private:
  // Which server of a cluster serves a command. In key_routing.cpp.
  struct KeyRouting {
    cluster::Route route{};
    unsigned slot = 0;
    const cluster::View* view = nullptr;  // by which it was routed; null outside of a cluster

    // Here, now or soon. What is held is queued in MULTI all the same, and held when EXEC comes.
    bool is_served() const;
    // Soon: the client waits.
    bool is_held() const;
  };

  // Null when there is none of that name.
  const RegisteredCommand* find(Arguments args);
  const RegisteredCommand* look_up(std::string_view name);
  // The command of a container's second word, or else what the first one alone says; null, and
  // answered, when there is none.
  const RegisteredCommand* resolve(Context& ctx, const RegisteredCommand* command);
  // Looks the command up and hashes its first key; false when there is none at that place.
  // `before`: the request before it, or null.
  bool prepare(Request& request, const Request* before);
  void prefetch(std::span<Request> requests, int64_t now_ms);
  // REQUIRES: the key's lock.
  void prefetch_values(std::span<Request* const> same_key, int64_t now_ms);
  // Both: the text of the error when the command must not run; empty when it may. The first asks
  // what no wait would change, the second for the state of the server.
  std::string misuse(const Context& ctx) const;
  std::string refusal(const Context& ctx, uint32_t flags) const;
  // `flags`: the row's and, of EXEC, those of the queue.
  KeyRouting route(const Context& ctx, uint32_t flags) const;
  // Whether route() has nothing to find out: the command has one key, whose slot this server leads
  // and serves.
  bool serves_first_key(const Context& ctx) const;
  // The reply to what is not served here.
  std::string routing_error(const KeyRouting& routing) const;
  // Whether the text is one of routing_error(): of the keys, not of the server's state.
  static bool is_routing_error(std::string_view error);
  // Whether refusal() and is_held_back() have to be asked at all.
  bool may_be_refused(const Context& ctx, uint32_t flags) const;
  bool may_be_held_back() const;
  // Whether the command must wait: for the end of a pause, or for the subscribers' threads.
  bool is_held_back(uint32_t flags, int64_t now_ms) const;
  // Whether a command that was routed here is refused because this server has become a replica:
  // the view that names its new leader is a moment late.
  static bool awaits_view(const KeyRouting& routing, std::string_view error);
  // As refusal(), for the availability of the server. `flags` are the row's and the queue's, the
  // `permissions` those that both have.
  std::string trouble(uint32_t flags, uint32_t permissions) const;
  void refuse(Context& ctx, std::string_view error);
  // The same for a command that is known, which counts it.
  void reject(Context& ctx, std::string_view error);
  void queue(Context& ctx);
  void run(Context& ctx);
  // For SLOWLOG, LATENCY and MONITOR.
  void observe(const Context& ctx, uint64_t ticks);
  // After every request, refused ones too: CLIENT REPLY, and whether the session goes on.
  Outcome finish(Context& ctx, size_t mark);
  void apply_reply_mode(Context& ctx, size_t mark);

  Environment& environment_;
  ThreadStatistics& counters_;
  Session& session_;
  // The last command found: pipelines repeat the same one.
  const RegisteredCommand* last_command_ = nullptr;
  std::array<char, 16> last_name_{};
  size_t last_name_size_ = 0;
  // When the next command begins, for its duration: reading the clock takes as long as a short
  // command's own work, so it begins when the one before it has ended.
  uint64_t begin_ticks_ = 0;
};

// Forgets all watches of the session. Takes the stripe locks it needs: call with none held.
void unwatch_all(core::keyspace::Keyspace& keyspace, Session& session);
// Leaves MULTI, drops the queue and the watches.
void discard_transaction(core::keyspace::Keyspace& keyspace, Session& session);

}  // namespace server

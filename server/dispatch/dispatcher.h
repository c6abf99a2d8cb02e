// SPDX-License-Identifier: MIT
//
// Dispatcher: executes the requests of one session. It finds the command's row, makes the checks
// that the row requires, and runs the handler. Inside MULTI it queues the command instead. It also
// updates the statistics.
//
// Invariants: every request gets a reply, unless CLIENT REPLY silences it, the request is held
// back, or the request looks like HTTP. SUBSCRIBE and similar commands reply with a message for
// each channel. The code of Dispatcher does not mention individual commands: their rows describe
// how to treat them.
// Thread safety: belongs to its session's thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "protocol/output_buffer.h"
#include "server/base/process/tick_clock.h"
#include "server/dispatch/command.h"
#include "server/session/command_result.h"

namespace core::keyspace {
class Keyspace;
}

namespace server {

class Client;
class Context;
class Session;
struct Environment;
struct QueuedCommand;
struct RegisteredCommand;
struct ThreadStatistics;

class Dispatcher {
 public:
  Dispatcher(Environment& environment, ThreadStatistics& counters, Session& session);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Executes one of the requests that were passed to look_ahead(). REQUIRES: the requests are
  // executed in their order, and nothing slow runs in between. A command's measured time begins
  // when the command before it ends.
  CommandResult execute(const Request& request, int64_t now_ms, protocol::OutputBuffer& replies);
  // Executes a request without a preceding look_ahead(). If the request has no command, it is
  // looked up by the first word.
  CommandResult execute_alone(const Request& request, int64_t now_ms,
                              protocol::OutputBuffer& replies) {
    begin_ticks_ = TickClock::now();
    return execute(request, now_ms, replies);
  }
  CommandResult execute(Arguments args, int64_t now_ms, protocol::OutputBuffer& replies) {
    return execute_alone(Request{.args = args}, now_ms, replies);
  }

  // Returns the tick at which the next command begins, by TickClock.
  uint64_t begin_ticks() const { return begin_ticks_; }

  // Prefetches the memory that the commands of a pipeline will use: first all buckets, then all
  // entries, then all values, so that cache misses overlap. Stores the table row of the command and
  // the hash of the key in each request. REQUIRES: at most kLookAheadMax requests.
  void look_ahead(std::span<Request> requests, int64_t now_ms);

  // Runs one queued command of EXEC. REQUIRES: the locks of its keys; ctx.in_exec.
  void run_queued(Context& ctx, const QueuedCommand& queued);

  // Releases the session's entries in shared structures (watches, subscriptions).
  void end_session();

 private:
  // Finds the command by its name. Returns null if there is none.
  const RegisteredCommand* find(Arguments args);
  const RegisteredCommand* look_up(std::string_view name);
  // Returns the subcommand that the second word names, or the command itself if there is no second
  // word. If the subcommand is unknown, replies with an error and returns null.
  const RegisteredCommand* resolve(Context& ctx, const RegisteredCommand* command);
  // Looks the command up and hashes its first key. Returns false if the command is unknown or its
  // first argument is no key. `before` is the preceding request of the pipeline, or null.
  bool prepare(Request& request, const Request* before);
  void prefetch(std::span<Request> requests, int64_t now_ms);
  // Prefetches the memory of the value that these requests, which all have the same key, will read.
  // REQUIRES: the key's lock is held.
  void prefetch_values(std::span<Request* const> same_key, int64_t now_ms);
  // check_arguments() and check_state() fail if the command must not run. check_arguments() finds
  // errors that waiting cannot change. check_state() checks the state of the server.
  core::Result<> check_arguments(Context& ctx) const;
  core::Result<> check_state(const Context& ctx, uint32_t flags) const;
  // Returns true if the command has one key, whose slot this server leads and serves. Then no
  // KeyRouting is needed.
  bool serves_first_key(const Context& ctx) const;
  // If may_be_refused() returns false, check_state() need not be called. If may_be_held_back()
  // returns false, is_held_back() need not be called.
  bool may_be_refused(const Context& ctx, uint32_t flags) const;
  bool may_be_held_back() const;
  // Returns whether the command must wait for the end of a pause or a hold, or until enough earlier
  // pub/sub messages have been delivered.
  bool is_held_back(uint32_t flags, int64_t now_ms) const;
  // Fails if the availability of the server prevents the command. `flags` are the flags of the
  // command and, for EXEC, of its queued commands. `permissions` are the flags that all these
  // commands have in common.
  core::Result<> check_availability(uint32_t flags, uint32_t permissions) const;
  // Returns whether the command may run. Otherwise replies with an error or, if the command must
  // wait, sets the outcome to kHeldBack.
  // `queues` is true for a command that MULTI queues.
  bool admit(Context& ctx, uint32_t flags, bool queues);
  void refuse(Context& ctx, const core::Error& error);
  // Rejects a known command, and counts the rejection in its statistics.
  void reject(Context& ctx, const core::Error& error);
  void queue(Context& ctx);
  void run(Context& ctx);
  // Reports the executed command to SLOWLOG, LATENCY and MONITOR.
  void observe(const Context& ctx, uint64_t ticks);
  // Must be called after every request, including a rejected one. Applies CLIENT REPLY.
  void finish(Context& ctx, size_t mark);
  void apply_reply_mode(Context& ctx, size_t mark);

  Environment& environment_;
  ThreadStatistics& counters_;
  Session& session_;
  Client& client_;
  // The command of the last request, which is tried first, because pipelines repeat commands.
  const RegisteredCommand* last_command_ = nullptr;
  std::array<char, 16> last_name_{};
  size_t last_name_size_ = 0;
  // The start time of the next command. It equals the end time of the preceding command, because
  // reading the clock again would take as long as a short command.
  uint64_t begin_ticks_ = 0;
};

// Ends all watches of the session. Takes the stripe locks that it needs. REQUIRES: no stripe lock
// is held.
void unwatch_all(core::keyspace::Keyspace& keyspace, Session& session);
// Leaves MULTI and clears the queue and the watches.
void discard_transaction(core::keyspace::Keyspace& keyspace, Session& session);

}  // namespace server

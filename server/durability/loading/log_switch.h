// SPDX-License-Identifier: MIT
//
// LogSwitch: opens and closes the append log while the server runs: CONFIG SET appendonly, and when
// all data are replaced.
//
// Invariants: one thread opens or closes the log, with all stripes locked, so that every change is
// either in the base that follows or in the log. A log's first files are named by no manifest
// before its base is there: until then a start finds what was there before.
// Thread safety: all members may be called from any thread that holds no stripe, unless they say
// otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "core/result.h"
#include "server/durability/data/data_parts.h"
#include "server/process/ordered_mutex.h"

namespace server {

class AppendLog;
class DataWriter;
class Saves;
class TickThread;
struct Recovered;

class LogSwitch {
 public:
  LogSwitch(const DataParts& parts, const DataWriter& writer, AppendLog& log, Saves& saves,
            TickThread& thread)
      : parts_(parts), writer_(writer), log_(log), saves_(saves), thread_(thread) {}

  // CONFIG SET appendonly: carried out by the next follow().
  void want(bool is_on) { wants_log_ = is_on; }
  bool is_wanted() const { return wants_log_; }
  // Has the thread do so at once, and waits for it for at most a second. Errors: the reason why the
  // log could not be switched on; it is tried again.
  core::Result<> await();
  bool is_awaited();
  // Switches the log as wanted, if that is possible now.
  void follow();

  // After a recovery, as the option says, before clients are served.
  core::Result<> open_recovered(Recovered recovered);
  // Before the process ends: the log is open and whole, if it is wanted. REQUIRES: the slot.
  core::Result<> complete();
  // All data go: closes the log and calls `also` while nothing moves. REQUIRES: the stream, the
  // slot.
  void close_with(const std::function<void()>& also);
  // All data have come. The base is the file at temporary_base(), or, `is_empty`, one without keys.
  // On failure a start would not find later writes, so writes are refused until a rewrite has made
  // a base. REQUIRES: the slot.
  void begin_afresh(bool is_empty);
  // CONFIG SET dir: calls `change` while nothing uses the files. Errors: the append log or a save
  // does, or those of `change`. It may hold stripes.
  core::Result<> change_directory(const std::function<core::Result<>()>& change);

 private:
  // REQUIRES for all: switch_mutex_.
  std::optional<core::Result<>> try_switch(bool is_awaited);
  bool may_begin();
  core::Result<> open();
  core::Result<> begin_with_base(bool is_empty);
  // REQUIRES: besides, all stripes.
  void close();

  const DataParts parts_;
  const DataWriter& writer_;
  AppendLog& log_;
  Saves& saves_;
  TickThread& thread_;
  std::atomic<bool> wants_log_{false};

  OrderedMutex switch_mutex_{LockRank::kLogSwitch};  // one thread opens or closes the log
  int64_t next_try_us_ = 0;                          // of whoever has it

  std::mutex mutex_;       // guards the members below
  uint64_t requests_ = 0;  // numbers of await()'s calls
  uint64_t answered_ = 0;  // the last one that is done with
  std::optional<core::Error> error_;
  std::condition_variable switched_;
};

}  // namespace server

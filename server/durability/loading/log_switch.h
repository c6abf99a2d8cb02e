// SPDX-License-Identifier: MIT
//
// LogSwitch: opens and closes the append log while the server runs: for CONFIG SET appendonly, and
// when all data are replaced.
//
// Invariants: one thread at a time opens or closes the log, with all stripes locked. So every
// change is either in the new base or in the log. The manifest lists the files of a new log only
// once the log's base exists. If the server is restarted before then, it loads the previous data.
// Thread safety: all members may be called from any thread that holds no stripe lock, unless stated
// otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "core/result.h"
#include "server/base/process/ordered_mutex.h"
#include "server/durability/data/data_parts.h"

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

  // Records whether CONFIG SET has switched the option appendonly on or off. The next follow()
  // opens or closes the log accordingly.
  void want(bool is_on) { wants_log_ = is_on; }
  bool is_wanted() const { return wants_log_; }
  // Makes the thread of Durability open or close the log at once, as the last want() requested, and
  // waits for at most a second. If that thread does not run, the caller opens or closes the log
  // itself. Does nothing while data are being loaded. Errors: the reason why the log could not be
  // switched on; the switch is retried.
  core::Result<> await();
  bool is_awaited();
  // Opens or closes the log as requested, if that is possible now.
  void follow();

  // Opens the log after a recovery if `appendonly` is set. Must be called before clients are
  // served.
  core::Result<> open_recovered(Recovered recovered);
  // Called before the process ends. If the append log is switched on, ensures that it is open and
  // complete. REQUIRES: the caller has claimed the save slot.
  core::Result<> complete();
  // Called before all data are replaced. Closes the log, and calls `also` while no
  // command can change the data.
  // REQUIRES: the caller holds the stream's mutex and has claimed the save slot.
  void close_with(const std::function<void()>& also);
  // Called when all data were replaced. The base is the file at temporary_base(), or one without
  // keys if `is_empty`. If this call fails, a start would not find later writes, so writes are
  // rejected until a rewrite has made a base. REQUIRES: the caller has claimed the save slot.
  void begin_afresh(bool is_empty);
  // Implements CONFIG SET dir: calls `change` while nothing uses the files. Errors: the append log
  // is on, data are being loaded or saved, or `change` has failed. The caller may hold stripe
  // locks.
  core::Result<> change_directory(const std::function<core::Result<>()>& change);

 private:
  // These functions require that the caller holds switch_mutex_.
  std::optional<core::Result<>> try_switch(bool is_awaited);
  bool may_begin();
  core::Result<> open();
  core::Result<> begin_with_base(bool is_empty);
  // Closes the log. REQUIRES: the caller holds switch_mutex_ and the locks of all stripes.
  void close();

  const DataParts parts_;
  const DataWriter& writer_;
  AppendLog& log_;
  Saves& saves_;
  TickThread& thread_;
  std::atomic<bool> wants_log_{false};

  // This mutex is held by the thread that opens or closes the log.
  OrderedMutex switch_mutex_{LockRank::kLogSwitch};
  int64_t next_try_us_ = 0;  // time of the next attempt; guarded by switch_mutex_

  std::mutex mutex_;       // this mutex guards the members below
  uint64_t requests_ = 0;  // number of calls of await()
  uint64_t answered_ = 0;  // number of the last call of await() whose request was handled
  std::optional<core::Error> error_;
  std::condition_variable switched_;
};

}  // namespace server

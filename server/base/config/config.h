// SPDX-License-Identifier: MIT
//
// Config: the values of all options. Used at startup, by CONFIG GET, SET and REWRITE, and by the
// hot paths of every thread.
//
// Invariants: every value is a default or was accepted by its option's parser. set() changes all of
// its pairs or none.
// Thread safety: after load() all members may be called from any thread. Numbers are atomics;
// strings are copied under a lock. A reader may see a value that set() reverts because a hook
// fails. Hooks run on the thread of set(), one set() at a time, and must not call set() or
// rewrite().
// Source: conf/bloomery.conf explains the options.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/base/config/option.h"

namespace core::bloom {
enum class LayoutId : uint8_t;
}  // namespace core::bloom

namespace server {

enum class Launch;

enum class LogLevel : int64_t { kDebug, kVerbose, kNotice, kWarning, kNothing };
enum class Supervised : int64_t { kUpstart, kSystemd, kAuto, kNo };
enum class AppendFsync : int64_t { kEverySecond, kAlways, kNo };
// kYes means that this server is a node of a cluster that etcd describes. With kEmulated, a single
// server answers like a cluster of one node.
enum class ClusterMode : int64_t { kNo, kYes, kEmulated };
enum class HugePageMode : int64_t { kAuto, kNo };
enum class DebugCommand : int64_t { kNo, kYes, kLocal };
// The origin of a client's connection, for `enable-protected-configs local`.
enum class Origin { kLocal, kRemote };

inline constexpr std::string_view kNoConfigFile = "ERR The server is running without a config file";
// Reasons why CONFIG SET cannot change an option.
inline constexpr std::string_view kImmutableOption = "can't set immutable config";
inline constexpr std::string_view kProtectedOption = "can't set protected config";
// Returns the error of CONFIG SET for an option's value that is rejected.
std::string config_set_error(std::string_view option, std::string_view reason);
// Returns the error of CONFIG SET for a name that is no option.
std::string unknown_option_error(std::string_view name);

using NamedValue = std::pair<std::string, std::string>;

// OptionGroup: options whose changes are applied together.
struct OptionGroup {
  OptionGroup(OptionId id) : ids{id} {}
  OptionGroup(std::initializer_list<OptionId> some) : ids(some) {}
  std::vector<OptionId> ids;
};

// ConfigHooks: the apply and undo functions for an OptionGroup; see Config::on_change().
struct ConfigHooks;
using ConfigHooksPtr = std::shared_ptr<const ConfigHooks>;

// OtherDirectives: directives of the configuration file that are not options.
struct OtherDirectives {
  // The old and the new name of each rename-command line, in the order of the lines. An empty new
  // name removes the command.
  std::vector<NamedValue> renamed_commands;
  // The rename-command lines with their positions, for error texts. Only the command registry can
  // validate the lines.
  std::vector<Directive> rename_lines;
  // The `user` lines of the file. Each line contains the name of a user.
  std::vector<Directive> users;
};

class Config {
 public:
  // Applies a change. If a hook fails, set() reverts all of its changes and replies with the
  // error's message.
  using Hook = std::function<core::Result<>()>;

  // Sets every option to its default.
  Config();

  // Reads the configuration file, then standard input, then the options of the command line;
  // argv[0] is skipped. Errors: the text to print before exiting. Loads options only if the
  // result is kServe or kCheckHealth.
  core::Result<Launch> load(int argc, const char* const* argv, int stdin_descriptor = 0);

  // Returns warnings for the operator about directives that have no effect in Bloomery. Each
  // warning is returned once.
  std::vector<std::string> take_warnings();

  // Implements CONFIG GET pattern [pattern …]: returns the matching names and aliases with their
  // values, each once.
  std::vector<NamedValue> get(std::span<const std::string_view> patterns) const;
  // Implements CONFIG SET name value [name value …].
  core::Result<> set(std::span<const NamedValue> pairs, Origin origin = Origin::kRemote);
  // Sets an option that the server itself changes, such as the leader after REPLICAOF. Calls no
  // hook and waits for none, so the caller may hold locks that hooks need.
  void replace(OptionId id, const std::string& text);
  // Implements CONFIG REWRITE. `user_lines` replace the file's `user` lines. With kAll, options at
  // their defaults get lines as well. Errors: there is no file, or it cannot be read or written; a
  // start from the new text would fail or give other values. After an error the file is unchanged.
  enum class Extent : uint8_t { kChanged, kAll };
  core::Result<> rewrite(const std::optional<std::vector<std::string>>& user_lines = std::nullopt,
                         Extent extent = Extent::kChanged);

  // Registers the hook `apply`. Each set() that changes options of the group calls `apply` once,
  // after storing the new values. Hooks run in order of registration. If a hook returns an error,
  // set() restores the old values and fails. It then calls `undo` for each hook that it has called,
  // including the failed one. Without `undo`, it calls `apply` again, which sees the old values.
  void on_change(const OptionGroup& group, Hook apply, std::function<void()> undo = nullptr);
  // Calls `apply` immediately, and again after each change of an option of the group. Unlike a
  // Hook, `apply` cannot fail.
  void follow(const OptionGroup& group, const std::function<void()>& apply);

  // Returns whether values of the option with this name or alias are secrets, which MONITOR and
  // SLOWLOG must hide.
  static bool is_sensitive(std::string_view name);

  // Returns the absolute path of the configuration file, for INFO; empty if the server was started
  // without one.
  const std::string& file_path() const { return file_path_; }
  const OtherDirectives& other_directives() const { return other_directives_; }

  int64_t integer(OptionId id) const noexcept {
    return scalars_[static_cast<size_t>(id)].load(std::memory_order_relaxed);
  }
  bool flag(OptionId id) const noexcept { return integer(id) != 0; }
  double number(OptionId id) const noexcept { return std::bit_cast<double>(integer(id)); }
  std::string text(OptionId id) const;

  uint16_t port() const noexcept { return static_cast<uint16_t>(integer(OptionId::kPort)); }
  int64_t timeout_s() const noexcept { return integer(OptionId::kTimeout); }
  int64_t max_clients() const noexcept { return integer(OptionId::kMaxClients); }
  int64_t io_thread_count() const noexcept { return integer(OptionId::kIoThreads); }
  int64_t max_bulk_bytes() const noexcept { return integer(OptionId::kProtoMaxBulkLen); }
  BufferLimit output_buffer_limit(ClientClass client_class) const noexcept;
  int64_t max_memory_bytes() const noexcept { return integer(OptionId::kMaxMemory); }
  // Returns the limit for the memory of all clients together; 0 is no limit.
  uint64_t client_memory_limit_bytes() const noexcept;
  std::string directory() const { return text(OptionId::kDir); }
  int64_t database_count() const noexcept { return integer(OptionId::kDatabases); }
  int64_t hz() const noexcept { return integer(OptionId::kHz); }
  AppendFsync append_fsync() const noexcept { return AppendFsync{integer(OptionId::kAppendFsync)}; }
  // Returns the limit on one filter's memory. 0 means that only maxmemory limits filters.
  int64_t bloom_memory_limit_bytes() const noexcept {
    return integer(OptionId::kBloomMemoryUsageLimit);
  }

 private:
  struct Change {
    size_t index;
    std::string name;  // name that the reply uses for the option
    Value value;
  };
  using AtomicLimit = std::array<std::atomic<int64_t>, 3>;

  core::Result<> load_directives(const core::Result<std::vector<Directive>>& directives);
  core::Result<> apply(const Directive& directive);
  core::Result<> apply_other(const Directive& directive);
  void warn_if_without_effect(size_t index, const Value& value);
  core::Result<std::vector<Change>> prepare(std::span<const NamedValue> pairs, Origin origin) const;
  // Returns true if CONFIG SET may change the option. Returns false if the option is immutable and
  // already has the requested value. Errors: the option is immutable and has another value, or is
  // protected.
  core::Result<bool> may_change(size_t index, const NamedValue& pair, Origin origin) const;
  core::Result<> commit(const std::vector<Change>& changes);
  // Runs the hooks of the changed option that are not in `done`, and adds them to `done`.
  core::Result<> run_hooks(const Change& change, std::vector<ConfigHooksPtr>& done);
  void store(size_t index, const Value& value);
  std::string text_at(size_t index) const;
  void warn(std::string message);

  std::mutex set_mutex_;            // this mutex is held during set() and rewrite()
  mutable std::mutex mutex_;        // this mutex guards texts_, hooks_ and warnings_
  std::vector<std::string> texts_;  // canonical texts of the values, by row of the option table
  std::array<std::vector<ConfigHooksPtr>, kOptionIdCount> hooks_;
  std::vector<std::string> warnings_;

  std::array<std::atomic<int64_t>, kOptionIdCount> scalars_{};
  std::array<AtomicLimit, kClientClassCount> buffer_limits_{};

  // Only load() writes file_path_ and other_directives_.
  std::string file_path_;
  OtherDirectives other_directives_;
};

// Returns whether writes are rejected after a failed snapshot. If no save points are configured,
// writes continue.
inline bool stops_writes_on_snapshot_error(const Config& config) {
  return config.flag(OptionId::kStopWritesOnBgsaveError) && !config.text(OptionId::kSave).empty();
}

// BloomDefaults: the default parameters of new filters, for commands that omit them. The Config
// must outlive the object.
class BloomDefaults {
 public:
  explicit BloomDefaults(const Config& config) : config_(config) {}

  double error_rate() const noexcept { return config_.number(OptionId::kBloomErrorRate); }
  int64_t capacity() const noexcept { return config_.integer(OptionId::kBloomInitialSize); }
  // Returns the expansion factor; 0 means that the filter does not scale.
  int64_t expansion() const noexcept { return config_.integer(OptionId::kBloomExpansionFactor); }
  double tightening_ratio() const noexcept {
    return config_.number(OptionId::kBloomTighteningRatio);
  }
  // Returns the layout of a new filter whose command names no layout. For native filters with very
  // low error rates or very large capacities, core::bloom::native_layout() chooses another version.
  core::bloom::LayoutId layout() const noexcept;
  int native_version() const noexcept {
    return static_cast<int>(config_.integer(OptionId::kBloomNativeVersion));
  }
  bool random_seed() const noexcept { return config_.flag(OptionId::kBloomUseRandomSeed); }

 private:
  const Config& config_;
};

}  // namespace server

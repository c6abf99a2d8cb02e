// SPDX-License-Identifier: MIT
#include "server/session/observer.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/clock.h"
#include "server/base/config/config.h"
#include "server/base/process/tick_clock.h"
#include "server/session/big_argument.h"
#include "server/session/session.h"

namespace server {
namespace {

constexpr std::string_view kHidden = "(redacted)";

std::vector<std::string_view> masked_words(const Observed& observed) {
  std::vector<std::string_view> words(observed.words.begin(), observed.words.end());
  if (observed.hides == nullptr) return words;
  for (size_t i = 1; i < words.size(); ++i) {
    if (observed.hides(observed.words, i)) words[i] = kHidden;
  }
  return words;
}

// If a key has taken over the buffer of the command's big argument, returns this argument. Returns
// null otherwise. Other threads may change the bytes of the returned argument.
const BigArgument* stored_word(const Observed& observed) {
  const BigArgument* const big = observed.big_argument;
  return big != nullptr && big->is_taken() ? big : nullptr;
}

// Returns the words as trimmed_words() does, but does not read the bytes of the word that
// stored_word() returns.
std::vector<std::string> logged_words(const Observed& observed) {
  std::vector<std::string_view> words = masked_words(observed);
  const BigArgument* const stored = stored_word(observed);
  if (stored == nullptr) return trimmed_words(words);
  static_assert(BigArgument::kHeadBytes == kSlowWordBytesMax);
  CutWord cut;
  for (std::string_view& word : words) {
    if (word.data() != stored->text().data()) continue;
    cut = {static_cast<size_t>(&word - words.data()), word.size() - BigArgument::kHeadBytes};
    word = stored->head();
  }
  return trimmed_words(words, cut);
}

std::string monitored_address(const Session& session) {
  if (!session.client->socket.is_unix) return session.client->address;
  return "unix:" + session.client->address.substr(0, session.client->address.rfind(':'));
}

}  // namespace

Observer::Observer(const Config& config, const core::Clock& clock, const TickClock& ticks,
                   size_t thread_count, std::function<void(size_t)> wake)
    : config_(config), clock_(clock), ticks_(ticks), monitors_(thread_count, std::move(wake)) {
  update();
}

void Observer::update() {
  const std::scoped_lock lock(update_mutex_);
  latency_.set_threshold_ms(config_.integer(OptionId::kLatencyMonitorThreshold));
  const int64_t slow_us = config_.integer(OptionId::kSlowlogLogSlowerThan);
  constexpr double kNever = std::numeric_limits<double>::max();
  double least_us = slow_us >= 0 ? static_cast<double>(slow_us) : kNever;
  if (latency_.threshold_ms() > 0) {
    least_us = std::min(least_us, static_cast<double>(latency_.threshold_ms()) * 1000);
  }
  if (monitors_.count() > 0) least_us = 0;
  // The measured tick rate is inexact. So this threshold in ticks is a tenth too low, and observe()
  // compares the duration in microseconds with the configured thresholds.
  constexpr double kSlack = 0.9;
  constexpr double kTicksMax = 1e18;
  const double ticks = least_us * ticks_.ticks_per_microsecond() * kSlack;
  ticks_min_.store(static_cast<uint64_t>(std::min(ticks, kTicksMax)), std::memory_order_relaxed);
}

void Observer::observe(const Observed& observed) {
  const int64_t now_us = clock_.wall_us();
  const int64_t now_s = now_us / core::kSecondUs;
  const auto duration_us = static_cast<int64_t>(ticks_.microseconds(observed.ticks));
  latency_.record(observed.is_fast ? "fast-command" : "command", duration_us / 1000, now_s);
  const int64_t slow_us = config_.integer(OptionId::kSlowlogLogSlowerThan);
  if (slow_us >= 0 && duration_us >= slow_us && observed.is_in_slow_log) {
    SlowCommand command{.time_s = now_s,
                        .duration_us = duration_us,
                        .words = logged_words(observed),
                        .address = observed.session.client->address,
                        .client_name = observed.session.client->names.get().name};
    slow_log_.add(std::move(command),
                  static_cast<size_t>(config_.integer(OptionId::kSlowlogMaxLen)));
  }
  // If the command has moved its big argument into the keyspace, the argument cannot be read here.
  // A monitor that was added after the move therefore does not get this command.
  const bool is_readable = stored_word(observed) == nullptr;
  if (observed.is_monitored && is_readable && monitors_.count() > 0) {
    monitors_.feed(monitor_line(now_us, static_cast<unsigned>(observed.session.client->database),
                                monitored_address(observed.session), masked_words(observed)));
  }
}

void Observer::record_event(std::string_view kind, int64_t duration_ms) {
  latency_.record(kind, duration_ms, clock_.wall_us() / core::kSecondUs);
}

void Observer::start_monitor(Session& session) {
  session.client->peer = Peer::kMonitor;
  monitors_.add(session.client->id, session.client->thread_index);
  update();
}

void Observer::stop_monitor(Session& session) {
  if (session.client->peer != Peer::kMonitor) return;
  session.client->peer = Peer::kClient;
  monitors_.remove(session.client->id);
  update();
}

}  // namespace server

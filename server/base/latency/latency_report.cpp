// SPDX-License-Identifier: MIT
#include "server/base/latency/latency_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <vector>

namespace server {
namespace {

constexpr size_t kColumns = 80;
constexpr int kChartRows = 4;
// The characters of LATENCY GRAPH that show a third, two thirds, and the whole of a row's height.
constexpr std::string_view kMarks = "_o#";
constexpr int kSteps = kChartRows * static_cast<int>(kMarks.size());

// Returns the age in its largest unit, such as "5s", "12m", "3h" or "2d".
std::string age_text(int64_t seconds) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  seconds = std::max<int64_t>(0, seconds);
  if (seconds < kMinute) return fmt::format("{}s", seconds);
  if (seconds < kHour) return fmt::format("{}m", seconds / kMinute);
  if (seconds < kDay) return fmt::format("{}h", seconds / kHour);
  return fmt::format("{}d", seconds / kDay);
}

struct Column {
  int step;  // height of the column, in units of a third of a row
  std::string age;
};

// Returns the character that shows a column in a row of the graph; row 0 is the highest.
char mark_at(const Column& column, int row) {
  const auto marks = static_cast<int>(kMarks.size());
  const int above = column.step - (kChartRows - row - 1) * marks;
  if (above < 0) return ' ';
  return above < marks ? kMarks[static_cast<size_t>(above)] : '|';
}

void draw(std::span<const Column> columns, std::string& text) {
  for (int row = 0; row < kChartRows; ++row) {
    for (const Column& column : columns) text += mark_at(column, row);
    text += '\n';
  }
  text += std::string(columns.size(), ' ') + '\n';
  size_t label_rows = 0;
  for (const Column& column : columns) label_rows = std::max(label_rows, column.age.size());
  for (size_t row = 0; row < label_rows; ++row) {
    for (const Column& column : columns) text += row < column.age.size() ? column.age[row] : ' ';
    text += '\n';
  }
}

struct Summary {
  int64_t high_ms = 0;
  int64_t low_ms = 0;
  double average_ms = 0;
  double mean_deviation_ms = 0;
  double period_s = 0;
};

Summary summary_of(const LatencyEvents& events) {
  const auto& samples = events.samples;
  const auto count = static_cast<double>(samples.size());
  Summary summary;
  const auto [low, high] = std::ranges::minmax(samples, {}, &LatencySample::duration_ms);
  summary.high_ms = high.duration_ms;
  summary.low_ms = low.duration_ms;
  for (const LatencySample& sample : samples) {
    summary.average_ms += static_cast<double>(sample.duration_ms) / count;
  }
  for (const LatencySample& sample : samples) {
    summary.mean_deviation_ms +=
        std::abs(static_cast<double>(sample.duration_ms) - summary.average_ms) / count;
  }
  const int64_t span_s = std::max<int64_t>(1, samples.back().time_s - samples.front().time_s);
  summary.period_s = static_cast<double>(span_s) / std::max(1.0, count - 1);
  return summary;
}

// Returns advice on a kind of event, or an empty text if there is none.
std::string_view advice_on(std::string_view kind) {
  if (kind == "command" || kind == "fast-command") {
    return "SLOWLOG GET shows the slow commands. Batches of many items and big values can be cut "
           "into smaller ones; a fast command that is slow points to a machine that is short of "
           "processor time.";
  }
  if (kind == "fork") {
    return "Forking copies page tables: switch transparent huge pages off, keep the resident set "
           "small, and save less often.";
  }
  if (kind.starts_with("aof-")) {
    return "The disk is slow or shared: give the append log a disk of its own, or choose "
           "appendfsync everysec.";
  }
  if (kind.starts_with("expire-")) {
    return "Many keys expire at once: spread their times.";
  }
  if (kind.starts_with("eviction-")) {
    return "Memory is short and keys must go before commands can run: raise maxmemory, or lower "
           "maxmemory-eviction-tenacity.";
  }
  return "";
}

}  // namespace

std::string latency_graph(std::string_view kind, const LatencyEvents& events, int64_t now_s) {
  const Summary summary = summary_of(events);
  std::string text = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n", kind,
                                 summary.high_ms, summary.low_ms, events.longest_ms);
  text.append(kColumns, '-');
  text += '\n';
  const int64_t range_ms = std::max<int64_t>(1, summary.high_ms - summary.low_ms);
  std::vector<Column> columns;
  for (const LatencySample& sample : events.samples) {
    const int64_t step = (sample.duration_ms - summary.low_ms) * kSteps / range_ms;
    columns.push_back(
        {static_cast<int>(std::min<int64_t>(step, kSteps - 1)), age_text(now_s - sample.time_s)});
  }
  for (size_t first = 0; first < columns.size(); first += kColumns) {
    if (first > 0) text += '\n';
    const size_t count = std::min(kColumns, columns.size() - first);
    draw(std::span(columns).subspan(first, count), text);
  }
  return text;
}

std::string latency_diagnosis(const LatencyMonitor::ByKind& events,
                              const LatencySettings& settings) {
  if (settings.threshold_ms == 0 && events.empty()) {
    return "Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> "
           "switches it on.\n";
  }
  if (events.empty()) return "No latency event has reached the threshold.\n";
  std::string text = "Events that took long:\n\n";
  const auto out = std::back_inserter(text);
  size_t number = 0;
  for (const auto& [kind, of_kind] : events) {
    const Summary summary = summary_of(of_kind);
    fmt::format_to(out,
                   "{}. {}: {} latency spikes (average {:.0f}ms, mean deviation {:.0f}ms, period "
                   "{:.2f} sec). Worst all time event {}ms.\n",
                   ++number, kind, of_kind.samples.size(), summary.average_ms,
                   summary.mean_deviation_ms, summary.period_s, of_kind.longest_ms);
  }
  text += "\nWhat may help:\n\n";
  if (events.contains("command") &&
      (settings.slowlog_slow_us < 0 || settings.slowlog_slow_us > settings.threshold_ms * 1000)) {
    fmt::format_to(out,
                   "- SLOWLOG keeps less than the latency monitor: CONFIG SET "
                   "slowlog-log-slower-than {}\n",
                   settings.threshold_ms * 1000);
  }
  std::string_view last;
  for (const auto& [kind, of_kind] : events) {
    const std::string_view advice = advice_on(kind);
    if (!advice.empty() && advice != last) fmt::format_to(out, "- {}\n", advice);
    last = advice;
  }
  return text;
}

}  // namespace server

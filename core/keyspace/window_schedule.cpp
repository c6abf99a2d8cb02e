// SPDX-License-Identifier: MIT
#include "core/keyspace/window_schedule.h"

namespace core::keyspace {

WindowSchedule& WindowSchedule::of_process() {
  static WindowSchedule schedule;
  return schedule;
}

void WindowSchedule::record(std::string_view key) {
  const std::scoped_lock lock(mutex_);
  std::string name(key);
  if (const auto found = plans_.find(name); found != plans_.end()) {
    by_time_.erase({found->second.due_ms, name});
    plans_.erase(found);
  }
  insert(std::move(name), {});
}

std::optional<WindowSchedule::Name> WindowSchedule::take_due(int64_t now_ms) {
  const std::scoped_lock lock(mutex_);
  if (now_ms < last_now_ms_) make_all_due();
  last_now_ms_ = now_ms;
  if (by_time_.empty() || by_time_.begin()->first > now_ms) return std::nullopt;
  const auto plan = plans_.find(by_time_.begin()->second);
  Name name{plan->first, plan->second.was_missing};
  by_time_.erase(by_time_.begin());
  plans_.erase(plan);
  size_.store(plans_.size(), std::memory_order_relaxed);
  return name;
}

void WindowSchedule::put_back(Name name, int64_t due_ms) {
  const std::scoped_lock lock(mutex_);
  if (!plans_.contains(name.key)) insert(std::move(name.key), {due_ms, name.was_missing});
}

void WindowSchedule::bring_all() {
  const std::scoped_lock lock(mutex_);
  make_all_due();
}

void WindowSchedule::make_all_due() {
  by_time_.clear();
  for (auto& [key, plan] : plans_) {
    plan.due_ms = 0;
    by_time_.emplace(0, key);
  }
}

void WindowSchedule::insert(std::string key, Plan plan) {
  by_time_.emplace(plan.due_ms, key);
  plans_.emplace(std::move(key), plan);
  size_.store(plans_.size(), std::memory_order_relaxed);
}

}  // namespace core::keyspace

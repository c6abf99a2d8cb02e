// SPDX-License-Identifier: MIT
//
// EtcdStore: simulates a member of etcd that keeps keys in memory, on a thread of its own. Supports
// ranges, prefixes, and transactions that compare revisions.
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base64.h"
#include "tests/server/cluster/scripted_etcd.h"

namespace server::cluster {

class EtcdStore {
 public:
  // Whether the connection ends before or after a change is executed.
  enum class HangUp { kNever, kBefore, kAfter };

  EtcdStore() : thread_([this] { io_.run(); }) {}
  ~EtcdStore() {
    io_.stop();
    thread_.join();
  }
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  std::string url() const { return etcd_.url(); }
  void put(const std::string& key, const std::string& value) {
    const std::scoped_lock lock(mutex_);
    keys_[key] = {value, ++revision_};
  }
  void remove(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    ++revision_;
    keys_.erase(key);
  }
  // Ends the connection at the next transaction that puts a key, instead of sending the reply.
  void hang_up_at_next_change(HangUp when) {
    const std::scoped_lock lock(mutex_);
    hang_up_ = when;
  }
  // Returns the value of the key, or "" if there is no such key.
  std::string value(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto found = keys_.find(key);
    return found == keys_.end() ? "" : found->second.value;
  }
  uint64_t revision() const {
    const std::scoped_lock lock(mutex_);
    return revision_;
  }

 private:
  struct Kept {
    std::string value;
    uint64_t mod_revision = 0;
  };

  static std::string text_of(const boost::json::object& object, std::string_view name) {
    const auto* const value = object.if_contains(name);
    return value == nullptr ? "" : std::string(value->as_string());
  }
  static std::string bytes_of(const boost::json::object& object, std::string_view name) {
    return core::decode_base64(text_of(object, name)).value_or("");
  }
  // REQUIRES for the functions below: mutex_ is locked.
  boost::json::object header() const { return {{"revision", std::to_string(revision_)}}; }
  boost::json::object range(const boost::json::object& asked) const {
    const std::string begin = bytes_of(asked, "key");
    const std::string end = bytes_of(asked, "range_end");
    boost::json::array kvs;
    for (const auto& [key, kept] : keys_) {
      if (end.empty() ? key != begin : key < begin || key >= end) continue;
      kvs.push_back(boost::json::object{{"key", core::encode_base64(key)},
                                        {"value", core::encode_base64(kept.value)},
                                        {"mod_revision", std::to_string(kept.mod_revision)}});
    }
    const std::string count = std::to_string(kvs.size());
    return {{"header", header()}, {"kvs", std::move(kvs)}, {"count", count}};
  }
  bool holds(const boost::json::object& compared) const {
    const auto found = keys_.find(bytes_of(compared, "key"));
    const uint64_t present = found == keys_.end() ? 0 : found->second.mod_revision;
    const std::string wanted = text_of(compared, "target") == "MOD"
                                   ? text_of(compared, "mod_revision")
                                   : text_of(compared, "create_revision");
    return std::to_string(present) == wanted;
  }
  boost::json::object txn(const boost::json::object& asked) {
    bool succeeds = true;
    for (const auto& compared : asked.at("compare").as_array()) {
      succeeds = succeeds && holds(compared.as_object());
    }
    // All puts of a transaction get the same revision.
    const uint64_t revision = revision_ + 1;
    boost::json::array responses;
    for (const auto& each : asked.at(succeeds ? "success" : "failure").as_array()) {
      const boost::json::object& operation = each.as_object();
      if (const auto* const put = operation.if_contains("request_put")) {
        keys_[bytes_of(put->as_object(), "key")] = {bytes_of(put->as_object(), "value"), revision};
        revision_ = revision;
        responses.push_back(
            boost::json::object{{"response_put", boost::json::object{{"header", header()}}}});
      } else {
        responses.push_back(boost::json::object{
            {"response_range", range(operation.at("request_range").as_object())}});
      }
    }
    return {{"header", header()}, {"succeeded", succeeds}, {"responses", std::move(responses)}};
  }
  std::string answer(const std::string& request) {
    const std::string body = request.substr(request.find("\r\n\r\n") + 4);
    const boost::json::object asked = boost::json::parse(body).as_object();
    const std::scoped_lock lock(mutex_);
    if (request.starts_with("POST /v3/kv/range ")) {
      return http_reply(boost::json::serialize(range(asked)));
    }
    if (request.starts_with("POST /v3/kv/txn ")) {
      const bool is_change = body.find("request_put") != std::string::npos;
      const HangUp when = is_change ? std::exchange(hang_up_, HangUp::kNever) : HangUp::kNever;
      if (when == HangUp::kBefore) return std::string(ScriptedEtcd::kHangUp);
      const std::string reply = http_reply(boost::json::serialize(txn(asked)));
      return when == HangUp::kAfter ? std::string(ScriptedEtcd::kHangUp) : reply;
    }
    return http_reply("404 page not found", "404 Not Found");
  }

  boost::asio::io_context io_;
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  ScriptedEtcd etcd_{io_, [this](const std::string& request) { return answer(request); }};
  mutable std::mutex mutex_;  // this mutex guards the members below
  std::map<std::string, Kept> keys_;
  uint64_t revision_ = 1;
  HangUp hang_up_ = HangUp::kNever;
  std::thread thread_;
};

}  // namespace server::cluster

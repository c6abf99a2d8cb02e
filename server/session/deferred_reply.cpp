// SPDX-License-Identifier: MIT
#include "server/session/deferred_reply.h"

#include <fmt/format.h>

#include <atomic>
#include <cassert>
#include <string>
#include <string_view>
#include <utility>

#include "core/number.h"
#include "server/session/clients.h"

namespace server {
namespace {

struct DeferredResult {
  std::string line;  // line of the reply; it is set before is_ready and constant afterwards
  std::atomic<bool> is_ready{false};
};

class AwaitedResult final : public AwaitedReply {
 public:
  explicit AwaitedResult(std::shared_ptr<const DeferredResult> result)
      : result_(std::move(result)) {}

  bool try_answer(protocol::ReplyWriter& reply, bool /*is_late*/) override {
    if (!result_->is_ready.load(std::memory_order_acquire)) return false;
    const std::string_view text = std::string_view(result_->line).substr(1);
    switch (result_->line.front()) {
      case '-':
        reply.error(text);
        break;
      case ':':
        reply.integer(core::parse_int64(text).value_or(0));
        break;
      default:
        reply.simple(text);
    }
    return true;
  }

 private:
  const std::shared_ptr<const DeferredResult> result_;
};

}  // namespace

DeferredReply defer_reply(const Clients& clients, uint64_t session_id) {
  const auto deferred = std::make_shared<DeferredResult>();
  const auto end_with = [deferred, &clients, session_id](std::string line) {
    assert(line.find_first_of("+-:") == 0);
    deferred->line = std::move(line);
    deferred->is_ready.store(true, std::memory_order_release);
    // The client may have disconnected before the reply was ready.
    const auto client = clients.find(session_id);
    if (client != nullptr && client->wake) client->wake();
  };
  const auto end = [end_with](const core::Result<>& result) {
    end_with(result ? "+OK" : fmt::format("-{}", result.error().message));
  };
  return {end, end_with, std::make_unique<AwaitedResult>(deferred)};
}

}  // namespace server

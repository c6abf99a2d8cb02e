// SPDX-License-Identifier: MIT
#include "server/session/deferred_reply.h"

#include <atomic>
#include <string>
#include <utility>

#include "server/session/clients.h"

namespace server {
namespace {

struct DeferredResult {
  std::string error;  // none: OK. Fixed before it is ready.
  std::atomic<bool> is_ready{false};
};

class AwaitedResult final : public AwaitedReply {
 public:
  explicit AwaitedResult(std::shared_ptr<const DeferredResult> result)
      : result_(std::move(result)) {}

  bool try_answer(protocol::ReplyWriter& reply, bool /*is_late*/) override {
    if (!result_->is_ready.load(std::memory_order_acquire)) return false;
    if (result_->error.empty()) {
      reply.ok();
    } else {
      reply.error(result_->error);
    }
    return true;
  }

 private:
  const std::shared_ptr<const DeferredResult> result_;
};

}  // namespace

DeferredReply defer_reply(const Clients& clients, uint64_t session_id) {
  const auto deferred = std::make_shared<DeferredResult>();
  const auto end = [deferred, &clients, session_id](const core::Result<>& result) {
    if (!result) deferred->error = result.error().message;
    deferred->is_ready.store(true, std::memory_order_release);
    // The client may have gone meanwhile.
    const auto session = clients.find(session_id);
    if (session != nullptr && session->wake) session->wake();
  };
  return {end, std::make_unique<AwaitedResult>(deferred)};
}

}  // namespace server

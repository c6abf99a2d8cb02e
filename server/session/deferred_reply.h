// SPDX-License-Identifier: MIT
//
// DeferredReply: the reply of a command whose work another thread ends: OK, or an error.
//
// Thread safety: `end` may be called from any thread, also after the session has gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/result.h"
#include "server/session/awaited_reply.h"

namespace server {

class Clients;

struct DeferredReply {
  std::function<void(const core::Result<>&)> end;  // to be called once
  std::unique_ptr<AwaitedReply> awaited;           // for Context::await(), outside EXEC
};

// `clients` must outlive the call of `end`.
DeferredReply defer_reply(const Clients& clients, uint64_t session_id);

}  // namespace server

// SPDX-License-Identifier: MIT
#include "server/admin/write_caller.h"

#include <span>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "protocol/reply_parser.h"
#include "server/base/metrics/statistics.h"
#include "server/commands/services.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/registry.h"
#include "server/net/loop/reply_gate.h"
#include "server/session/session.h"

namespace server::admin {
namespace {

// PendingWrite: runs one command, and delays its reply until the append log contains the write.
class PendingWrite final : public net::ReplySink {
 public:
  PendingWrite(std::vector<std::string> words, WriteCaller::OnReply on_reply)
      : words_(std::move(words)), on_reply_(std::move(on_reply)) {}

  Session& session() { return session_; }

  void run(Services& services, net::ReplyGate& gate, ThreadStatistics& counters) {
    const std::vector<std::string_view> words(words_.begin(), words_.end());
    Dispatcher dispatcher(services, counters, session_);
    const size_t begin = gate.replies().size();
    const CommandResult result = dispatcher.execute_alone(
        {.args = words, .command = services.registry.find_replayed(words[0])},
        services.clock.wall_ms(), gate.replies());
    dispatcher.end_session();
    if (result.outcome == Outcome::kHeldBack || result.outcome == Outcome::kBlocked) {
      gate.drop_fresh();
      return on_reply_(error_reply("BUSY Commands are held back at the moment"));
    }
    if (result.may_have_written) gate.record_write(begin);
    gate.add(*this);
    gate.flush();
  }

  void send(std::string_view replies, protocol::OutputBuffer* /*whole*/) override {
    protocol::ReplyParser parser;
    const bool is_whole = parser.parse(replies) == protocol::ReplyParser::Status::kReply;
    on_reply_(is_whole ? std::move(parser.reply()) : error_reply("ERR the reply is too long"));
  }
  void hold(std::string_view replies, std::span<const net::ReplySpan> /*writes*/,
            protocol::OutputBuffer* /*whole*/) override {
    held_ = replies;
  }
  void release(std::string_view error) override {
    if (error.empty()) return send(held_, nullptr);
    on_reply_(error_reply(error));
  }
  void close() override {
    on_reply_(error_reply("ERR this server has lost its permit: the write may not have happened"));
  }

 private:
  const std::vector<std::string> words_;
  const WriteCaller::OnReply on_reply_;
  Session session_{0};
  std::string held_;
};

}  // namespace

void WriteCaller::call(const CommandCaller::Caller& caller, std::vector<std::string> words,
                       OnReply on_reply) {
  const auto write = std::make_shared<PendingWrite>(std::move(words), std::move(on_reply));
  begin_session(write->session(), caller, services_);
  post_([&services = services_, write](net::ReplyGate& gate, ThreadStatistics& counters) {
    write->run(services, gate, counters);
  });
}

}  // namespace server::admin

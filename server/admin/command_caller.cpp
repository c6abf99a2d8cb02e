// SPDX-License-Identifier: MIT
#include "server/admin/command_caller.h"

#include "core/clock.h"
#include "protocol/output_buffer.h"
#include "protocol/reply_parser.h"
#include "server/cluster/cluster_state.h"
#include "server/commands/services.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/registry.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"
#include "server/session/session_user.h"

namespace server::admin {

protocol::Reply error_reply(std::string_view text) {
  protocol::Reply reply;
  reply.type = protocol::Reply::Type::kError;
  reply.text = text;
  return reply;
}

void begin_session(Session& session, const CommandCaller::Caller& caller, Services& services) {
  session.client->resp = protocol::RespVersion::kResp3;
  session.client->address = caller.address;
  session.client->created_us = services.clock.monotonic_us();
  session.client->database = caller.database;
  session.authenticated = true;
  set_user(session, caller.user, services.users.version());
}

CommandCaller::CommandCaller(Services& services)
    : services_(services), uncounted_(services.registry.size()) {}

protocol::Reply CommandCaller::call(const Caller& caller,
                                    std::span<const std::string_view> arguments) {
  const RegisteredCommand* const command = services_.registry.find_replayed(arguments);
  if (command == nullptr || command->has(kWrite | kMayReplicate | kInJournal)) {
    return error_reply("ERR a command that does not only read");
  }
  Session session(0);
  begin_session(session, caller, services_);
  session.client->view_index = services_.cluster.admin_thread();
  session.client->no_touch = true;
  Dispatcher dispatcher(services_, uncounted_, session);
  protocol::OutputBuffer replies;
  const Request request{.args = arguments,
                        .command = services_.registry.find_replayed(arguments[0])};
  const Outcome outcome =
      dispatcher.execute_alone(request, services_.clock.wall_ms(), replies).outcome;
  dispatcher.end_session();
  if (outcome == Outcome::kHeldBack || outcome == Outcome::kBlocked) {
    return error_reply("BUSY Commands are held back at the moment");
  }
  protocol::ReplyParser parser;
  if (parser.parse(replies.view()) != protocol::ReplyParser::Status::kReply) {
    return error_reply("ERR the reply is too long");
  }
  return std::move(parser.reply());
}

}  // namespace server::admin

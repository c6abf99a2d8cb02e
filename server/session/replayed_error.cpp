// SPDX-License-Identifier: MIT
#include "server/session/replayed_error.h"

#include <limits>
#include <utility>

#include "protocol/arguments.h"
#include "protocol/error_texts.h"
#include "protocol/reply_parser.h"

namespace server {
namespace {

ReplayedError replayed_error(CommandOrigin origin, std::string_view name, std::string_view error) {
  ReplayedError replayed{.text = std::string(error)};
  replayed.is_unknown_command = error.starts_with(protocol::kUnknownCommand);
  replayed.is_missing_database = error == protocol::kNotADatabase;
  replayed.loses_data = origin == CommandOrigin::kOwnJournal || replayed.is_missing_database ||
                        protocol::error_code(error) == protocol::kOutOfMemoryCode ||
                        protocol::equals_ignore_case(name, "SELECT");
  return replayed;
}

// Returns the reply if it is an error, or its first element that is an error; null if there is
// none.
const protocol::Reply* first_error(const protocol::Reply& reply) {
  if (reply.is_error()) return &reply;
  for (const protocol::Reply& element : reply.elements) {
    if (const auto* error = first_error(element)) return error;
  }
  return nullptr;
}

}  // namespace

std::optional<ReplayedError> find_error(CommandOrigin origin, std::string_view name,
                                        std::string_view reply) {
  if (reply.starts_with('-')) {
    return replayed_error(origin, name, reply.substr(1, reply.find('\r') - 1));
  }
  // This is a fast path: hardly any reply contains the first bytes of an error element.
  if (origin != CommandOrigin::kOwnJournal || !reply.starts_with('*') ||
      reply.find("\r\n-") == std::string_view::npos) {
    return std::nullopt;
  }
  const auto read = read_reply(reply);
  return read ? find_error(origin, name, *read) : std::nullopt;
}

std::optional<ReplayedError> find_error(CommandOrigin origin, std::string_view name,
                                        const protocol::Reply& reply) {
  const bool looks_inside = origin == CommandOrigin::kOwnJournal;
  const protocol::Reply* const error =
      looks_inside ? first_error(reply) : (reply.is_error() ? &reply : nullptr);
  if (error == nullptr) return std::nullopt;
  return replayed_error(origin, name, error->text);
}

std::optional<protocol::Reply> read_reply(std::string_view bytes) {
  protocol::Limits limits;
  limits.bulk_size_max_bytes = std::numeric_limits<size_t>::max();
  protocol::ReplyParser parser(limits);
  if (parser.parse(bytes) != protocol::ReplyParser::Status::kReply) return std::nullopt;
  return std::move(parser.reply());
}

}  // namespace server

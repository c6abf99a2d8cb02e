// SPDX-License-Identifier: MIT
#include "protocol/reply_parser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/number.h"

namespace protocol {
namespace {

using Type = Reply::Type;

constexpr size_t kLineEndSize = 2;
constexpr size_t kVerbatimPrefixSize = 4;  // size of a prefix such as "txt:"

// The first bytes of replies, in the order of Reply::Type.
constexpr std::string_view kMarks = "_+-:$*#,(!=%~>|";
static_assert(kMarks.size() == static_cast<size_t>(Type::kAttribute) + 1);

bool is_bulk(Type type) {
  return type == Type::kBulk || type == Type::kBulkError || type == Type::kVerbatim;
}

bool is_aggregate(Type type) {
  return type == Type::kArray || type == Type::kMap || type == Type::kSet || type == Type::kPush ||
         type == Type::kAttribute;
}

bool has_pairs(Type type) {
  return type == Type::kMap || type == Type::kAttribute;
}

bool is_big_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

ReplyParser::Status ReplyParser::parse(std::string_view buffered) {
  consumed_ = 0;
  for (;;) {
    switch (error_.empty() ? read_one(buffered.substr(consumed_)) : Step::kError) {
      case Step::kContinue:
        break;
      case Step::kReply:
        return Status::kReply;
      case Step::kNeedMore:
        return Status::kNeedMore;
      case Step::kError:
        return Status::kError;
    }
  }
}

// Reads a scalar or the header of an aggregate.
ReplyParser::Step ReplyParser::read_one(std::string_view rest) {
  if (rest.empty()) return Step::kNeedMore;
  const size_t mark = kMarks.find(rest.front());
  if (mark == std::string_view::npos) return fail("unknown reply type");
  const auto type = static_cast<Type>(mark);
  const size_t line_end = rest.find('\r', searched_);
  searched_ = std::min(line_end, rest.size());
  if (searched_ > limits_.inline_size_max_bytes) return fail("too long line");
  if (line_end == std::string_view::npos || rest.size() - line_end < kLineEndSize) {
    return Step::kNeedMore;
  }
  if (rest[line_end + 1] != '\n') return fail("CR without LF");
  const std::string_view text = rest.substr(1, line_end - 1);
  Reply reply;
  reply.type = type;
  if (is_bulk(type) && text != "-1") {
    return read_bulk(std::move(reply), rest, line_end + kLineEndSize);
  }
  consumed_ += line_end + kLineEndSize;
  searched_ = 0;
  if (is_aggregate(type) && text != "-1") return open_aggregate(std::move(reply), text);
  if (!read_scalar(reply, text)) return fail("malformed value");
  return deliver(std::move(reply));
}

// Consumes nothing until the whole string has arrived. Until then each call reads the short header
// of the string again.
ReplyParser::Step ReplyParser::read_bulk(Reply reply, std::string_view rest, size_t line_size) {
  const auto size = core::parse_int64(rest.substr(1, line_size - kLineEndSize - 1));
  if (!size || *size < 0 || static_cast<size_t>(*size) > limits_.bulk_size_max_bytes) {
    return fail("invalid bulk length");
  }
  const size_t text_size = static_cast<size_t>(*size);
  if (rest.size() - line_size < text_size + kLineEndSize) return Step::kNeedMore;
  std::string_view text = rest.substr(line_size, text_size);
  if (rest.substr(line_size + text_size, kLineEndSize) != "\r\n") {
    return fail("bulk string without line end");
  }
  if (reply.type == Type::kVerbatim) {
    if (text_size < kVerbatimPrefixSize || text[kVerbatimPrefixSize - 1] != ':') {
      return fail("malformed verbatim string");
    }
    reply.format = text.substr(0, kVerbatimPrefixSize - 1);
    text.remove_prefix(kVerbatimPrefixSize);
  }
  reply.text = text;
  consumed_ += line_size + text_size + kLineEndSize;
  searched_ = 0;
  return deliver(std::move(reply));
}

ReplyParser::Step ReplyParser::open_aggregate(Reply reply, std::string_view count_text) {
  const auto count = core::parse_int64(count_text);
  if (!count || *count < 0 || static_cast<size_t>(*count) > limits_.argument_count_max) {
    return fail("invalid aggregate length");
  }
  if (open_.size() >= limits_.reply_depth_max) return fail("nested too deeply");
  // The product below fits in a size_t of 64 bits, because the count is at most 2^63 - 1.
  const size_t pairs = has_pairs(reply.type) ? 2 : 1;
  if (*count == 0) return deliver(std::move(reply));
  // A preceding attribute belongs to the aggregate, not to its first element.
  reply.attributes = std::exchange(pending_attributes_, {});
  open_.push_back({std::move(reply), static_cast<size_t>(*count) * pairs});
  return Step::kContinue;
}

// Returns false if `text` is not a valid value of the reply's type.
bool ReplyParser::read_scalar(Reply& reply, std::string_view text) {
  switch (reply.type) {
    case Type::kSimple:
    case Type::kError:
      reply.text = text;
      return text.find('\n') == std::string_view::npos;
    case Type::kInteger: {
      const auto value = core::parse_int64(text);
      reply.integer = value.value_or(0);
      return value.has_value();
    }
    case Type::kNull:
      return text.empty();
    case Type::kBoolean:
      reply.integer = text == "t" ? 1 : 0;
      return text == "t" || text == "f";
    case Type::kDouble: {
      const bool is_nan = text == "nan" || text == "-nan";
      const auto value = is_nan ? std::nan("") : core::parse_double(text);
      reply.number = value.value_or(0);
      reply.text = text;
      return value.has_value();
    }
    case Type::kBigNumber:
      reply.text = text;
      return is_big_number(text);
    case Type::kBulk:
    case Type::kArray:
      // RESP2's null replies are "$-1" and "*-1".
      reply.type = Type::kNull;
      return true;
    default:
      return false;
  }
}

// Adds a finished value to its aggregate, which may complete enclosing aggregates.
ReplyParser::Step ReplyParser::deliver(Reply reply) {
  if (reply.attributes.empty()) reply.attributes = std::exchange(pending_attributes_, {});
  for (;;) {
    if (reply.type == Type::kAttribute) {
      pending_attributes_ = std::move(reply.elements);
      return Step::kContinue;
    }
    if (open_.empty()) {
      reply_ = std::move(reply);
      return Step::kReply;
    }
    Frame& parent = open_.back();
    parent.reply.elements.push_back(std::move(reply));
    if (--parent.elements_left > 0) return Step::kContinue;
    reply = std::move(parent.reply);
    open_.pop_back();
  }
}

ReplyParser::Step ReplyParser::fail(std::string_view reason) {
  error_ = reason;
  open_.clear();
  return Step::kError;
}

}  // namespace protocol

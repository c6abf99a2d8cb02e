// SPDX-License-Identifier: MIT
#include "server/commands/keys/scan_arguments.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

namespace server {
namespace {

// Parses the cursor of SCAN. As in Redis, everything that strtoul() parses completely is accepted,
// even a sign or an empty text. The only exception is leading space.
std::optional<uint64_t> parse_cursor(std::string_view text) {
  const std::string copy(text);
  if (!copy.empty() && std::isspace(static_cast<unsigned char>(copy[0])) != 0) return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const unsigned long long cursor = std::strtoull(copy.c_str(), &end, 10);
  if (*end != '\0' || errno == ERANGE) return std::nullopt;
  return cursor;
}

}  // namespace

ScanArguments parse_scan(const Context& ctx, bool knows_type) {
  ScanArguments scan;
  scan.options.locking = ctx.locking();
  protocol::ArgumentCursor cursor(ctx.args.subspan(1));
  const auto position = parse_cursor(cursor.next());
  if (!position) cursor.fail(kInvalidCursor);
  scan.options.cursor = position.value_or(0);
  while (!cursor.done()) {
    if (cursor.eat_keyword("COUNT")) {
      const int64_t count = cursor.take_int64();
      if (count < 1) cursor.fail(kSyntaxError);
      scan.options.count = static_cast<size_t>(count);
    } else if (cursor.eat_keyword("MATCH")) {
      scan.pattern = cursor.next();
    } else if (knows_type && cursor.eat_keyword("TYPE")) {
      scan.type = cursor.next();
    } else {
      cursor.fail(kSyntaxError);
    }
  }
  scan.error = cursor.error();
  return scan;
}

}  // namespace server

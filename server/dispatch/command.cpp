// SPDX-License-Identifier: MIT
#include "server/dispatch/command.h"

#include <algorithm>

#include "core/number.h"
#include "protocol/arguments.h"

namespace server {
namespace {

int last_counted_key(const KeyRange& range, Arguments args) {
  const auto argument_count = static_cast<int64_t>(args.size());
  if (range.count_at >= argument_count) return range.first - 1;
  const auto key_count = core::parse_int64(args[static_cast<size_t>(range.count_at)]);
  const int64_t places = (argument_count - range.first + range.step - 1) / range.step;
  if (!key_count || *key_count < 1 || *key_count > places) return range.first - 1;
  return range.first + static_cast<int>(*key_count - 1) * range.step;
}

// Returns the index of the first argument from `begin` on that equals `word`. A secret, such as a
// password, is never the word. Returns the number of arguments if no argument is the word.
size_t find_word(std::string_view word, Arguments args, int begin, HidesArgument hides) {
  auto at = static_cast<size_t>(begin);
  const auto is_word = [&] {
    return protocol::equals_ignore_case(args[at], word) && (hides == nullptr || !hides(args, at));
  };
  while (at < args.size() && !is_word()) ++at;
  return std::min(at, args.size());
}

bool is_replaced_by_keyword(const KeyRange& range, Arguments args, HidesArgument hides) {
  if (range.empty_before.empty()) return false;
  const auto first = static_cast<size_t>(range.first);
  return first < args.size() && args[first].empty() &&
         find_word(range.empty_before, args, range.first, hides) < args.size();
}

}  // namespace

int first_key_behind_keyword(const KeyRange& range, Arguments args, HidesArgument hides) {
  return static_cast<int>(find_word(range.keyword, args, range.first, hides)) + 1;
}

int last_key_of(const KeyRange& range, Arguments args, HidesArgument hides) {
  if (range.count_at != 0) return last_counted_key(range, args);
  if (is_replaced_by_keyword(range, args, hides)) return range.first - 1;
  const auto argument_count = static_cast<int>(args.size());
  int last = range.last >= 0 ? range.last : argument_count + range.last;
  if (last >= argument_count) last = argument_count - 1;
  const bool has_option = !range.option.empty() && last > range.first &&
                          protocol::equals_ignore_case(args.back(), range.option);
  return has_option ? last - 1 : last;
}

}  // namespace server

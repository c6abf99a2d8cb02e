// SPDX-License-Identifier: MIT
#include "server/dispatch/command.h"

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

}  // namespace

int last_key_of(const KeyRange& range, Arguments args) {
  if (range.count_at != 0) return last_counted_key(range, args);
  const auto argument_count = static_cast<int>(args.size());
  int last = range.last >= 0 ? range.last : argument_count + range.last;
  if (last >= argument_count) last = argument_count - 1;
  const bool has_option = !range.option.empty() && last > range.first &&
                          protocol::equals_ignore_case(args.back(), range.option);
  return has_option ? last - 1 : last;
}

}  // namespace server

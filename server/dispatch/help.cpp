// SPDX-License-Identifier: MIT
#include "server/dispatch/help.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "server/dispatch/context.h"

namespace server {

/* CLIENT HELP */
void container_help(Context& ctx) {
  const RegisteredCommand& container = *ctx.command->container;
  std::vector<std::string> lines{
      fmt::format("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                  protocol::upper_case(container.row->name))};
  for (const RegisteredCommand* subcommand : container.subcommands) {
    const Command& row = *subcommand->row;
    std::string line = protocol::upper_case(row.name);
    if (!row.syntax.empty()) line += fmt::format(" {}", row.syntax);
    lines.push_back(std::move(line));
    lines.push_back(fmt::format("    {}.", row.summary));
  }
  ctx.reply.array(lines.size());
  for (const std::string& line : lines) ctx.reply.simple(line);
}

Command help_row(const Command& container) {
  uint32_t categories = ~uint32_t{0};
  for (const Command& subcommand : container.subcommands) categories &= subcommand.categories;
  return {
      .name = "help",
      .arity = 2,
      .flags = kLoading | kStale,
      .categories = categories,
      .group = container.group,
      .since = "5.0.0",
      .summary = "Prints this help",
      .complexity = "O(1)",
      .handler = container_help,
  };
}

}  // namespace server

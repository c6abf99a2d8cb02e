// SPDX-License-Identifier: MIT
#include "server/base/config/command_line.h"

#include <fmt/format.h>

#include <optional>

#include "core/number.h"
#include "server/base/config/words.h"

namespace server {
namespace {

bool is_option_name(const std::string& argument) {
  return argument.starts_with("--");
}

// Collects options as lines. An argument that is only an option name is followed by the value. The
// value may begin with "--", as a password may.
class OptionLines {
 public:
  void add(const std::string& argument, bool more_follow, bool next_is_option) {
    if (expects_value_ || !is_option_name(argument)) {
      text_ += quote_word(argument) + ' ';
      expects_value_ = false;
      return;
    }
    if (!text_.empty()) text_ += '\n';
    // The argument is appended without quotes, so that `"--port 7000"` in one argument works as in
    // Redis.
    text_ += argument.substr(2) + ' ';
    const auto words = split_words(argument);
    const bool lone_name = words && words->size() == 1;
    if (lone_name && lower_case(words->front()) == "--save" && (!more_follow || next_is_option)) {
      text_ += "\"\"";
      return;
    }
    expects_value_ = lone_name;
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  bool expects_value_ = false;
};

bool names_a_path(const std::string& argument) {
  return !argument.empty() && !is_option_name(argument);
}

CommandLine wrong_call(Launch launch, std::string_view reason, std::string_view usage) {
  return {
      .launch = launch,
      .usage_error = fmt::format("bloomery-server: {}\nUsage: bloomery-server {}", reason, usage)};
}

// Returns the tool mode that the arguments select; nullopt if they start a server.
std::optional<CommandLine> parse_tool(std::span<const std::string> arguments) {
  const std::string& first = arguments.front();
  if (first == "-v" || first == "--version") {
    const bool is_sound =
        arguments.size() == 1 || (arguments.size() == 2 && arguments[1] == "--json");
    if (is_sound) return CommandLine{.launch = Launch::kShowVersion};
    return wrong_call(Launch::kShowVersion, first + " takes only --json",
                      "-v or --version [--json]");
  }
  if (first == "-h" || first == "--help") {
    if (arguments.size() == 1) return CommandLine{.launch = Launch::kShowHelp};
    return wrong_call(Launch::kShowHelp, first + " takes no arguments", "-h or --help");
  }
  if (first == "--check-rdb") {
    const bool is_sound = arguments.size() == 2 && names_a_path(arguments[1]);
    if (is_sound) return CommandLine{.launch = Launch::kCheckSnapshot};
    return wrong_call(Launch::kCheckSnapshot, "--check-rdb takes one path", "--check-rdb dump.rdb");
  }
  if (first == "--check-aof") {
    if (!parse_log_check(arguments).path.empty()) return CommandLine{.launch = Launch::kCheckLog};
    return wrong_call(
        Launch::kCheckLog, "--check-aof takes one path",
        "--check-aof appendonly.aof.manifest [--fix|--truncate-to-timestamp SECONDS]");
  }
  if (first == "--build-filter") return CommandLine{.launch = Launch::kBuildFilter};
  if (first == "--export-rdb") return CommandLine{.launch = Launch::kExportSnapshot};
  return std::nullopt;
}

}  // namespace

LogCheck parse_log_check(std::span<const std::string> arguments) {
  LogCheck check;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "--fix" && !check.cuts_torn_end) {
      check.cuts_torn_end = true;
    } else if (arguments[i] == "--truncate-to-timestamp" && !check.keeps_until_s &&
               i + 1 < arguments.size()) {
      const auto second = core::parse_int64(arguments[++i]);
      if (!second || *second <= 0) return {};
      check.keeps_until_s = static_cast<uint64_t>(*second);
    } else if (names_a_path(arguments[i]) && check.path.empty()) {
      check.path = arguments[i];
    } else {
      return {};
    }
  }
  return check;
}

CommandLine parse_command_line(std::span<const std::string> arguments) {
  CommandLine command_line;
  if (arguments.empty()) return command_line;
  const std::string& first = arguments.front();
  if (auto tool = parse_tool(arguments)) return *std::move(tool);
  if (first == "--health-check") {
    command_line = parse_command_line(arguments.subspan(1));
    command_line.launch = Launch::kCheckHealth;
    return command_line;
  }
  size_t next = 0;
  if (!first.starts_with('-')) {
    command_line.config_path = first;
    next = 1;
  }
  OptionLines lines;
  for (size_t i = next; i < arguments.size(); ++i) {
    const bool more_follow = i + 1 < arguments.size();
    if (arguments[i] == "-" && (i == 0 || !more_follow)) {
      command_line.reads_stdin = true;
      continue;
    }
    lines.add(arguments[i], more_follow, more_follow && is_option_name(arguments[i + 1]));
  }
  command_line.options_text = lines.take();
  return command_line;
}

std::string_view help_text() {
  return
      R"(Usage: bloomery-server [/path/to/bloomery.conf] [--option value ...] [-]
       bloomery-server - (read the configuration from standard input)
       bloomery-server --check-rdb /path/to/dump.rdb (list its contents and check it)
       bloomery-server --check-aof /path/to/appendonly.aof.manifest [--fix] (--fix cuts a torn end)
                       [--truncate-to-timestamp s] (cut commands written after this Unix time)
       bloomery-server --build-filter out.rdb --error e [--capacity n] [--layout l]
                       [--native-version 1|2] [--key k] [--records lines|length32] < items.txt
                       (write a snapshot of one filter)
       bloomery-server --export-rdb dump.rdb out.rdb [--target redis|redisbloom|valkey-bloom]
                       [--overwrite] (copy the keys that another server can load, list the others)
       bloomery-server --health-check [--alive] [/path/to/bloomery.conf] [--option value ...]
                       (ask the server of these options whether it serves, or is alive)
       bloomery-server -v or --version [--json]
       bloomery-server -h or --help

Every directive of the configuration file is also an option: `port 7000` is `--port 7000`.
Options override the file, and later ones override earlier ones.

Examples:
       bloomery-server
       bloomery-server /etc/bloomery/bloomery.conf
       bloomery-server --port 7777 --bind 127.0.0.1 ::1 --save ""
       echo 'maxmemory 128mb' | bloomery-server -
       bloomery-server /etc/bloomery/bloomery.conf --loglevel verbose -
)";
}

}  // namespace server

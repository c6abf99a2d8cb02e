// SPDX-License-Identifier: MIT
//
// The rows of unsupported directives that restrict access, or that select a file to load. Ignoring
// them would be dangerous. A value other than the default makes the start fail, and CONFIG SET
// rejects it.
#include <fmt/format.h>

#include <algorithm>

#include "server/base/config/option_table.h"
#include "server/base/config/words.h"

namespace server {
namespace {

struct RefusedRow {
  std::string_view name, default_text;
  // The advice is a part of the error text. It states what the operator can do instead.
  std::string_view advice;
};

constexpr RefusedRow kRows[] = {
    {"preload-file", "", "put the file under dir as dbfilename, or in appenddirname"},
    {"tls-auth-clients-user", "off",
     "a certificate admits a connection here and names no user: give the clients a password and "
     "AUTH"},
    {"tls-expected-peer-name", "",
     "the certificates of peers are checked against tls-ca-cert-file, without their names"},
};

Parsed<Value> parse_only_default(const Option& option, Words words, const std::string&) {
  if (words.size() == 1 && lower_case(words[0]) == option.default_text) {
    return Value{option.default_text, 0};
  }
  const auto row = std::ranges::find(kRows, option.name, &RefusedRow::name);
  const std::string_view shown = row->default_text.empty() ? "\"\"" : row->default_text;
  return Refusal{
      fmt::format("only {} is supported: this server cannot do what another value asks for; {}",
                  shown, row->advice)};
}

}  // namespace

std::string_view combination_fault(const std::function<std::string(std::string_view)>& text_of) {
  const bool is_unencrypted = text_of("cluster-enabled") == "yes" &&
                              text_of("tls-cluster") == "yes" && text_of("tls-replication") == "no";
  if (!is_unencrypted) return {};
  return "tls-cluster yes needs tls-replication yes: that encrypts all links between nodes here";
}

std::vector<Option> refused_options() {
  std::vector<Option> options;
  for (const RefusedRow& row : kRows) {
    options.push_back({.name = row.name,
                       .kind = OptionKind::kString,
                       .default_text = std::string(row.default_text),
                       .inert = true,
                       .parser = parse_only_default});
  }
  return options;
}

}  // namespace server

// SPDX-License-Identifier: MIT
#include "server/cluster_tool/tool_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/printable.h"

namespace server::cluster {
namespace {

constexpr int kUsageError = 2;

// The arguments as text, before they are parsed.
struct Texts {
  std::vector<std::string> nodes;
  std::string node;
  std::string to;
};

void describe_common(CLI::App& app, ToolCall& call) {
  app.set_version_flag("--version", "bloomery-cluster " BLOOMERY_VERSION);
  app.add_option("--etcd", call.endpoints, "URLs of etcd's members, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required();
  app.add_option("--cluster", call.cluster, "The cluster's name")->capture_default_str();
  CLI::Option* user = app.add_option("--user", call.user, "User of etcd");
  CLI::Option* password =
      app.add_option("--password-file", call.password_file, "Its password, on the first line")
          ->needs(user);
  user->needs(password);
  app.add_option("--cacert", call.ca_file, "CA certificates that etcd's are checked against");
  CLI::Option* etcd_cert = app.add_option("--cert", call.cert_file, "Certificate to show to etcd");
  CLI::Option* etcd_key = app.add_option("--key", call.key_file, "Its key")->needs(etcd_cert);
  etcd_cert->needs(etcd_key);
  app.add_option("--node-user", call.access.user, "User of the servers");
  app.add_option("--node-password-file", call.node_password_file,
                 "Its password, on the first line; default: $REDISCLI_AUTH");
  CLI::Option* tls = app.add_flag("--node-tls", call.access.uses_tls, "Reach the servers by TLS");
  app.add_option("--node-cacert", call.access.ca_file,
                 "CA certificates that theirs are checked against")
      ->needs(tls);
  CLI::Option* cert =
      app.add_option("--node-cert", call.access.cert_file, "Certificate to show them")->needs(tls);
  CLI::Option* key = app.add_option("--node-key", call.access.key_file, "Its key")->needs(cert);
  cert->needs(key);
  app.add_flag("--json", call.as_json, "Write the status as JSON");
  app.require_subcommand(1);
}

void describe_commands(CLI::App& app, ToolCall& call, Texts& texts) {
  CLI::App* create = app.add_subcommand("create", "Make a cluster of empty servers");
  create->add_option("--replicas", call.replicas, "Replicas of each shard")->capture_default_str();
  create->add_option("nodes", texts.nodes, "HOST:PORT of each; the first ones lead")->required();
  app.add_subcommand("status", "Show shards and nodes");
  CLI::App* add = app.add_subcommand("add", "Add an empty server as a replica");
  add->add_option("node", texts.node, "HOST:PORT")->required();
  add->add_option("--shard", call.shard, "Its shard; default: that with the fewest members");
  CLI::App* remove = app.add_subcommand("remove", "Take a replica out");
  remove->add_option("node", texts.node, "HOST:PORT")->required();
  CLI::App* failover = app.add_subcommand("failover", "Give a shard another leader");
  failover->add_option("shard", call.shard, "Its name")->required();
  failover->add_option("--to", texts.to, "HOST:PORT of the new leader");
  failover->add_flag("--force", call.force, "Do not ask the old leader");
  CLI::App* replace =
      app.add_subcommand("replace", "Give a shard whose data are lost an empty leader");
  replace->add_option("shard", call.shard, "Its name")->required();
  replace->add_option("node", texts.node, "HOST:PORT of an empty server")->required();
  replace->add_flag("--accept-loss", call.accepts_loss, "The shard's data may be lost");
  CLI::App* recover =
      app.add_subcommand("recover", "Put the newest topology that a server keeps back into etcd");
  recover->add_option("nodes", texts.nodes, "HOST:PORT of a server, or of several")->required();
  recover->add_flag("--yes", call.is_confirmed, "Write it; without, only show what would be done");
  CLI::App* backup =
      app.add_subcommand("backup", "Save the topology and a snapshot of each shard's leader");
  backup->add_option("directory", call.directory, "A new directory")->required();
  CLI::App* restore = app.add_subcommand("restore", "Make a cluster with the topology of a backup");
  restore->add_option("directory", call.directory, "That of the backup")->required();
  restore
      ->add_option("nodes", texts.nodes,
                   "HOST:PORT of each; the first ones hold the shards' keys, the others are empty")
      ->required();
  // Options of the program are accepted after the command, too.
  for (CLI::App* command : app.get_subcommands({})) command->fallthrough();
}

ToolUsage usage_error(std::string_view text) {
  return {kUsageError, {}, fmt::format("{}\n", text)};
}

// Returns the error for the first word that is neither a command nor a known option.
ToolUsage unknown_word(std::string_view word) {
  const std::string_view kind = word.starts_with('-') ? "option" : "command";
  return usage_error(
      fmt::format("there is no {} '{}'; --help lists the {}s", kind, core::printable(word), kind));
}

bool uses_https(const std::vector<std::string>& endpoints) {
  return std::ranges::any_of(endpoints,
                             [](const std::string& url) { return url.starts_with("https://"); });
}

}  // namespace

std::variant<ToolCall, ToolUsage> parse_tool_call(std::vector<std::string> words) {
  ToolCall call;
  Texts texts;
  CLI::App app("Makes and changes clusters of bloomery-server; docs/cluster.md shows how.",
               "bloomery-cluster");
  describe_common(app, call);
  describe_commands(app, call, texts);
  try {
    std::ranges::reverse(words);  // CLI11 expects the arguments in reverse order
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    // Without a command, CLI11 would only report that a command is missing.
    if (const auto unknown = app.remaining();
        error.get_exit_code() != 0 && app.get_subcommands().empty() && !unknown.empty()) {
      return unknown_word(unknown.front());
    }
    std::ostringstream out;
    std::ostringstream err;
    const int exit_code = app.exit(error, out, err) == 0 ? 0 : kUsageError;
    return ToolUsage{exit_code, out.str(), err.str()};
  }
  call.command = app.get_subcommands().front()->get_name();
  const std::pair<std::string_view, std::string> files[] = {{"--cacert", call.ca_file},
                                                            {"--cert", call.cert_file}};
  for (const auto& [option, file] : files) {
    if (file.empty() || uses_https(call.endpoints)) continue;
    return usage_error(
        fmt::format("{} needs an https:// URL in --etcd: http has no certificates", option));
  }
  if (!texts.node.empty()) texts.nodes.push_back(texts.node);
  const bool names_target = !texts.to.empty();
  if (names_target) texts.nodes.push_back(texts.to);
  for (const std::string& text : texts.nodes) {
    auto address = parse_address(text);
    if (!address) return usage_error(core::without_code(address.error().message));
    call.nodes.push_back(*std::move(address));
  }
  if (names_target) {
    call.to = call.nodes.back();
    call.nodes.pop_back();
  }
  return call;
}

}  // namespace server::cluster

// SPDX-License-Identifier: MIT
//
// bloomery-cluster: creates and changes the topology of a cluster, which is stored in etcd.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/printable.h"
#include "persistence/files/file.h"
#include "server/cluster_tool/cluster_tool.h"
#include "server/cluster_tool/tool_call.h"

namespace {

using server::cluster::ClusterTool;
using server::cluster::Done;
using server::cluster::NodeAccess;
using server::cluster::ToolCall;
using server::cluster::ToolUsage;

int fail(const core::Error& error) {
  fmt::print(stderr, "bloomery-cluster: {}\n", core::without_code(error.message));
  return EXIT_FAILURE;
}

// Reads the first line of the file, without its end "\n" or "\r\n". The file may be a pipe, such as
// the shell's <(command).
core::Result<std::string> read_password(const persistence::NamedFile& file) {
  constexpr size_t kFileBytesMax = size_t{64} << 10;
  if (file.path.empty()) return {boost::system::in_place_value};
  auto text =
      persistence::read_whole_file(file, kFileBytesMax, persistence::FileKinds::kStreamsWithWait);
  if (!text) return text.error();
  text->resize(std::min(text->find('\n'), text->size()));
  if (text->ends_with('\r')) text->pop_back();
  if (!text->empty()) return text;
  return core::Error{
      fmt::format("ERR the first line of '{}' has no password", core::printable(file.path))};
}

core::Result<NodeAccess> node_access(const ToolCall& call) {
  NodeAccess access = call.access;
  if (!call.node_password_file.empty()) {
    const auto password = read_password({call.node_password_file, "--node-password-file"});
    if (!password) return password.error();
    access.password = *password;
  } else if (const char* password = std::getenv("REDISCLI_AUTH"); password != nullptr) {
    access.password = password;
  }
  return access;
}

core::Result<Done> run(ClusterTool& tool, const ToolCall& call) {
  if (call.command == "create") return tool.create(call.nodes, call.replicas);
  if (call.command == "add") return tool.add(call.nodes.front(), call.shard);
  if (call.command == "remove") return tool.remove(call.nodes.front());
  if (call.command == "replace") {
    return tool.replace(call.shard, call.nodes.front(), call.accepts_loss);
  }
  if (call.command == "backup") return tool.backup(call.directory);
  if (call.command == "restore") return tool.restore(call.directory, call.nodes);
  if (call.command == "recover") return tool.recover(call.nodes, call.is_confirmed);
  if (call.command == "failover") return tool.fail_over(call.shard, call.to, call.force);
  const auto status = tool.status();
  if (!status) return status.error();
  return Done{call.as_json ? status_json(*status) : status_table(*status)};
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL, so SIGPIPE is ignored
  const auto parsed = server::cluster::parse_tool_call({argv + 1, argv + argc});
  if (const auto* usage = std::get_if<ToolUsage>(&parsed)) {
    fmt::print("{}", usage->out);
    fmt::print(stderr, "{}", usage->err);
    return usage->exit_code;
  }
  const auto& call = std::get<ToolCall>(parsed);
  const auto password = read_password({call.password_file, "--password-file"});
  if (!password) return fail(password.error());
  const auto access = node_access(call);
  if (!access) return fail(access.error());
  const auto tool = ClusterTool::make({.endpoints = call.endpoints,
                                       .user = call.user,
                                       .password = *password,
                                       .ca_file = {call.ca_file, "--cacert"},
                                       .cert_file = {call.cert_file, "--cert"},
                                       .key_file = {call.key_file, "--key"}},
                                      call.cluster, *access);
  if (!tool) return fail(tool.error());
  const auto done = run(**tool, call);
  if (!done) return fail(done.error());
  fmt::print("{}", done->text);
  return EXIT_SUCCESS;
}

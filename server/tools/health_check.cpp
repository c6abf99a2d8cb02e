// SPDX-License-Identifier: MIT
#include "server/tools/health_check.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string_view>
#include <utility>

#include "core/printable.h"
#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/transport/resp_client.h"

namespace server {
namespace {

constexpr size_t kAnswerBytesMax = 512;

struct HealthRequest {
  HealthQuestion question;
  HealthLimits limits;
  std::string password;  // requirepass
};

// Returns the next line from the server. Returns an error line if the server demands a client
// certificate, and an empty string if no line arrives in time.
std::string next_line(RespClient& link) {
  const auto line = link.read_line();
  if (line) return line->substr(0, kAnswerBytesMax);
  // A server that demands a client certificate sends the TLS alert certificate_required, which
  // shows that it is alive.
  constexpr int kCertificateRequired = SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED;
  const char* const reason =
      ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, kCertificateRequired));
  const bool is_required = reason != nullptr && line.error().message.ends_with(reason);
  return is_required ? "-NOAUTH a client certificate is required" : "";
}

// Sends PING, and returns the line from the server. If the server asks for a password and there is
// one, logs in and sends PING again. Only then does a server say that it is loading.
std::string ask(RespClient& link, const std::string& password) {
  // A server that has reached maxclients replies and closes before it receives a command. That
  // reply is read even if sending fails.
  (void)link.send_command({"PING"});
  const std::string first = next_line(link);
  if (password.empty() || !first.starts_with("-NOAUTH")) return first;
  (void)link.send_command({"AUTH", password});
  (void)link.send_command({"PING"});
  (void)next_line(link);  // if the password is wrong, the reply to PING says so
  const std::string second = next_line(link);
  return second.empty() ? first : second;
}

// Evaluates an attempt. `answer` is the first line received; empty if there was none.
Health evaluate(std::string_view where, const std::string& answer, HealthQuestion question) {
  if (answer.empty()) return {false, fmt::format("{} does not answer", where)};
  const bool serves = answer == "+PONG" || answer.starts_with("-NOAUTH");
  // The first characters of the types of RESP replies.
  constexpr std::string_view kReplyMarks = "+-:$*";
  const bool lives = kReplyMarks.find(answer.front()) != std::string_view::npos;
  return {question == HealthQuestion::kLives ? lives : serves,
          fmt::format("{} answers {}", where, core::printable(answer))};
}

// The result of one attempt at one address.
struct Attempt {
  bool has_connected = false;
  Health health;
};

// Returns the address at which this machine reaches a server that listens on `address`, an element
// of `bind`.
std::string reachable_address(std::string address) {
  if (address.starts_with('-')) address.erase(0, 1);
  if (address == "*" || address == "0.0.0.0") return "127.0.0.1";
  if (address == "::" || address == "::*") return "::1";
  return address;
}

Attempt ask_target(const ClientSocket::Target& target, const std::string& where,
                   const HealthRequest& request) {
  RespClient link(request.limits.answer);
  if (auto connected = link.connect(target); !connected) {
    return {false, {false, fmt::format("{}: {}", where, connected.error().message)}};
  }
  return {true, evaluate(where, ask(link, request.password), request.question)};
}

Attempt ask_port(const std::string& address, int64_t port, bool has_tls,
                 const HealthRequest& request) {
  const bool is_loopback = address == "127.0.0.1" || address == "::1";
  const std::string where =
      is_loopback ? fmt::format("port {}", port) : fmt::format("port {} of {}", port, address);
  ClientSocket::Target target{.host = address, .port = static_cast<uint16_t>(port)};
  target.is_local = true;
  target.uses_tls = has_tls;
  // The certificate is not verified, because the server is on the same machine.
  if (has_tls) target.tls.reset(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  return ask_target(target, where, request);
}

// Returns the result of the first healthy address. If no address is healthy, returns the result of
// the first address that accepted a connection. If no address accepted one, returns the result of
// the first address.
Health check_port(const std::vector<std::string>& addresses, int64_t port, bool has_tls,
                  const HealthRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  Attempt reached;
  for (const std::string& address : addresses) {
    Attempt next = ask_port(reachable_address(address), port, has_tls, request);
    if (next.health.is_healthy) return next.health;
    const bool reached_further = next.has_connected && !reached.has_connected;
    if (reached.health.text.empty() || reached_further) reached = std::move(next);
    if (std::chrono::steady_clock::now() - begin > request.limits.slow) break;
  }
  return reached.health;
}

}  // namespace

HealthQuestion take_health_question(std::vector<const char*>& arguments) {
  const bool is_there = arguments.size() > 2 &&
                        std::string_view(arguments[1]) == "--health-check" &&
                        std::string_view(arguments[2]) == "--alive";
  if (!is_there) return HealthQuestion::kServes;
  arguments.erase(arguments.begin() + 2);
  return HealthQuestion::kLives;
}

Health check_health(const Config& config, HealthQuestion question, const HealthLimits& limits) {
  const HealthRequest request{question, limits, config.text(OptionId::kRequirePass)};
  // If `bind` names no address, the server listens on no TCP port, so only the unix socket is
  // tried.
  if (const auto addresses = split_at_spaces(config.text(OptionId::kBind)); !addresses.empty()) {
    if (config.port() != 0) return check_port(addresses, config.port(), false, request);
    if (const int64_t port = config.integer(OptionId::kTlsPort); port != 0) {
      return check_port(addresses, port, true, request);
    }
  }
  if (const std::string path = config.text(OptionId::kUnixSocket); !path.empty()) {
    return ask_target({.path = path}, path, request).health;
  }
  return {false, "the configuration names nothing to listen on"};
}

}  // namespace server

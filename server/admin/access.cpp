// SPDX-License-Identifier: MIT
#include "server/admin/access.h"

#include <openssl/evp.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "core/clock.h"
#include "protocol/arguments.h"
#include "server/base/config/config.h"
#include "server/commands/services.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"

namespace server::admin {
namespace {

constexpr size_t kCredentialsMax = 4096;

HttpResponse password_request() {
  return plain_response(401, "A user and a password are needed",
                        {{"WWW-Authenticate", "Basic realm=\"Bloomery\", charset=\"UTF-8\""}});
}

}  // namespace

Admission Access::admit(const HttpRequest& request, const Peer& peer) const {
  acl::Users& users = services_.users;
  if (request.authorization.empty()) {
    auto user = users.default_user();
    if (!user->is_on() || !user->has_no_password()) return {nullptr, password_request()};
    return admit_without_password(std::move(user), request, peer);
  }
  const auto credentials = parse_basic(request.authorization);
  if (!credentials) return {nullptr, plain_response(400, "Only Basic authorization is known")};
  // If the credentials have no user name, the user is the default user, as for AUTH with one
  // argument.
  const std::string_view name =
      credentials->user.empty() ? acl::kDefaultUser : std::string_view(credentials->user);
  if (auto user = users.authenticate(name, credentials->password)) {
    // A user without a password accepts any password, so a password proves nothing about the
    // client.
    if (!user->has_no_password()) return {std::move(user), {}};
    return admit_without_password(std::move(user), request, peer);
  }
  users.log().add({.reason = acl::Reason::kLogin,
                   .object = "http",
                   .user = std::string(name.substr(0, acl::kLoggedBytesMax)),
                   .client = "addr=" + peer.address},
                  services_.clock.wall_ms());
  return {nullptr, password_request()};
}

Admission Access::admit_without_password(std::shared_ptr<const acl::User> user,
                                         const HttpRequest& request, const Peer& peer) const {
  const bool is_protected =
      services_.config.flag(OptionId::kProtectedMode) && services_.users.has_no_password();
  if (is_protected && !peer.is_loopback) {
    return {nullptr, plain_response(403,
                                    "Protected mode is on and no password is set: only this "
                                    "machine is answered. Set requirepass, or protected-mode no")};
  }
  if (is_protected && !is_plain_host(request.host)) {
    return {nullptr, plain_response(403,
                                    "Protected mode is on and no password is set: ask for an "
                                    "address or for localhost, not for another name")};
  }
  return {std::move(user), {}};
}

bool Access::allows(const acl::User& user, std::span<const std::string_view> arguments) const {
  const RegisteredCommand* const command = services_.registry.find_replayed(arguments);
  return command != nullptr && command->arity_fits(arguments.size()) &&
         !denial_of(user, *command, arguments);
}

std::optional<Credentials> parse_basic(std::string_view header) {
  const size_t space = header.find(' ');
  if (space == std::string_view::npos ||
      !protocol::equals_ignore_case(header.substr(0, space), "basic")) {
    return std::nullopt;
  }
  std::string_view encoded = header.substr(space);
  encoded.remove_prefix(std::min(encoded.find_first_not_of(' '), encoded.size()));
  // Some clients omit the Base64 padding, which OpenSSL requires.
  std::string padded(encoded);
  while (padded.size() % 4 != 0) padded += '=';
  if (padded.empty() || padded.size() > kCredentialsMax) return std::nullopt;
  const size_t padding = padded.size() - 1 - padded.find_last_not_of('=');
  std::string decoded(padded.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(decoded.data()),
                                   reinterpret_cast<const unsigned char*>(padded.data()),
                                   static_cast<int>(padded.size()));
  if (padding > 2 || size < 0) return std::nullopt;
  decoded.resize(static_cast<size_t>(size) - padding);
  const size_t colon = decoded.find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credentials{decoded.substr(0, colon), decoded.substr(colon + 1)};
}

bool is_plain_host(std::string_view host) {
  // Removes the port from the Host header.
  const size_t colon = host.find_last_of(':');
  const bool is_bracketed = host.starts_with('[');
  if (colon != std::string_view::npos && (!is_bracketed || host[colon - 1] == ']')) {
    host = host.substr(0, colon);
  }
  if (is_bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (protocol::equals_ignore_case(host, "localhost")) return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(host), error);
  return !error;
}

}  // namespace server::admin

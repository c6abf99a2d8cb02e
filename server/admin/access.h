// SPDX-License-Identifier: MIT
//
// Access: finds the user of an HTTP request, by the passwords and rules of the ACL.
//
// A request without credentials comes from the default user, as on the other ports, if that user is
// on and needs no password. A request without a verified password is subject to protected mode.
// While that mode applies, the request must come from this machine, and its Host header must be an
// IP address or localhost. The check of the header rejects web pages whose domain name resolves to
// this machine.
//
// Invariants: comparing passwords takes the same time for known and unknown users
// (acl::Users::authenticate).
// Thread safety: all members may be called from any thread.
// Source: RFC 7617 (Basic); RFC 9110, section 7.2 (Host).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/admin/http_message.h"

namespace server {
struct Services;
}
namespace server::acl {
class User;
}

namespace server::admin {

struct Peer {
  std::string address;  // address and port of the client, such as "127.0.0.1:50000"
  bool is_loopback = false;
};

// Holds either a user or the response that rejects the request.
struct Admission {
  std::shared_ptr<const acl::User> user;
  HttpResponse refusal;
};

class Access {
 public:
  explicit Access(Services& services) : services_(services) {}

  Admission admit(const HttpRequest& request, const Peer& peer) const;
  // Returns whether the user may run a command with these arguments.
  bool allows(const acl::User& user, std::span<const std::string_view> arguments) const;

 private:
  // Admits the request as `user` without checking a password. Rejects the request if protected mode
  // forbids it.
  Admission admit_without_password(std::shared_ptr<const acl::User> user,
                                   const HttpRequest& request, const Peer& peer) const;

  Services& services_;
};

struct Credentials {
  std::string user;
  std::string password;
};
// Parses an Authorization header. Returns nullopt unless the header uses Basic authentication and
// is valid.
std::optional<Credentials> parse_basic(std::string_view header);

// Returns whether a Host header is an IP address or localhost. An attacker could make any other
// name resolve to this server.
bool is_plain_host(std::string_view host);

}  // namespace server::admin

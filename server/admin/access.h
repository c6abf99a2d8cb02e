// SPDX-License-Identifier: MIT
//
// Access: which user an HTTP request comes from, by the passwords and rules of the ACL.
//
// A request without credentials comes from the default user, as on the other ports, if that user is
// on and needs no password. A request that no password proves is subject to protected mode. Then
// the Host must be an address: a page in a browser that has its own name point here would name
// itself.
//
// Invariants: comparing passwords takes as long for unknown users (acl::Users::authenticate).
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
  std::string address;  // "127.0.0.1:50000"
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
  // Whether the user may run this command.
  bool allows(const acl::User& user, std::span<const std::string_view> arguments) const;

 private:
  // Applies protected mode. The request gets the rights of `user`, which needs no password.
  Admission admit_without_password(std::shared_ptr<const acl::User> user,
                                   const HttpRequest& request, const Peer& peer) const;

  Services& services_;
};

struct Credentials {
  std::string user;
  std::string password;
};
// Parses an Authorization header. Returns nullopt unless it is a valid one of Basic.
std::optional<Credentials> parse_basic(std::string_view header);

// Whether a Host header names an address, or this machine, and no name that others can choose.
bool is_plain_host(std::string_view host);

}  // namespace server::admin

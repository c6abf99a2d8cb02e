// SPDX-License-Identifier: MIT
//
// Site: the answers of the admin port. A table lists the paths, and the users that may request each
// path.
//
//   /healthz, /readyz   every client: probes have no password
//   /metrics            users that may run INFO; filter names are omitted for users that
//                       may not run BF.SCAN
//   /, /*.js, /*.css    users that have logged in
//   /api/               users that may run the command that api.h lists for the path
//
// Invariants: GET and HEAD only read. A POST must carry kWriteHeader, which a page of another
// origin cannot send, so a foreign page cannot change data in the user's name. Users without a
// password must ask for an address or for localhost, except for /metrics and probes.
// No user learns or changes more by HTTP than by the commands that the user may run.
// Thread safety: belongs to the admin port's thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "server/admin/access.h"
#include "server/admin/api.h"
#include "server/admin/figures/filter_census.h"
#include "server/admin/heartbeat.h"
#include "server/admin/http_message.h"

namespace server::admin {

inline constexpr std::string_view kNameWithoutPassword =
    "Without a password, ask for an address or for localhost, not for another name";

class Site {
 public:
  Site(Services& services, const Heartbeat& heartbeat, WriteCaller::Post post);

  HttpResponse answer(const HttpRequest& request, const Peer& peer);
  // Continues the walk over all filters, and adds a sample to the history. Must be called about
  // once a second.
  void tick();

 private:
  // The user of a question is null if the path needs no login.
  using Question = Api::Question;
  enum class Method : uint8_t { kRead, kWrite };
  struct Route {
    std::string_view path;
    HttpResponse (Site::*handler)(const Question&) = nullptr;
    // Handler in Api, which is used if `handler` is null.
    HttpResponse (Api::*api)(const Question&) = nullptr;
    bool is_public = false;
    // Command that the user must be allowed to run. If empty, no command is required, or the
    // handler itself checks the permissions.
    std::span<const std::string_view> command{};
    Method method = Method::kRead;
    // Whether a user without a password may use any name as the Host. All other routes require an
    // IP address or localhost of such users.
    bool accepts_names = false;
  };
  static std::span<const Route> routes();

  // Returns the error response if the route does not allow the request's method or host; else
  // nullopt.
  static std::optional<HttpResponse> refusal(const Route& route, const Question& question);
  HttpResponse health(const Question& question);
  HttpResponse readiness(const Question& question);
  HttpResponse metrics(const Question& question);
  HttpResponse file(const Question& question);

  Services& services_;
  const Heartbeat& heartbeat_;
  const Access access_;
  Api api_;
  FilterCensus census_;
};

}  // namespace server::admin

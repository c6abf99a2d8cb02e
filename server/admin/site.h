// SPDX-License-Identifier: MIT
//
// Site: what the admin port answers: a table of paths, and who may ask for each.
//
//   /healthz, /readyz   anybody: probes have no password
//   /metrics            who may run INFO; names of filters who may run BF.SCAN
//   /, /dashboard.*     who has logged in
//   /api/               who may run the command that the answer comes from (api.h)
//
// Invariants: it only reads, so a request that a page makes without its user's knowledge changes
// nothing; nobody learns more by HTTP than by the commands that their user may run.
// Thread safety: belongs to the admin port's thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/admin/access.h"
#include "server/admin/api.h"
#include "server/admin/figures/filter_census.h"
#include "server/admin/heartbeat.h"
#include "server/admin/http_message.h"

namespace server::admin {

class Site {
 public:
  Site(Services& services, const Heartbeat& heartbeat);

  HttpResponse answer(const HttpRequest& request, const Peer& peer);
  // About once a second: goes on with what takes long.
  void tick();

 private:
  struct Question {
    const HttpRequest& request;
    const Peer& peer;
    std::shared_ptr<const acl::User> user{};  // null where anybody may ask
  };
  using Handler = HttpResponse (Site::*)(const Question&);
  struct Route {
    std::string_view path;
    Handler handler;
    bool is_public = false;
    // The user must be allowed to run it; empty: none.
    std::span<const std::string_view> command{};
  };
  static std::span<const Route> routes();

  HttpResponse health(const Question& question);
  HttpResponse readiness(const Question& question);
  HttpResponse metrics(const Question& question);
  HttpResponse html(const Question& question);
  HttpResponse css(const Question& question);
  HttpResponse icon(const Question& question);
  HttpResponse script(const Question& question);
  HttpResponse overview(const Question& question);
  HttpResponse filters(const Question& question);
  HttpResponse filter(const Question& question);
  HttpResponse plan(const Question& question);

  Services& services_;
  const Heartbeat& heartbeat_;
  const Access access_;
  Api api_;
  FilterCensus census_;
};

}  // namespace server::admin

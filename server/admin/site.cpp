// SPDX-License-Identifier: MIT
#include "server/admin/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/clock.h"
#include "server/acl/user.h"
#include "server/admin/figures/metrics_page.h"
#include "server/admin/figures/readiness.h"
#include "server/admin/page.h"
#include "server/commands/services.h"

namespace server::admin {
namespace {

// What looking at all keys may take of the port's thread: for the first request, which would tell
// nothing otherwise, for a later one, and each second.
constexpr int64_t kCensusFirstUs = 50'000;
constexpr int64_t kCensusRequestUs = 5'000;
constexpr int64_t kCensusTickUs = 5'000;

constexpr std::array<std::string_view, 1> kInfo = {"info"};
constexpr std::array<std::string_view, 2> kScan = {"bf.scan", "0"};

}  // namespace

Site::Site(Services& services, const Heartbeat& heartbeat)
    : services_(services),
      heartbeat_(heartbeat),
      access_(services),
      api_(services),
      census_(services.keyspace, services.clock) {}

std::span<const Site::Route> Site::routes() {
  static constexpr Route kRoutes[] = {
      {.path = "/healthz", .handler = &Site::health, .is_public = true},
      {.path = "/readyz", .handler = &Site::readiness, .is_public = true},
      {.path = "/metrics", .handler = &Site::metrics, .command = kInfo},
      {.path = "/", .handler = &Site::html},
      {.path = "/dashboard.css", .handler = &Site::css},
      {.path = "/icon.svg", .handler = &Site::icon},
      {.path = "/dashboard.js", .handler = &Site::script},
      {.path = "/api/overview", .handler = &Site::overview, .command = kInfo},
      {.path = "/api/filters", .handler = &Site::filters},
      {.path = "/api/filter", .handler = &Site::filter},
      {.path = "/api/plan", .handler = &Site::plan},
  };
  return kRoutes;
}

HttpResponse Site::answer(const HttpRequest& request, const Peer& peer) {
  const auto route = std::ranges::find(routes(), request.path, &Route::path);
  const bool is_known = route != routes().end();
  Question question{request, peer};
  Admission admission;
  if (!is_known || !route->is_public) {
    // Before anything is said about what is there.
    admission = access_.admit(request, peer);
    if (admission.user == nullptr) return std::move(admission.refusal);
    question.user = std::move(admission.user);
  }
  if (!is_known) return plain_response(404, "There is no such page");
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse refusal = plain_response(405, kOnlyReadText);
    refusal.headers.push_back(kAllowedMethods);
    return refusal;
  }
  if (!route->command.empty() && !access_.allows(*question.user, route->command)) {
    return plain_response(
        403, fmt::format("The user has no permission to run the '{}' command", route->command[0]));
  }
  return (this->*route->handler)(question);
}

void Site::tick() {
  census_.step(kCensusTickUs);
}

HttpResponse Site::health(const Question& /*question*/) {
  const int64_t silent_us = heartbeat_.silent_us(services_.clock.monotonic_us());
  if (silent_us <= Heartbeat::kSilentMaxUs) return plain_response(200, "ok");
  return plain_response(503, fmt::format("A thread that serves clients has not answered for {} s",
                                         silent_us / core::kSecondUs));
}

HttpResponse Site::readiness(const Question& /*question*/) {
  const std::string cause = unready_cause(services_);
  return cause.empty() ? plain_response(200, "ready") : plain_response(503, cause);
}

HttpResponse Site::metrics(const Question& question) {
  census_.refresh(census_.figures() ? kCensusRequestUs : kCensusFirstUs);
  const auto& filters = census_.figures();
  HttpResponse response;
  response.content_type = kMetricsType;
  response.body = metrics_text(services_, {.filters = filters ? &*filters : nullptr,
                                           .shows_keys = access_.allows(*question.user, kScan)});
  return response;
}

HttpResponse Site::html(const Question& /*question*/) {
  return {.content_type = "text/html; charset=utf-8", .body = std::string(kPageHtml)};
}

HttpResponse Site::css(const Question& /*question*/) {
  return {.content_type = "text/css; charset=utf-8", .body = std::string(kPageCss)};
}

HttpResponse Site::icon(const Question& /*question*/) {
  return {.content_type = "image/svg+xml", .body = std::string(kPageIcon)};
}

HttpResponse Site::script(const Question& /*question*/) {
  return {.content_type = "text/javascript; charset=utf-8", .body = std::string(kPageScript)};
}

HttpResponse Site::overview(const Question& /*question*/) {
  return api_.overview();
}

HttpResponse Site::filters(const Question& question) {
  return api_.filters({question.request, question.user, question.peer.address});
}

HttpResponse Site::filter(const Question& question) {
  return api_.filter({question.request, question.user, question.peer.address});
}

HttpResponse Site::plan(const Question& question) {
  return api_.plan({question.request, question.user, question.peer.address});
}

}  // namespace server::admin

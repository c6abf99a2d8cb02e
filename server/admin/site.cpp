// SPDX-License-Identifier: MIT
#include "server/admin/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/clock.h"
#include "server/admin/figures/metrics_page.h"
#include "server/admin/figures/readiness.h"
#include "server/admin/page.h"
#include "server/commands/services.h"
#include "server/session/acl/user.h"

namespace server::admin {
namespace {

// A walk over all filters computes statistics, in steps on the thread of the admin port. Each of
// these constants is the time limit of a step. Requests for /metrics use kCensusFirstUs until the
// first statistics exist, and kCensusRequestUs after that. The step that runs once a second uses
// kCensusTickUs.
constexpr int64_t kCensusFirstUs = 50'000;
constexpr int64_t kCensusRequestUs = 5'000;
constexpr int64_t kCensusTickUs = 5'000;

constexpr std::array<std::string_view, 1> kInfo = {"info"};
constexpr std::array<std::string_view, 2> kScan = {"bf.scan", "0"};
// /api/log requires the permission for SLOWLOG, because the log quotes clients as the slow log
// does.
constexpr std::array<std::string_view, 2> kSlowLog = {"slowlog", "get"};

}  // namespace

Site::Site(Services& services, const Heartbeat& heartbeat, WriteCaller::Post post)
    : services_(services),
      heartbeat_(heartbeat),
      access_(services),
      api_(services, std::move(post)),
      census_(services.keyspace, services.clock) {}

std::span<const Site::Route> Site::routes() {
  static constexpr Route kRoutes[] = {
      {.path = "/healthz", .handler = &Site::health, .is_public = true},
      {.path = "/readyz", .handler = &Site::readiness, .is_public = true},
      {.path = "/metrics", .handler = &Site::metrics, .command = kInfo, .accepts_names = true},
      {.path = "/api/overview", .api = &Api::overview, .command = kInfo},
      {.path = "/api/history", .api = &Api::history, .command = kInfo},
      {.path = "/api/commands", .api = &Api::commands, .command = kInfo},
      {.path = "/api/filters", .api = &Api::filters},
      {.path = "/api/filter", .api = &Api::filter},
      {.path = "/api/exists", .api = &Api::exists},
      {.path = "/api/add", .api = &Api::add, .method = Method::kWrite},
      {.path = "/api/plan", .api = &Api::plan},
      {.path = "/api/clients", .api = &Api::clients},
      {.path = "/api/slowlog", .api = &Api::slow_log},
      {.path = "/api/log", .api = &Api::log, .command = kSlowLog},
      {.path = "/api/nodes", .api = &Api::nodes},
      {.path = "/api/user", .api = &Api::user},
  };
  return kRoutes;
}

std::optional<HttpResponse> Site::refusal(const Route& route, const Question& question) {
  const HttpRequest& request = question.request;
  // An attacker's web page could make its own host name resolve to this server's address, and then
  // read the answers. Such a page is rejected: without a password, the Host header must be an IP
  // address or localhost. Scrapers on other machines use names, so their route accepts names.
  const bool proves_nothing = question.user != nullptr && question.user->has_no_password();
  if (proves_nothing && !route.accepts_names && !is_plain_host(request.host)) {
    return plain_response(403, kNameWithoutPassword);
  }
  if (route.method == Method::kRead) {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return plain_response(405, kOnlyReadText, {kAllowedMethods});
  }
  if (request.method != "POST") return plain_response(405, kOnlyWriteText, {kWriteMethods});
  if (!request.declares_write) {
    return plain_response(403, fmt::format("A write needs the header {}", kWriteHeader));
  }
  return std::nullopt;
}

HttpResponse Site::answer(const HttpRequest& request, const Peer& peer) {
  static constexpr Route kFile{.path = "", .handler = &Site::file};
  const auto found = std::ranges::find(routes(), request.path, &Route::path);
  const bool is_file = std::ranges::any_of(
      page_files(), [&](const PageFile& file) { return file.path == request.path; });
  const Route* const route = found != routes().end() ? &*found : is_file ? &kFile : nullptr;
  Question question{.request = request, .user = nullptr, .address = peer.address};
  Admission admission;
  if (route == nullptr || !route->is_public) {
    // Access is checked before the answer reveals which paths exist.
    admission = access_.admit(request, peer);
    if (admission.user == nullptr) return std::move(admission.refusal);
    question.user = std::move(admission.user);
  }
  if (route == nullptr) return plain_response(404, "There is no such page");
  if (auto refused = refusal(*route, question)) return *std::move(refused);
  if (!route->command.empty() && !access_.allows(*question.user, route->command)) {
    return plain_response(
        403, fmt::format("The user has no permission to run the '{}' command", route->command[0]));
  }
  if (route->handler != nullptr) return (this->*route->handler)(question);
  return (api_.*route->api)(question);
}

void Site::tick() {
  census_.step(kCensusTickUs);
  api_.tick();
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

HttpResponse Site::file(const Question& question) {
  const auto file = std::ranges::find(page_files(), question.request.path, &PageFile::path);
  return {.content_type = file->content_type, .body = std::string(file->text)};
}

}  // namespace server::admin

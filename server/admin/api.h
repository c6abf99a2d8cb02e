// SPDX-License-Identifier: MIT
//
// Api: the JSON endpoints of the dashboard. Most answers are the reply of a command, so that the
// command determines the numbers and the permissions.
//
//   /api/overview, /api/history, /api/commands   INFO; history and commands cover the last hour
//   /api/filters?cursor=0&match=*&db=0           BF.SCAN
//   /api/filter?key=k&db=0                       BF.STATS
//   /api/exists?key=k&db=0&item=a&item=b         BF.EXISTS, or BF.MEXISTS for several items
//   /api/add?key=k&db=0&item=a                   BF.INSERT NOCREATE, by POST (site.h)
//   /api/plan?error_rate=&capacity=&kind=plain|deletable|windowed   BF.PLAN, and curves
//   /api/clients                                 CLIENT LIST
//   /api/slowlog, /api/log                       SLOWLOG GET; the log's last warnings
//   /api/nodes                                   CLUSTER NODES
//   /api/user?key=k                              the endpoints that the user may call
//
// Thread safety: belongs to the admin port's thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"
#include "server/admin/access.h"
#include "server/admin/command_caller.h"
#include "server/admin/history/history_sampler.h"
#include "server/admin/http_message.h"
#include "server/admin/write_caller.h"

namespace server::admin {

class Api {
 public:
  struct Question {
    const HttpRequest& request;
    std::shared_ptr<const acl::User> user;
    std::string_view address;
  };

  Api(Services& services, WriteCaller::Post post)
      : services_(services),
        access_(services),
        caller_(services),
        writes_(services, std::move(post)),
        sampler_(services) {}

  // Adds a sample to the history. Must be called about once a second.
  void tick() { sampler_.sample(); }

  HttpResponse overview(const Question& question);
  HttpResponse history(const Question& question);
  HttpResponse commands(const Question& question);
  HttpResponse filters(const Question& question);
  HttpResponse filter(const Question& question);
  HttpResponse exists(const Question& question);
  HttpResponse add(const Question& question);
  HttpResponse plan(const Question& question);
  HttpResponse clients(const Question& question);
  HttpResponse slow_log(const Question& question);
  HttpResponse log(const Question& question);
  HttpResponse nodes(const Question& question);
  HttpResponse user(const Question& question);

 private:
  // Returns the Caller with which CommandCaller runs commands for the request's user and database.
  // Errors: the requested database does not exist.
  core::Result<CommandCaller::Caller> caller_of(const Question& question) const;
  protocol::Reply call(const Question& question, std::span<const std::string_view> arguments);
  HttpResponse answer(const Question& question, std::span<const std::string_view> arguments);

  Services& services_;
  const Access access_;
  CommandCaller caller_;
  WriteCaller writes_;
  HistorySampler sampler_;
};

}  // namespace server::admin

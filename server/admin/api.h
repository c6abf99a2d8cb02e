// SPDX-License-Identifier: MIT
//
// Api: what the dashboard asks, as JSON. Each answer is a command's reply, so that the numbers and
// the rights are the command's.
//
//   /api/filters?cursor=0&match=*&db=0   BF.SCAN
//   /api/filter?key=k&db=0               BF.STATS
//   /api/plan?error_rate=&capacity=&kind=plain|deletable|windowed   BF.PLAN, and a curve
//
// Thread safety: belongs to the admin port's thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/admin/access.h"
#include "server/admin/command_caller.h"
#include "server/admin/http_message.h"

namespace server::admin {

class Api {
 public:
  struct Question {
    const HttpRequest& request;
    std::shared_ptr<const acl::User> user;
    std::string_view address;
  };

  explicit Api(Services& services) : services_(services), caller_(services) {}

  HttpResponse overview();
  HttpResponse filters(const Question& question);
  HttpResponse filter(const Question& question);
  HttpResponse plan(const Question& question);

 private:
  protocol::Reply call(const Question& question, std::span<const std::string_view> words);

  Services& services_;
  CommandCaller caller_;
};

}  // namespace server::admin

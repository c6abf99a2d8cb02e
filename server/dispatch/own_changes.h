// SPDX-License-Identifier: MIT
//
// OwnChanges: the receiver of changes that a replica's own clients make. The replica's leader does
// not have these changes.
//
// Thread safety: the command that makes a change calls the members, on any thread and under the
// command's locks. The members are called only on a replica, so that a leader's commands avoid the
// cost of a virtual call.
#pragma once

#include <string_view>

namespace server {

class OwnChanges {
 public:
  // Called before the journal gets a change that a client of this replica has made.
  virtual void record_own_change() = 0;
  virtual void record_own_key(unsigned database, std::string_view key) = 0;

 protected:
  ~OwnChanges() = default;
};

}  // namespace server

// SPDX-License-Identifier: MIT
//
// OwnChanges: notified of changes by clients of a replica, which its leader does not have.
//
// Thread safety: all members may be called from any thread, by the command that makes the change
// and under its locks. Called on a replica only, so that a leader's commands pay for no virtual
// call.
#pragma once

#include <string_view>

namespace server {

class OwnChanges {
 public:
  // Called before the change is journalled.
  virtual void record_own_change() = 0;
  virtual void record_own_key(unsigned database, std::string_view key) = 0;

 protected:
  ~OwnChanges() = default;
};

}  // namespace server

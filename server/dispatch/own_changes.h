// SPDX-License-Identifier: MIT
//
// OwnChanges: notified of changes that clients make on a replica and that its leader does not have.
//
// Thread safety: all members may be called from any thread, by the command that makes the change
// and under its locks. Asked on a replica only, so that a leader's commands pay for no virtual
// call.
#pragma once

#include <string_view>

namespace server {

class OwnChanges {
 public:
  // A change is about to be journalled.
  virtual void note_own_change() = 0;
  virtual void note_own_key(unsigned database, std::string_view key) = 0;

 protected:
  ~OwnChanges() = default;
};

}  // namespace server

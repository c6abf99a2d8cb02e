// SPDX-License-Identifier: MIT
//
// OwnKeys: which of the keys that lie here clients are shown. In a cluster those of the slots that
// this server's shard owns; others are left over from a time when it owned more.
//
// Thread safety: belongs to the thread that runs the command.
#pragma once

#include <cstdint>
#include <string_view>

namespace server::cluster {
class View;
}

namespace server {

class Context;

class OwnKeys {
 public:
  explicit OwnKeys(const Context& ctx);

  bool shows_all() const { return view_ == nullptr; }
  bool shows(std::string_view key) const { return view_ == nullptr || is_owned(key); }
  // How many keys of the context's database are shown; expired ones count until they are deleted.
  uint64_t count() const;

 private:
  bool is_owned(std::string_view key) const;

  const Context& ctx_;
  const cluster::View* view_ = nullptr;  // null: all are shown
};

}  // namespace server

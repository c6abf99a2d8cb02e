// SPDX-License-Identifier: MIT
//
// OwnKeys: the keys of this server that clients may see. In a cluster these are the keys in slots
// that this server's shard owns. Keys in other slots may remain from a time when the shard owned
// more slots. Clients cannot see these keys.
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
  // Returns how many keys of the context's database are visible. Expired keys count until they are
  // deleted.
  uint64_t count() const;

 private:
  bool is_owned(std::string_view key) const;

  const Context& ctx_;
  const cluster::View* view_ = nullptr;  // view of the cluster; null if all keys are visible
};

}  // namespace server

// SPDX-License-Identifier: MIT
//
// VirtualDisk: a FileSystem in memory with faults and power cuts under the control of the test.
//
// The operations on the disk are numbered from 1 on. A test can make one operation fail, or all
// operations from a given number on. The failure of all further operations simulates the time
// between a power cut and the end of the process. cut_power() then leaves the data that a real disk
// would leave: the synced bytes of files and the synced entries of directories. `Unsynced` chooses
// which unsynced bytes and entries remain. A failed write leaves half of its bytes in the file. On
// a full disk it leaves as many bytes as fit.
//
// Creations, renames and removals of files reach the disk in the order in which they were made, as
// in a journaling file system. A sync of a directory also syncs the changes of other directories
// that precede the last change of this directory. A rename is done completely or not at all.
//
// Invariants: if a sync fails, no later sync writes the same bytes to the disk, so a power cut
// loses them. Files that are open for writing during cut_power() belong to a dead process. Writes,
// syncs and truncations of these files fail afterwards.
// Thread safety: all members may be called from any thread. One mutex is held during each
// operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persistence/files/file_system.h"

namespace virtual_disk {

using persistence::AppendFile;
using persistence::FileSystem;
using persistence::InputFile;
using persistence::OpenMode;

// Selects how many of the unsynced bytes and directory changes survive a power cut.
enum class Unsynced : uint8_t {
  kLost,     // unsynced bytes and changes are lost
  kKept,     // all unsynced bytes and changes survive
  kPartial,  // A random prefix of the bytes, and of each directory's changes, is on the disk.
             // Zeros may replace some of these bytes, or pad them to a whole block.
};

inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
inline constexpr size_t kBlockBytes = 512;

class VirtualDisk final : public FileSystem {
 public:
  explicit VirtualDisk(uint64_t seed = 1) : random_(seed) { make_root(); }

  // Plans faults: the operation with this number, or all operations from this number on, fail.
  // restart_count() resets the numbers to 1.
  void fail_operation(uint64_t number) {
    change([&] { failing_ = number; });
  }
  void fail_from_operation(uint64_t number) {
    change([&] { failing_from_ = number; });
  }
  void restart_count() {
    change([&] { operations_ = 0, failing_ = kNever, failing_from_ = kNever; });
  }
  uint64_t operation_count() const {
    const std::lock_guard lock(mutex_);
    return operations_;
  }
  // Sets the number of bytes that can still be written to the disk before it is full.
  void set_free_bytes(uint64_t bytes) {
    change([&] { free_bytes_ = total_bytes_ = bytes; });
  }

  // Makes the disk behave like a file system that does not support hard links.
  void refuse_links() {
    change([&] { has_links_ = false; });
  }

  // Simulates a power cut: leaves the files that the next start finds, and cancels all planned
  // faults.
  void cut_power(Unsynced unsynced) {
    change([&] {
      ++boot_;
      settle_names(unsynced);
      for (auto& [path, directory] : directories_) {
        for (auto& [name, node] : directory.names) settle(*node, unsynced);
      }
      operations_ = 0, failing_ = kNever, failing_from_ = kNever;
    });
  }

  // True if a failed sync has lost bytes of a file whose name ends with `suffix`. A later process
  // can still read these bytes, but its syncs do not write them to the disk.
  bool has_given_up(std::string_view suffix) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, directory] : directories_) {
      for (const auto& [name, node] : directory.names) {
        if (!name.ends_with(suffix)) continue;
        for (const auto& [begin, end] : node->given_up) {
          if (begin < end) return true;
        }
      }
    }
    return false;
  }

  // content(), put() and add_directory() are for the test itself: they ignore planned faults. The
  // files that put() creates are synced.
  std::optional<std::string> content(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const Node* node = find(path);
    return node == nullptr ? std::nullopt : std::optional(node->bytes);
  }
  void put(const std::string& path, std::string bytes) {
    const std::lock_guard lock(mutex_);
    auto node = std::make_shared<Node>();
    node->synced = bytes;
    node->bytes = std::move(bytes);
    Directory& directory = directories_[parent(path)];
    directory.names[leaf(path)] = node;
    directory.synced[leaf(path)] = node;
  }
  void add_directory(const std::string& path) {
    change([&] { directories_.try_emplace(path); });
  }

  core::Result<std::unique_ptr<AppendFile>> open_append(const std::string& path,
                                                        OpenMode mode) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("open", path);
    const auto directory = directories_.find(parent(path));
    if (directory == directories_.end()) return missing("open", path);
    auto& node = directory->second.names[leaf(path)];
    if (node == nullptr) {
      node = std::make_shared<Node>();
      changes_.push_back({{parent(path), leaf(path), node}});
    } else if (mode == OpenMode::kCreate) {
      node->bytes.clear();
      // The truncation removes the bytes that failed syncs have lost. Later syncs write new bytes
      // to the disk, even at the same offsets.
      node->given_up.clear();
    }
    return std::unique_ptr<AppendFile>(std::make_unique<Appender>(*this, node, path));
  }

  core::Result<std::unique_ptr<InputFile>> open_input(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("open", path);
    if (find(path) == nullptr) return missing("open", path);
    auto node = directories_[parent(path)].names[leaf(path)];
    return std::unique_ptr<InputFile>(std::make_unique<Input>(*this, std::move(node), path));
  }

  std::optional<persistence::DeviceSpace> space(const std::string&) override {
    const std::scoped_lock lock(mutex_);
    if (free_bytes_ == kNever) return std::nullopt;
    return persistence::DeviceSpace{free_bytes_, total_bytes_};
  }
  bool exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return find(path) != nullptr || directories_.contains(path);
  }

  core::Result<uint64_t> size_bytes(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("look at", path);
    const Node* node = find(path);
    if (node == nullptr) return missing("look at", path);
    return node->bytes.size();
  }

  core::Result<> rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("replace", to);
    if (find(from) == nullptr || !directories_.contains(parent(to))) return missing("replace", to);
    auto& source = directories_[parent(from)];
    auto& target = directories_[parent(to)];
    auto node = source.names[leaf(from)];
    source.names.erase(leaf(from));
    target.names[leaf(to)] = node;
    changes_.push_back({{parent(from), leaf(from), nullptr}, {parent(to), leaf(to), node}});
    return {};
  }

  core::Result<> link(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (fails() || !has_links_) return failure("create", to);
    if (find(from) == nullptr) return missing("link", from);
    if (find(to) != nullptr) return failure("create", to);
    auto node = directories_[parent(from)].names[leaf(from)];
    directories_[parent(to)].names[leaf(to)] = node;
    changes_.push_back({{parent(to), leaf(to), node}});
    return {};
  }

  core::Result<> remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("remove", path);
    if (find(path) == nullptr) return {};
    auto& directory = directories_[parent(path)];
    directory.names.erase(leaf(path));
    changes_.push_back({{parent(path), leaf(path), nullptr}});
    return {};
  }

  core::Result<std::vector<std::string>> list(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("list", path);
    std::vector<std::string> names;
    const auto directory = directories_.find(path);
    if (directory == directories_.end()) return names;
    for (const auto& [name, node] : directory->second.names) names.push_back(name);
    for (const auto& [other, unused] : directories_) {
      if (other != path && parent(other) == path) names.push_back(leaf(other));
    }
    std::ranges::sort(names);
    return names;
  }

  // Creates a directory, which is on the disk without a sync. Files that are created in it reach
  // the disk only by a sync.
  core::Result<> make_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("create directory", path);
    directories_.try_emplace(path);
    return {};
  }

  core::Result<> sync_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (fails()) return failure("sync directory", path);
    if (!directories_.contains(path)) return missing("open directory", path);
    const auto touches = [&](const Change& change) {
      return std::ranges::any_of(change, [&](const Edit& edit) { return edit.directory == path; });
    };
    size_t count = changes_.size();
    while (count > 0 && !touches(changes_[count - 1])) --count;
    commit(count);
    return {};
  }

 private:
  struct Node {
    std::string bytes;
    std::string synced;
    // Ranges of bytes that failed syncs have lost. On the disk these ranges contain zeros.
    std::vector<std::pair<size_t, size_t>> given_up;
  };
  using NodePtr = std::shared_ptr<Node>;
  struct Directory {
    std::map<std::string, NodePtr> names;
    std::map<std::string, NodePtr> synced;
  };
  struct Edit {
    std::string directory;
    std::string name;
    NodePtr node;  // the file that the name refers to; null if the name was removed
  };
  using Change = std::vector<Edit>;

  class Appender final : public AppendFile {
   public:
    Appender(VirtualDisk& disk, NodePtr node, std::string path)
        : disk_(disk), node_(std::move(node)), path_(std::move(path)), boot_(disk.boot_) {}

    core::Result<> write(std::string_view bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.fails() || boot_ != disk_.boot_) {
        if (boot_ == disk_.boot_) disk_.grow(*node_, bytes.substr(0, bytes.size() / 2));
        return failure("write", path_);
      }
      if (disk_.grow(*node_, bytes) < bytes.size()) {
        return core::Error{"ERR can't write '" + path_ + "': No space left on device"};
      }
      return {};
    }

    core::Result<> sync() override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.fails() || boot_ != disk_.boot_) {
        if (boot_ == disk_.boot_) node_->given_up.emplace_back(node_->synced.size(), size());
        return failure("sync", path_);
      }
      node_->synced = node_->bytes;
      wipe_given_up(*node_, node_->synced);
      return {};
    }

    core::Result<> truncate(uint64_t size_bytes) override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.fails() || boot_ != disk_.boot_) return failure("truncate", path_);
      node_->bytes.resize(size_bytes);
      for (auto& [begin, end] : node_->given_up) end = std::min<size_t>(end, size_bytes);
      return {};
    }

   private:
    size_t size() const { return node_->bytes.size(); }

    VirtualDisk& disk_;
    const NodePtr node_;
    const std::string path_;
    const uint64_t boot_;
  };

  class Input final : public InputFile {
   public:
    Input(VirtualDisk& disk, NodePtr node, std::string path)
        : disk_(disk), node_(std::move(node)), path_(std::move(path)), size_(node_->bytes.size()) {}

    core::Result<size_t> read(std::span<char> buffer) override {
      const std::lock_guard lock(disk_.mutex_);
      if (disk_.fails()) return failure("read", path_);
      if (position_ >= node_->bytes.size()) return size_t{0};
      const size_t count = node_->bytes.copy(buffer.data(), buffer.size(), position_);
      position_ += count;
      return count;
    }
    uint64_t size_bytes() const override { return size_; }

   private:
    VirtualDisk& disk_;
    const NodePtr node_;
    const std::string path_;
    const uint64_t size_;
    size_t position_ = 0;
  };

  static core::Error failure(std::string_view act, const std::string& path) {
    return {"ERR can't " + std::string(act) + " '" + path + "': Input/output error"};
  }
  static core::Error missing(std::string_view act, const std::string& path) {
    return {"ERR can't " + std::string(act) + " '" + path + "': No such file or directory"};
  }
  static std::string parent(const std::string& path) { return persistence::directory_of(path); }
  static std::string leaf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  template <class Change>
  void change(Change change) {
    const std::lock_guard lock(mutex_);
    change();
  }
  void make_root() {
    directories_.try_emplace(".");
    directories_.try_emplace("/");
  }

  bool fails() {
    ++operations_;
    return operations_ == failing_ || operations_ >= failing_from_;
  }

  size_t grow(Node& node, std::string_view bytes) {
    const size_t count = std::min<uint64_t>(bytes.size(), free_bytes_);
    if (free_bytes_ != kNever) free_bytes_ -= count;
    node.bytes.append(bytes.substr(0, count));
    return count;
  }

  const Node* find(const std::string& path) const {
    const auto directory = directories_.find(parent(path));
    if (directory == directories_.end()) return nullptr;
    const auto node = directory->second.names.find(leaf(path));
    return node == directory->second.names.end() ? nullptr : node->second.get();
  }

  // Writes the first `count` creations, renames and removals of files to the disk, so that they
  // survive a power cut.
  void commit(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      for (const auto& [directory, name, node] : changes_[i]) {
        auto& synced = directories_[directory].synced;
        synced.erase(name);
        if (node != nullptr) synced.emplace(name, node);
      }
    }
    changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  size_t random_up_to(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit)(random_);
  }

  void settle_names(Unsynced unsynced) {
    size_t kept = changes_.size();
    if (unsynced == Unsynced::kLost) kept = 0;
    if (unsynced == Unsynced::kPartial) kept = random_up_to(kept);
    commit(kept);
    changes_.clear();
    for (auto& [path, directory] : directories_) directory.names = directory.synced;
  }

  static void wipe_given_up(const Node& node, std::string& bytes) {
    for (const auto& [begin, end] : node.given_up) {
      for (size_t at = begin; at < std::min(end, bytes.size()); ++at) bytes[at] = '\0';
    }
  }

  void settle(Node& node, Unsynced unsynced) {
    const bool grew_only =
        node.bytes.starts_with(node.synced) && node.bytes.size() > node.synced.size();
    if (unsynced == Unsynced::kPartial && grew_only) {
      node.bytes.resize(node.synced.size() + random_up_to(node.bytes.size() - node.synced.size()));
      lose_blocks(node);
    } else if (unsynced != Unsynced::kKept) {
      node.bytes = node.synced;
    }
    wipe_given_up(node, node.bytes);
    node.synced = node.bytes;
    node.given_up.clear();
  }

  // Changes the unsynced bytes of a file that survives a power cut. The file system may have
  // written the file's size but not all of its blocks, which then read as zeros.
  void lose_blocks(Node& node) {
    const size_t size = node.bytes.size();
    const size_t choice = random_up_to(3);
    if (choice == 0) {
      const size_t begin = node.synced.size() + random_up_to(size - node.synced.size());
      std::fill(node.bytes.begin() + static_cast<std::ptrdiff_t>(begin), node.bytes.end(), '\0');
    } else if (choice == 1) {
      node.bytes.resize((size + kBlockBytes - 1) / kBlockBytes * kBlockBytes, '\0');
    } else if (choice == 2) {
      // The power cut lost the last write to the block in which the synced bytes end, but no write
      // to later blocks. So the unsynced bytes of this block read as zeros.
      const size_t end = std::min(size, (node.synced.size() / kBlockBytes + 1) * kBlockBytes);
      for (size_t at = node.synced.size(); at < end; ++at) node.bytes[at] = '\0';
    }
  }

  mutable std::mutex mutex_;
  // The members below are guarded by mutex_.
  std::map<std::string, Directory> directories_;
  // Creations, renames and removals of files that are not on the disk yet.
  std::vector<Change> changes_;
  std::minstd_rand random_;
  uint64_t operations_ = 0;
  uint64_t failing_ = kNever;
  uint64_t failing_from_ = kNever;
  uint64_t free_bytes_ = kNever;
  bool has_links_ = true;
  uint64_t total_bytes_ = kNever;
  // Number of simulated power cuts. Files that were opened for writing before the latest power cut
  // can no longer be changed.
  uint64_t boot_ = 0;
};

}  // namespace virtual_disk

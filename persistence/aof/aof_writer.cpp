// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_writer.h"

#include <cassert>
#include <utility>

#include "core/memory/release_storage.h"
#include "persistence/aof/batch_lines.h"

namespace persistence {
namespace {

constexpr std::string_view kLogIsClosed = "ERR the append log is closed";

}  // namespace

AofWriter::AofWriter(FileSystem& files, Journal& journal, const core::Clock& clock, AofPlace place)
    : files_(files),
      journal_(journal),
      place_(std::move(place)),
      lines_(std::make_unique<BatchLines>(clock)) {}

AofWriter::~AofWriter() = default;

core::Result<> AofWriter::open(AofManifest manifest, const std::optional<Tail>& tail,
                               uint64_t files_bytes, Begin begin) {
  if (auto made = files_.make_directory(place_.directory); !made) return made;
  if (auto synced = files_.sync_directory(directory_of(place_.directory)); !synced) return synced;
  manifest_ = std::move(manifest);
  if (begin != Begin::kNow) {
    // Saves the manifest without the new file, which is not part of the data yet. Otherwise the
    // next start would see commands without a manifest and report that the manifest was lost.
    if (auto saved = save_manifest(files_, place_, manifest_); !saved) return saved;
  }
  AofIncrement opened;
  std::unique_ptr<AppendFile> newest;
  if (begin == Begin::kNow && manifest_.names_data()) {
    auto file = sync_files();
    if (!file) return file.error();
    newest = std::move(*file);
  }
  if (tail && newest != nullptr) {
    auto resumed = AofIncrement::resume(std::move(newest), tail->size_bytes, tail->checksum);
    if (!resumed) return resumed.error();
    opened = std::move(*resumed);
    files_bytes += opened.size_bytes() - tail->size_bytes;
  } else {
    const AofFile& entry = manifest_.add_incremental(place_.names);
    auto created = AofIncrement::create(files_, place_.path_of(entry.name));
    if (!created) return created.error();
    opened = std::move(*created);
    if (begin == Begin::kNow) {
      if (auto saved = save_manifest(files_, place_, manifest_); !saved) return saved;
    }
    files_bytes += opened.size_bytes();
  }
  next_.reset();
  needs_base_ = begin != Begin::kNow;
  has_lost_sync_ = begin == Begin::kAfresh;
  const std::scoped_lock lock(mutex_);
  current_ = std::move(opened);
  lines_->begin_file();
  older_bytes_ = files_bytes - current_.size_bytes();
  base_size_bytes_ = files_bytes;
  journal_.restate_database();
  written_ = synced_ = journal_.end_offset();
  is_open_ = true;
  return {};
}

// Syncs the files of a killed process: its writes and renames may not have reached the disk yet,
// and the log relies on them now. Returns the newest incremental file, if there is one.
core::Result<std::unique_ptr<AppendFile>> AofWriter::sync_files() {
  std::unique_ptr<AppendFile> newest;
  for (const AofFile& entry : manifest_.incrementals()) {
    auto file = files_.open_append(place_.path_of(entry.name), OpenMode::kAppend);
    if (!file) return file.error();
    newest = std::move(*file);
    if (auto synced = newest->sync(); !synced) return synced.error();
  }
  if (auto synced = files_.sync_directory(place_.directory); !synced) return synced.error();
  return newest;
}

void AofWriter::close() {
  is_open_ = false;
  const std::scoped_lock lock(mutex_);
  // The bytes that the journal still holds are discarded. Otherwise the next log would begin with
  // commands that its base already contains.
  std::string dropped;
  (void)journal_.take(dropped);
  current_ = AofIncrement{};
  older_.reset();
  lost_.reset();
  awaits_sync_ = false;
  batch_.clear();
  covered_bytes_ = 0;
  next_.reset();
  has_lost_sync_ = false;
  manifest_ = AofManifest{};
}

core::Result<> AofWriter::write() {
  // Usually another thread has already written this thread's bytes. Comparing the offsets first
  // avoids locking the mutex in this case.
  if (journal_.end_offset() == written_offset()) return {};
  const std::scoped_lock lock(mutex_);
  return write_locked();
}

core::Result<> AofWriter::write_locked() {
  if (!is_open()) return core::Error{std::string(kLogIsClosed)};
  if (older_ != nullptr) return {};
  take_journal();
  if (batch_.empty()) return {};
  if (auto cut = current_.cut_back(); !cut) return cut;
  lines_->open(batch_);
  const size_t commands_bytes = batch_.size();
  std::string position = lines_->position_line(batch_end_);
  batch_ += position;
  if (auto written = current_.write(batch_); !written) {
    batch_.resize(commands_bytes);
    return written;
  }
  lines_->set_written_position(std::move(position));
  batch_.clear();
  // Batches with more memory than this are freed after use.
  constexpr size_t kKeptBytes = size_t{4} << 20;
  if (batch_.capacity() > kKeptBytes) core::release_storage(batch_);
  publish_batch_memory();
  written_.store(batch_end_);
  return {};
}

core::Result<> AofWriter::write_position() {
  const std::scoped_lock lock(mutex_);
  if (!is_open() || older_ != nullptr || !batch_.empty()) return {};
  std::string line = lines_->position_line(written_offset());
  if (line.empty() || line == lines_->written_position()) return {};
  if (auto cut = current_.cut_back(); !cut) return cut;
  std::string bytes = line;
  if (auto written = current_.write(bytes); !written) return written;
  lines_->set_written_position(std::move(line));
  return {};
}

void AofWriter::take_journal() {
  // take() moves the journal's memory to the batch. Between the two updates of the counts, that
  // memory counts twice rather than not at all.
  batch_memory_bytes_.store(core::text_bytes(batch_) + journal_.memory_bytes(),
                            std::memory_order_relaxed);
  if (batch_.empty()) {
    batch_end_ = journal_.take(batch_);
  } else {
    std::string more;
    batch_end_ = journal_.take(more);
    batch_ += more;
  }
  publish_batch_memory();
}

core::Result<> AofWriter::sync() {
  const std::scoped_lock one_at_a_time(sync_mutex_);
  if (has_lost_sync()) return core::Error{"ERR the append log's files are no longer trusted"};
  std::shared_ptr<AppendFile> file;
  uint64_t written = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (!is_open()) return {};
    // While older_, the file before current_, is not synced, current_ has no batches yet. So a sync
    // of older_ covers all written bytes.
    file = older_ != nullptr ? older_ : current_.file();
    written = written_offset();
  }
  auto synced = file->sync();
  const std::scoped_lock lock(mutex_);
  if (!synced) {
    // If the log was closed or a new base has replaced the file during the sync, the file is no
    // longer in use. The failed sync then does not matter.
    if (file != older_ && file != current_.file()) return {};
    lost_ = std::move(file);
    has_lost_sync_.store(true, std::memory_order_release);
    return synced;
  }
  // The older file is fully synced only if no rotation wrote more bytes to it after this sync had
  // begun.
  if (older_ == file && written == written_offset()) {
    older_.reset();
    awaits_sync_ = false;
  }
  if (written > synced_offset()) synced_.store(written);
  return {};
}

core::Result<> AofWriter::prepare_rotation() {
  if (!is_open()) return core::Error{std::string(kLogIsClosed)};
  // The current file is synced before the rotation, so that its final sync has few bytes left to
  // write.
  if (!has_lost_sync()) {
    if (auto synced = sync(); !synced) return synced;
  }
  if (next_) return {};  // an earlier attempt created the file but did not rotate
  AofManifest manifest = manifest_;
  const std::string name = manifest.add_incremental(place_.names).name;
  auto created = AofIncrement::create(files_, place_.path_of(name));
  if (!created) return created.error();
  if (!needs_base_) {
    if (auto saved = save_manifest(files_, place_, manifest); !saved) return saved;
  }
  manifest_ = std::move(manifest);
  next_ = std::move(*created);
  return {};
}

core::Result<> AofWriter::rotate() {
  assert(next_);
  const std::scoped_lock lock(mutex_);
  if (older_ != nullptr && !has_lost_sync()) {
    return core::Error{"ERR the file of the last rewrite is not synced yet"};
  }
  // The new base contains the pending commands, so they must not be in the new file. They are
  // written to the old file. After a failed sync they are in the base only. No earlier file may
  // receive bytes then, and the old file may be broken.
  if (has_lost_sync()) {
    take_journal();
    covered_bytes_ = batch_.size();
  } else if (auto written = write_locked(); !written) {
    return written;
  }
  if (older_ == nullptr) {
    older_ = current_.file();
    awaits_sync_ = true;
  }
  journal_.restate_database();
  older_bytes_ += current_.size_bytes();
  current_ = std::move(*next_);
  lines_->begin_file();
  next_.reset();
  return {};
}

core::Result<> AofWriter::replace_base(const std::string& new_base_path, AofBaseFormat format) {
  AofManifest manifest = manifest_;
  const std::string name = manifest.replace_base(place_.names, format).name;
  const auto size = files_.size_bytes(new_base_path);
  if (!size) return size.error();
  if (auto renamed = files_.rename(new_base_path, place_.path_of(name)); !renamed) return renamed;
  // After a failure the disk may have the old or the new manifest, so the files of both manifests
  // are kept.
  if (auto saved = save_manifest(files_, place_, manifest); !saved) return saved;
  manifest_ = std::move(manifest);
  {
    const std::scoped_lock lock(mutex_);
    older_bytes_ = *size;
    base_size_bytes_ = *size + current_.size_bytes();
    // The older file no longer needs a sync, because the base contains its commands.
    older_.reset();
    awaits_sync_ = false;
    batch_.erase(0, covered_bytes_);
    if (covered_bytes_ > 0 && batch_.empty()) written_.store(batch_end_);
    covered_bytes_ = 0;
    if (lost_ != current_.file()) {
      lost_.reset();
      has_lost_sync_.store(false, std::memory_order_release);
    }
  }
  needs_base_ = false;
  remove_history();
  return {};
}

// Files that cannot be removed stay in the manifest, so that the next rewrite or start retries.
void AofWriter::remove_history() {
  if (manifest_.history().empty()) return;
  AofManifest manifest = manifest_;
  for (const AofFile& file : manifest_.history()) {
    if (files_.remove(place_.path_of(file.name))) manifest.drop_from_history(file.name);
  }
  if (save_manifest(files_, place_, manifest)) manifest_ = std::move(manifest);
}

uint64_t AofWriter::size_bytes() const {
  const std::scoped_lock lock(mutex_);
  return older_bytes_ + current_.size_bytes();
}

uint64_t AofWriter::base_size_bytes() const {
  const std::scoped_lock lock(mutex_);
  return base_size_bytes_;
}

uint64_t AofWriter::buffered_bytes() const {
  const std::scoped_lock lock(mutex_);
  return batch_.size();
}

}  // namespace persistence

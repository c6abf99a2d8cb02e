// SPDX-License-Identifier: MIT
#include "server/tools/filter_file.h"

#include <future>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/bloom/bulk_filter.h"
#include "core/keyspace/keyspace.h"
#include "persistence/rdb/rdb_writer.h"
#include "server/tools/temporary_output.h"

namespace server {
namespace {

using core::bloom::BulkFilter;
using core::bloom::ItemHash;
using persistence::ByteSource;
using persistence::FileSystem;
using persistence::OpenMode;

// A temporary file for the bytes of a pipe, so that they can be read again. The file is unlinked
// once it is open.
class Spool final : public ByteSource {
 public:
  static core::Result<std::unique_ptr<Spool>> create(FileSystem& files, const std::string& path) {
    auto spool = std::make_unique<Spool>();
    auto opened = spool->open(files, path);
    const auto removed = files.remove(path);
    if (!opened) return opened.error();
    if (!removed) return removed.error();
    return spool;
  }
  core::Result<> write(std::string_view bytes) {
    size_bytes_ += bytes.size();
    return end_->write(bytes);
  }
  core::Result<size_t> read(std::span<char> out) override { return start_->read(out); }
  uint64_t size_bound() const override { return size_bytes_; }

 private:
  core::Result<> open(FileSystem& files, const std::string& path) {
    auto end = files.open_append(path, OpenMode::kCreate);
    if (!end) return end.error();
    auto start = files.open_input(path);
    if (!start) return start.error();
    end_ = std::move(*end);
    start_ = std::move(*start);
    return {};
  }

  std::unique_ptr<persistence::AppendFile> end_;
  std::unique_ptr<persistence::InputFile> start_;
  uint64_t size_bytes_ = 0;
};

class FilterFileBuilder {
 public:
  FilterFileBuilder(const BuildMeans& means, ItemStream& items, const FilterFileRequest& request)
      : means_(means), items_(items), request_(request), parameters_(request.parameters) {}

  core::Result<FilterFileFigures> run() {
    if (auto possible = check_target(); !possible) return possible.error();
    std::unique_ptr<Spool> spool;
    if (request_.counts_items) {
      if (!items_.can_rewind()) {
        auto created = Spool::create(
            means_.files, temporary_output(request_.path, request_.file_number, "items"));
        if (!created) return created.error();
        spool = std::move(*created);
      }
      if (auto counted = count(spool.get()); !counted) return counted.error();
    }
    if (auto filled = fill(spool ? static_cast<ByteSource&>(*spool) : items_); !filled) {
      return filled.error();
    }
    if (auto saved = save(); !saved) return saved.error();
    return figures_;
  }

 private:
  // Checks the output directory before any item is read. Otherwise a missing directory would be
  // reported only after all items were read.
  core::Result<> check_target() {
    if (auto replaceable = means_.files.check_replaceable(request_.path); !replaceable) {
      return replaceable;
    }
    const std::string path = temporary_filter_file(request_);
    if (auto opened = means_.files.open_append(path, OpenMode::kCreate); !opened) {
      return opened.error();
    }
    return means_.files.remove(path);
  }

  void report(BuildStep step, uint64_t done_bytes, uint64_t total_bytes) const {
    if (!request_.on_progress) return;
    const bool is_known = total_bytes != ByteSource::kUnknownSize;
    request_.on_progress({step, done_bytes, is_known ? total_bytes : 0, figures_.record_count});
  }

  // Passes each block to `use` while the next block is being read.
  template <class Use>
  core::Result<> each_block(BuildStep step, ByteSource& source, Use&& use) {
    RecordBlocks blocks(source, {request_.format, means_.team.size(), request_.block_bytes,
                                 request_.record_bytes_max});
    const auto read = [&blocks] { return blocks.next(); };
    const uint64_t total_bytes = source.size_bound();
    uint64_t done_bytes = 0;
    figures_.record_count = 0;
    for (auto next = std::async(std::launch::async, read);;) {
      const auto block = next.get();
      if (!block) return block.error();
      if (block->bytes.empty()) return {};
      next = std::async(std::launch::async, read);
      if (auto used = use(*block); !used) return used;
      figures_.record_count += block->record_count;
      done_bytes += block->bytes.size();
      report(step, done_bytes, total_bytes);
    }
  }

  core::Result<> count(Spool* spool) {
    const auto spooled = [spool](const RecordBlock& block) {
      return spool != nullptr ? spool->write(block.bytes) : core::Result<>();
    };
    if (auto done = each_block(BuildStep::kCount, items_, spooled); !done) return done;
    parameters_.capacity = figures_.record_count;
    if (parameters_.capacity == 0) {
      return core::Error{"ERR there are no items to count: give the filter a capacity"};
    }
    return spool != nullptr ? core::Result<>() : items_.rewind();
  }

  core::Result<> fill(ByteSource& source) {
    if (parameters_.layout == core::bloom::kNativeLayout) {
      parameters_.layout = core::bloom::native_layout(request_.native_version, parameters_);
    }
    auto created = BulkFilter::create(parameters_, means_.budget, means_.team);
    if (!created) return created.error();
    filter_ = std::move(*created);
    const core::bloom::ItemHasher hash = filter_->hasher();
    std::vector<std::vector<ItemHash>> hashes(means_.team.size());
    return each_block(BuildStep::kAdd, source, [&](const RecordBlock& block) -> core::Result<> {
      means_.team.run([&](unsigned member) {
        std::vector<ItemHash>& own = hashes[member];
        own.clear();
        for_each_record(block.part(member), request_.format,
                        [&](std::string_view item) { own.push_back(hash(item)); });
      });
      for (const std::vector<ItemHash>& part : hashes) {
        if (auto added = filter_->add(part); !added) return added;
      }
      return {};
    });
  }

  core::Result<> save() {
    auto filter = filter_->finish();
    figures_.layout = filter->layout();
    figures_.item_count = filter->item_count();
    figures_.capacity = filter->capacity();
    figures_.layer_count = filter->layer_count();
    figures_.filter_bytes = filter->size_bytes();
    core::keyspace::Keyspace keyspace(1, 0);
    keyspace.insert(0, keyspace.ref(request_.key)).set_filter(std::move(filter));
    persistence::RdbWriteOptions options;
    options.server_version = request_.server_version;
    options.created_at_s = request_.created_at_s;
    options.on_progress = [this](const persistence::RdbProgress& progress) {
      report(BuildStep::kWrite, progress.bytes, figures_.filter_bytes);
    };
    const auto saved = persistence::save_rdb(
        means_.files, {request_.path, temporary_filter_file(request_)}, keyspace, options);
    if (!saved) return saved.error();
    figures_.file_bytes = saved->bytes;
    return {};
  }

  const BuildMeans& means_;
  ItemStream& items_;
  const FilterFileRequest& request_;
  core::bloom::FilterParameters parameters_;
  std::unique_ptr<BulkFilter> filter_;
  FilterFileFigures figures_;
};

}  // namespace

core::Result<FilterFileFigures> build_filter_file(const BuildMeans& means, ItemStream& items,
                                                  const FilterFileRequest& request) {
  try {
    return FilterFileBuilder(means, items, request).run();
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to build the filter", core::ErrorCode::kOutOfMemory};
  }
}

std::string temporary_filter_file(const FilterFileRequest& request) {
  return temporary_output(request.path, request.file_number, "rdb");
}

}  // namespace server

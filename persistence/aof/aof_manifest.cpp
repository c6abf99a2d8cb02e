// SPDX-License-Identifier: MIT
#include "persistence/aof/aof_manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/number.h"
#include "persistence/bytes/crc64.h"
#include "protocol/arguments.h"
#include "protocol/inline_splitter.h"

namespace persistence {
namespace {

// The maximum size of a line, including its line end, as Redis counts it.
constexpr size_t kLineMaxBytes = 1024;
constexpr size_t kManifestMaxBytes = size_t{16} << 20;
constexpr std::string_view kWhiteSpace = " \t\r\n";
// The maximum sequence number of a file. No log ever has that many files.
constexpr int64_t kSequenceMax = int64_t{1} << 62;

core::Error wrong(std::string_view place, std::string_view reason) {
  return {fmt::format("ERR bad append log manifest {}: {}", place, reason)};
}

// Returns Redis' message for a damaged manifest, so that users find it by a search. The reason
// follows the message.
core::Error malformed(std::string_view place, std::string_view reason) {
  return wrong(place, fmt::format("Invalid AOF manifest file format, {}", reason));
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

bool is_plain(unsigned char c) {
  return c > ' ' && c != 0x7f && c != '"' && c != '\'' && c != '\\';
}

std::string quoted_if_needed(const std::string& name) {
  if (std::ranges::all_of(name, is_plain)) return name;
  std::string quoted = "\"";
  for (const char c : name) {
    if (is_plain(c) || c == ' ' || c == '\'') {
      quoted += c;
    } else {
      fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return quoted + '"';
}

struct ManifestLine {
  AofFile file;
  char type = 0;
};

core::Result<ManifestLine> parse_entry(std::string_view line, const std::string& place) {
  protocol::InlineSplitter splitter;
  const bool balanced = splitter.split(line);
  const auto words = splitter.arguments();
  if (!balanced || words.size() < 6 || words.size() % 2 != 0) {
    return malformed(place, manifest_fault::kNotPairs);
  }
  ManifestLine entry;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (protocol::equals_ignore_case(words[i], "file")) {
      entry.file.name = value;
      if (!is_manifest_name(entry.file.name)) return malformed(place, manifest_fault::kNoFileName);
    } else if (protocol::equals_ignore_case(words[i], "seq")) {
      const auto sequence = core::parse_int64(value);
      if (!sequence || *sequence <= 0 || *sequence > kSequenceMax) {
        return malformed(place, manifest_fault::kNoSequence);
      }
      entry.file.sequence = static_cast<uint64_t>(*sequence);
    } else if (protocol::equals_ignore_case(words[i], "type")) {
      entry.type = value.size() == 1 ? value.front() : '?';
    }
    // Fields that later versions may add are ignored.
  }
  if (entry.file.name.empty() || entry.file.sequence == 0 || entry.type == 0) {
    return malformed(place, manifest_fault::kMissingField);
  }
  return entry;
}

// Seal: checks the version and checksum lines of a manifest.
class Seal {
 public:
  // Checks a line. `line` includes its line end; `before` is all preceding text.
  core::Result<> see(std::string_view line, std::string_view before, const std::string& place) {
    if (checked_) return wrong(place, manifest_fault::kTextAfterChecksum);
    using Kind = AofAnnotation::Kind;
    if (!line.starts_with('#')) return {};
    const AofAnnotation annotation = parse_annotation(line.substr(0, line.size() - 1));
    if (annotation.kind == Kind::kMalformed) return wrong(place, manifest_fault::kMalformedLine);
    if (annotation.kind == Kind::kVersion) {
      if (annotation.value != kAofVersion) return wrong(place, aof_fault::kLaterVersion);
      needed_ = true;
    }
    if (annotation.kind == Kind::kChecksum) {
      if (annotation.value != crc64(0, before)) return wrong(place, "the checksum does not match");
      checked_ = true;
    }
    return {};
  }
  bool is_broken() const { return needed_ && !checked_; }

 private:
  bool needed_ = false;
  bool checked_ = false;
};

void encode_file(std::string& text, const AofFile& file, char type) {
  fmt::format_to(std::back_inserter(text), "file {} seq {} type {}\n", quoted_if_needed(file.name),
                 file.sequence, type);
}

}  // namespace

bool is_manifest_name(const std::string& name) {
  constexpr std::string_view kForbidden("/\\\0", 3);
  constexpr size_t kNameMaxBytes = 255;
  constexpr size_t kRestOfLineBytes = 40;
  return !name.empty() && name != "." && name != ".." && name.size() <= kNameMaxBytes &&
         name.find_first_of(kForbidden) == std::string::npos &&
         quoted_if_needed(name).size() <= kLineMaxBytes - kRestOfLineBytes;
}

AofManifest AofManifest::of_single_file(std::string name) {
  AofManifest manifest;
  manifest.base_ = AofFile{std::move(name), 1};
  return manifest;
}

core::Result<AofManifest> AofManifest::parse(std::string_view text, const std::string& path) {
  AofManifest manifest;
  Seal seal;
  std::string place = fmt::format("'{}'", path);
  if (text.empty()) return wrong(place, manifest_fault::kEmpty);
  size_t line_number = 0;
  for (size_t at = 0; at < text.size();) {
    place = fmt::format("'{}', line {}", path, ++line_number);
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    if (line.size() > kLineMaxBytes) {
      return wrong(place, manifest_fault::kLongLine);
    }
    if (!line.ends_with('\n')) return malformed(place, manifest_fault::kNoLineEnd);
    if (auto seen = seal.see(line, text.substr(0, at), place); !seen) return seen.error();
    at += line.size();
    if (line.starts_with('#')) continue;
    auto entry = parse_entry(trim(line), place);
    if (!entry) return entry.error();
    auto added = manifest.add(entry->type, std::move(entry->file), place);
    if (!added) return added.error();
  }
  if (seal.is_broken()) return wrong(place, "the checksum line is missing at the end");
  return manifest;
}

core::Result<> AofManifest::add(char type, AofFile file, const std::string& place) {
  switch (type) {
    case 'b':
      if (base_) return wrong(place, manifest_fault::kSecondBase);
      base_ = std::move(file);
      return {};
    case 'h':
      history_.push_back(std::move(file));
      return {};
    case 'i':
      if (!incrementals_.empty() && file.sequence <= incrementals_.back().sequence) {
        return wrong(place, manifest_fault::kWrongOrder);
      }
      incrementals_.push_back(std::move(file));
      return {};
    default:
      return wrong(place, manifest_fault::kUnknownType);
  }
}

std::string AofManifest::encode() const {
  std::string text = fmt::format("{}\n", kAofVersionText);
  if (base_) encode_file(text, *base_, 'b');
  for (const AofFile& file : history_) encode_file(text, file, 'h');
  for (const AofFile& file : incrementals_) encode_file(text, file, 'i');
  return fmt::format("{}{}\n", text, checksum_text(crc64(0, text)));
}

bool AofManifest::lists(std::string_view name) const {
  const auto is_it = [&](const AofFile& file) { return file.name == name; };
  return (base_ && is_it(*base_)) || std::ranges::any_of(history_, is_it) ||
         std::ranges::any_of(incrementals_, is_it);
}

const AofFile& AofManifest::add_incremental(const AofNames& names) {
  uint64_t sequence = incrementals_.empty() ? 0 : incrementals_.back().sequence;
  // A history file is still on the disk and may be removed at any moment, so its name is not
  // reused.
  do {
    ++sequence;
  } while (lists(names.incremental(sequence)));
  return incrementals_.emplace_back(AofFile{names.incremental(sequence), sequence});
}

const AofFile& AofManifest::replace_base(const AofNames& names, AofBaseFormat format) {
  uint64_t sequence = base_ ? base_->sequence : 0;
  if (base_) history_.push_back(std::move(*base_));
  while (incrementals_.size() > 1) {
    history_.push_back(std::move(incrementals_.front()));
    incrementals_.erase(incrementals_.begin());
  }
  do {
    ++sequence;
  } while (lists(names.base(sequence, format)));
  return base_.emplace(AofFile{names.base(sequence, format), sequence});
}

const AofFile& AofManifest::replace_all(const AofNames& names, AofBaseFormat format) {
  const AofFile& base = replace_base(names, format);
  for (AofFile& file : incrementals_) history_.push_back(std::move(file));
  incrementals_.clear();
  return base;
}

core::Result<AofManifest> load_manifest(FileSystem& files, const std::string& path) {
  const auto text = read_beginning(files, path, kManifestMaxBytes + 1);
  if (!text) return text.error();
  if (text->size() > kManifestMaxBytes) return wrong(fmt::format("'{}'", path), "it is too large");
  return AofManifest::parse(*text, path);
}

core::Result<> save_manifest(FileSystem& files, const AofPlace& place,
                             const AofManifest& manifest) {
  return replace_file(files, place.path_of(place.names.manifest()),
                      place.path_of(place.names.temporary_manifest()), manifest.encode());
}

}  // namespace persistence

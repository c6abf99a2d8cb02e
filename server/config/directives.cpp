// SPDX-License-Identifier: MIT
#include "server/config/directives.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "persistence/files/file.h"
#include "server/config/option_table.h"
#include "server/config/words.h"

namespace server {
namespace {

constexpr size_t kMaxIncludeDepth = 16;
constexpr size_t kMaxFiles = 1024;

// The line for a message, without the value where that is a secret.
std::string shown_text(const Directive& directive) {
  const auto words = split_words(directive.text);
  const std::string name =
      lower_case(directive.text.substr(0, directive.text.find_first_of(" \t")));
  const auto index = find_option(words && !words->empty() ? words->front() : name);
  if (!index || !option_table()[*index].sensitive) return directive.text;
  return name + " (redacted)";
}

// A pattern that matches nothing includes nothing; a plain name must exist.
std::vector<std::string> expand_pattern(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  glob_t matches{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  ::globfree(&matches);
  return paths;
}

std::string canonical_path(const std::string& path) {
  std::error_code error;
  const auto canonical = std::filesystem::canonical(path, error);
  return error ? path : canonical.string();
}

// Reads depth first, so that what an included file says stands where its include stood.
class FileReader {
 public:
  core::Result<> read_file(const std::string& path) {
    auto text = persistence::read_whole_file(path, kConfigFileLimitBytes);
    if (!text) return unreadable(text.error());
    open_paths_.push_back(canonical_path(path));
    auto done = read_text(*text, path);
    open_paths_.pop_back();
    return done;
  }

  core::Result<> read_text(std::string_view text, const std::string& source) {
    for (size_t line = 1; !text.empty(); ++line) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (auto read = read_line({source, line, std::string(trim(text.substr(0, end))), {}});
          !read) {
        return read.error();
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return {};
  }

  std::vector<Directive> take() { return std::move(directives_); }

 private:
  static core::Error unreadable(const core::Error& error) {
    // The message begins with the reply code, of which a start-up error has no use.
    return {"Fatal error, " + error.message.substr(error.message.find(' ') + 1)};
  }

  core::Result<> read_line(Directive directive) {
    if (directive.text.empty() || directive.text.front() == '#') return {};
    auto words = split_words(directive.text);
    if (!words) return fatal_config_error(directive, "Unbalanced quotes in configuration line");
    directive.words = std::move(*words);
    if (directive.words.empty()) return {};
    directive.words[0] = lower_case(directive.words[0]);
    if (directive.words[0] == "include" && directive.words.size() == 2) return include(directive);
    directives_.push_back(std::move(directive));
    return {};
  }

  core::Result<> include(const Directive& directive) {
    for (const std::string& path : expand_pattern(directive.words[1])) {
      const auto canonical = canonical_path(path);
      if (std::find(open_paths_.begin(), open_paths_.end(), canonical) != open_paths_.end()) {
        return fatal_config_error(directive, fmt::format("'{}' includes itself", path));
      }
      if (open_paths_.size() >= kMaxIncludeDepth) {
        return fatal_config_error(
            directive, fmt::format("include is nested deeper than {} files", kMaxIncludeDepth));
      }
      // Depth alone would let a few files that include each other's successors twice explode.
      if (++file_count_ > kMaxFiles) {
        return fatal_config_error(directive,
                                  fmt::format("more than {} files are included", kMaxFiles));
      }
      if (auto read = read_file(path); !read) return read.error();
    }
    return {};
  }

  std::vector<Directive> directives_;
  std::vector<std::string> open_paths_;
  size_t file_count_ = 0;
};

}  // namespace

core::Error fatal_config_error(const Directive& at, std::string_view reason) {
  return {
      fmt::format("\n*** FATAL CONFIG FILE ERROR (Bloomery {}) ***\n"
                  "Reading the configuration file, at line {} of {}\n>>> '{}'\n{}\n",
                  BLOOMERY_VERSION, at.line, at.source, shown_text(at), reason)};
}

core::Result<std::vector<Directive>> read_config_file(const std::string& path) {
  FileReader reader;
  if (auto read = reader.read_file(path); !read) return read.error();
  return reader.take();
}

core::Result<std::vector<Directive>> read_config_text(std::string_view text,
                                                      const std::string& source) {
  FileReader reader;
  if (auto read = reader.read_text(text, source); !read) return read.error();
  return reader.take();
}

}  // namespace server

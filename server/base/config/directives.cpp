// SPDX-License-Identifier: MIT
#include "server/base/config/directives.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/printable.h"
#include "persistence/files/file.h"
#include "server/base/config/option_table.h"
#include "server/base/config/words.h"

namespace server {
namespace {

constexpr size_t kMaxIncludeDepth = 16;
constexpr size_t kMaxFiles = 1024;

// Returns whether a rule of a `user` line contains a password or its hash.
bool is_secret_rule(std::string_view rule) {
  return !rule.empty() && std::string_view("<>#!").find(rule.front()) != std::string_view::npos;
}

std::string masked_user(const std::vector<std::string>& words) {
  std::vector<std::string> shown;
  for (const std::string& word : words) {
    const bool is_secret = shown.size() >= 2 && is_secret_rule(word);
    shown.push_back(is_secret ? word.substr(0, 1) + "(redacted)" : quote_word_if_needed(word));
  }
  return join_words(shown);
}

// Returns the line's text for an error. Hides the value if it is a secret.
std::string printable_text(const Directive& directive) {
  const auto words = split_words(directive.text);
  const bool is_split = words && !words->empty();
  const std::string name = lower_case(
      is_split ? words->front() : directive.text.substr(0, directive.text.find_first_of(" \t")));
  if (name == "user" && is_split) {
    return std::ranges::any_of(*words, is_secret_rule) ? masked_user(*words) : directive.text;
  }
  const auto index = find_option(name);
  const bool is_secret = name == "user" || (index && option_table()[*index].sensitive);
  return is_secret ? name + " (redacted)" : directive.text;
}

// Escapes a folder's name, so that as a pattern it matches only itself.
std::string escape_wildcards(const std::string& name) {
  std::string escaped;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Resolves `path` against `folder`, as a server that is started there would do. An empty `folder`
// means the current directory.
std::string path_in(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.empty() || path.front() == '/') return path;
  return folder + '/' + path;
}

// Lets glob() go on only if a directory of the pattern does not exist.
int stop_glob(const char* /*path*/, int error) {
  return error == ENOENT || error == ENOTDIR ? 0 : 1;
}

// A pattern may match no file, but a name without wildcards must exist. Errors: a directory cannot
// be read. Its files may hold passwords, so it must not count as empty.
core::Result<std::vector<std::string>> expand_pattern(const std::string& pattern,
                                                      const std::string& folder) {
  if (pattern.find_first_of("*?[") == std::string::npos) {
    return std::vector{path_in(folder, pattern)};
  }
  const std::string whole = path_in(escape_wildcards(folder), pattern);
  glob_t matches{};
  std::vector<std::string> paths;
  const int outcome = ::glob(whole.c_str(), 0, stop_glob, &matches);
  if (outcome == 0) paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (outcome != 0 && outcome != GLOB_NOMATCH) {
    return core::Error{fmt::format("can't read a directory of '{}'", core::printable(whole))};
  }
  return paths;
}

std::string canonical_path(const std::string& path) {
  std::error_code error;
  const auto canonical = std::filesystem::canonical(path, error);
  return error ? path : canonical.string();
}

// Reads files depth-first, so that an included file's lines replace the include directive.
class FileReader {
 public:
  // Reads the files that a start in `folder` would read. By default this is the current directory.
  explicit FileReader(std::string folder = "") : folder_(std::move(folder)) {}

  core::Result<> read_file(const std::string& path) {
    const auto text = persistence::read_whole_file(path, kConfigFileLimitBytes,
                                                   persistence::FileKinds::kStreamsWithWait);
    // The message begins with a reply code, which is removed from a startup error.
    if (!text) {
      return core::Error{fmt::format("Fatal error, {}", core::without_code(text.error().message))};
    }
    return read_text_of(path, *text);
  }

  core::Result<> read_text_of(const std::string& path, std::string_view text) {
    open_paths_.push_back(canonical_path(path));
    auto done = read_text(text, path);
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
  core::Result<> read_line(Directive directive) {
    if (directive.text.empty() || directive.text.front() == '#') return {};
    auto words = split_words(directive.text);
    if (!words) return fatal_config_error(directive, kUnbalancedLine);
    directive.words = std::move(*words);
    if (directive.words.empty()) return {};
    directive.words[0] = lower_case(directive.words[0]);
    if (directive.words[0] == "include" && directive.words.size() == 2) return include(directive);
    // A relative path of `dir` is resolved here against the folder in which the server would start.
    // The parser of `dir` would resolve the path against the process's current directory.
    if (directive.words[0] == "dir" && directive.words.size() == 2) {
      directive.words[1] = path_in(folder_, directive.words[1]);
    }
    directives_.push_back(std::move(directive));
    return {};
  }

  core::Result<> include(const Directive& directive) {
    const auto paths = expand_pattern(directive.words[1], folder_);
    if (!paths) return fatal_config_error(directive, paths.error().message);
    for (const std::string& path : *paths) {
      const auto canonical = canonical_path(path);
      if (std::find(open_paths_.begin(), open_paths_.end(), canonical) != open_paths_.end()) {
        return fatal_config_error(directive, fmt::format("'{}' includes itself", path));
      }
      if (open_paths_.size() >= kMaxIncludeDepth) {
        return fatal_config_error(
            directive, fmt::format("include is nested deeper than {} files", kMaxIncludeDepth));
      }
      // A limit on depth alone is insufficient: a few files that each include the next file twice
      // would be read exponentially often.
      if (++file_count_ > kMaxFiles) {
        return fatal_config_error(directive,
                                  fmt::format("more than {} files are included", kMaxFiles));
      }
      const auto text = persistence::read_whole_file({path, "include"}, kConfigFileLimitBytes);
      if (!text) return fatal_config_error(directive, core::without_code(text.error().message));
      if (auto read = read_text_of(path, *text); !read) return read.error();
    }
    return {};
  }

  const std::string folder_;
  std::vector<Directive> directives_;
  std::vector<std::string> open_paths_;
  size_t file_count_ = 0;
};

}  // namespace

core::Error fatal_config_error(const Directive& at, std::string_view reason) {
  return {
      fmt::format("\n*** FATAL CONFIG FILE ERROR (Bloomery {}) ***\n"
                  "Reading the configuration file, at line {} of {}\n>>> '{}'\n{}\n",
                  BLOOMERY_VERSION, at.line, at.source, printable_text(at), reason)};
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

core::Result<std::vector<Directive>> read_at_start(std::string_view text, const std::string& path,
                                                   const std::string& folder) {
  FileReader reader(folder);
  if (auto read = reader.read_text_of(path, text); !read) return read.error();
  return reader.take();
}

}  // namespace server

// SPDX-License-Identifier: MIT
//
// Loads any bytes as a configuration file. Writes the values of an accepted file in two ways: as
// plain lines, and as CONFIG REWRITE does. Aborts if a file written in this way is rejected, or has
// other values.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/config/command_line.h"
#include "server/base/config/config.h"
#include "server/base/config/option_table.h"
#include "server/base/config/rewrite.h"
#include "server/base/config/words.h"

namespace {

using server::Config;
using Values = std::map<std::string, std::string>;

void require(bool condition) {
  if (!condition) std::abort();
}

// A temporary file that contains the text and has no name in any directory.
class Text {
 public:
  explicit Text(std::string_view bytes) : descriptor_(::memfd_create("text", MFD_CLOEXEC)) {
    require(descriptor_ >= 0);
    require(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    require(::lseek(descriptor_, 0, SEEK_SET) == 0);
  }
  ~Text() { ::close(descriptor_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

bool load(Config& config, std::string_view text) {
  constexpr std::array<const char*, 2> kArguments = {"server", "-"};
  const Text file(text);
  const auto loaded = config.load(kArguments.size(), kArguments.data(), file.descriptor());
  return static_cast<bool>(loaded);
}

Values values_of(const Config& config) {
  std::vector<std::string_view> patterns = {"*"};
  for (const server::Option& option : server::option_table()) {
    if (option.hidden) patterns.push_back(option.name);
  }
  const auto pairs = config.get(patterns);
  return {pairs.begin(), pairs.end()};
}

void ask_of_words(std::string_view text) {
  const auto words = server::split_words(text);
  if (!words) return;
  std::string quoted;
  for (const std::string& word : *words) quoted += server::quote_word_if_needed(word) + ' ';
  const auto again = server::split_words(quoted);
  require(again && *again == *words);
  (void)server::parse_command_line(*words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 2048;
  if (size > kBytesMax) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ask_of_words(text);
  // `include` would read other files, whose values are not part of the text.
  if (server::lower_case(text).find("include") != std::string::npos) return 0;
  Config config;
  if (!load(config, text)) return 0;
  const Values values = values_of(config);
  std::string lines;
  std::vector<std::string> texts;
  for (const server::Option& option : server::option_table()) {
    const std::string& value = values.at(std::string(option.name));
    texts.push_back(value);
    lines += std::string(option.name) + ' ' + server::quote_word(value) + '\n';
  }
  Config of_lines;
  require(load(of_lines, lines));
  require(values_of(of_lines) == values);
  Config of_rewritten;
  require(load(of_rewritten, server::rewrite_config_text(text, texts)));
  require(values_of(of_rewritten) == values);
  return 0;
}

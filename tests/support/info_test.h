// SPDX-License-Identifier: MIT
//
// InfoTest: a fixture that reads fields of INFO.
//
// Thread safety: belongs to one thread.
#pragma once

#include <string>
#include <vector>

#include "tests/support/command_test.h"

namespace server {

class InfoTest : public CommandTest {
 protected:
  // Returns the reply of INFO, without the header of the bulk string.
  std::string info(const std::vector<std::string>& sections) {
    std::vector<std::string> command{"INFO"};
    command.insert(command.end(), sections.begin(), sections.end());
    const std::string reply = run(command);
    const size_t start = reply.find('\n') + 1;
    return reply.substr(start, reply.size() - start - 2);
  }
  // Returns the value of a field in a section, or "none".
  std::string field(const std::string& section, const std::string& name) {
    const std::string text = "\n" + info({section});
    const size_t start = text.find("\n" + name + ":");
    if (start == std::string::npos) return "none";
    const size_t value = start + name.size() + 2;
    return text.substr(value, text.find('\r', value) - value);
  }
  int64_t number(const std::string& section, const std::string& name) {
    const std::string text = field(section, name);
    EXPECT_NE(text, "none") << name;
    return text == "none" ? -1 : std::stoll(text);
  }
  // Returns the titles of the sections of INFO, in their order.
  static std::vector<std::string> titles_in(const std::string& text) {
    std::vector<std::string> titles;
    for (size_t at = text.find("# "); at != std::string::npos; at = text.find("\n# ", at + 1)) {
      const size_t start = text.find(' ', at) + 1;
      titles.push_back(text.substr(start, text.find('\r', at) - start));
    }
    return titles;
  }
};

}  // namespace server

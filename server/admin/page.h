// SPDX-License-Identifier: MIT
//
// The dashboard's files, which the build embeds into the program.
//
// Thread safety: constants.
// Source: server/admin/dashboard/.
#pragma once

#include <span>
#include <string_view>

namespace server::admin {

struct PageFile {
  std::string_view path;  // path in the URL, such as "/charts.js", or "/" for index.html
  std::string_view content_type;
  std::string_view text;
};

std::span<const PageFile> page_files();

}  // namespace server::admin

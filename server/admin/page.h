// SPDX-License-Identifier: MIT
//
// The dashboard's files, which the build puts into the program.
//
// Thread safety: constants.
// Source: server/admin/page/.
#pragma once

#include <string_view>

namespace server::admin {

extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageIcon;
extern const std::string_view kPageScript;

}  // namespace server::admin

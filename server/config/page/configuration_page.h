// SPDX-License-Identifier: MIT
//
// docs/configuration.md: the words of the sample file and what the option table says, as one page.
//
// Invariants: every paragraph of the file is on the page, in the file's order. Its words mean in
// Markdown what they mean in the file; between backticks they are code.
// Thread safety: a pure function over constant rows.
// Source: docs/configuration.md, conf/bloomery.conf.
#pragma once

#include <string>
#include <vector>

#include "server/config/page/sample_file.h"

namespace server {

std::string configuration_page(const std::vector<SampleSection>& sections);

}  // namespace server

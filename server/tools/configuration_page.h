// SPDX-License-Identifier: MIT
//
// Generates docs/configuration.md from the texts of the sample file and from the option table.
//
// Invariants: every paragraph of the file is on the page, in the file's order. Markdown shows the
// texts as they are in the file; texts between backticks are shown as code.
// Thread-safe: the function keeps no state, and the rows that it reads are constants.
// Source: docs/configuration.md, conf/bloomery.conf.
#pragma once

#include <string>
#include <vector>

#include "server/tools/sample_file.h"

namespace server {

std::string configuration_page(const std::vector<SampleSection>& sections);

}  // namespace server

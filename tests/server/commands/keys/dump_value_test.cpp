// SPDX-License-Identifier: MIT
#include "server/commands/keys/dump_value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/bloom/scalable_filter.h"
#include "persistence/bytes/module_value.h"
#include "persistence/rdb/dump_payload.h"
#include "server/base/process/memory_monitor.h"
#include "server/dispatch/admission.h"

namespace server {
namespace {

using core::keyspace::Entry;
using core::keyspace::EntryPtr;

class DumpValueTest : public ::testing::Test {
 protected:
  core::Result<EntryPtr> restore(std::string_view payload,
                                 CommandOrigin origin = CommandOrigin::kClient) const {
    return restored_entry(Admission(config_, memory_, origin), "copy", payload);
  }
  std::string refusal(std::string_view payload) const {
    const auto restored = restore(payload);
    return restored ? "" : restored.error().message;
  }
  static EntryPtr string_entry(std::string_view text) {
    EntryPtr entry = Entry::create("a");
    EXPECT_TRUE(entry->set_string(text));
    return entry;
  }
  static std::string sealed(std::string body) {
    persistence::append_dump_footer(body);
    return body;
  }

  Config config_;
  MemoryMonitor memory_;
};

TEST_F(DumpValueTest, StringsComeBackUnderTheNewName) {
  for (const std::string text : {"", "hello", "12345", "-7"}) {
    const auto restored = restore(dump_of(*string_entry(text)));
    ASSERT_TRUE(restored) << text;
    EXPECT_EQ((*restored)->key(), "copy");
    core::keyspace::IntegerText scratch;
    EXPECT_EQ((*restored)->text(scratch), text);
  }
}

TEST_F(DumpValueTest, FiltersComeBack) {
  EntryPtr entry = Entry::create("f");
  core::bloom::FilterParameters parameters;
  parameters.capacity = 100;
  auto filter = core::bloom::ScalableFilter::create(parameters, core::UnlimitedMemory());
  ASSERT_TRUE(filter);
  (*filter)->add("x", core::UnlimitedMemory());
  entry->set_filter(std::move(*filter));
  const auto restored = restore(dump_of(*entry));
  ASSERT_TRUE(restored);
  ASSERT_TRUE((*restored)->is_filter());
  EXPECT_EQ((*restored)->filter().item_count(), 1u);
  EXPECT_TRUE((*restored)->filter().may_contain("x"));
}

TEST_F(DumpValueTest, DamageIsRefused) {
  const std::string payload = dump_of(*string_entry("hello"));
  std::string flipped = payload;
  flipped[1] = static_cast<char>(flipped[1] ^ 1);
  EXPECT_EQ(refusal(flipped), kWrongFooter);
  EXPECT_EQ(refusal(""), kWrongFooter);
  EXPECT_EQ(refusal(sealed("")), kBadFormat);
  EXPECT_EQ(refusal(sealed(std::string(1, '\xc8'))), kBadFormat);
  EXPECT_EQ(refusal(sealed(std::string(1, '\x07'))), kBadFormat);
  EXPECT_EQ(refusal(sealed(std::string("\0\x05he", 4))), kBadFormat);
}

// Clients match the first words, which are the same for damage.
TEST_F(DumpValueTest, OtherTypesAreNamed) {
  const auto named = [](std::string_view kind) {
    return fmt::format("{}: values of {} are not supported here", kBadFormat, kind);
  };
  EXPECT_EQ(refusal(sealed(std::string("\x01\x01\x01x", 4))), named("type list"));
  EXPECT_EQ(refusal(sealed(std::string("\x0b\x00", 2))), named("type set"));
  EXPECT_EQ(refusal(sealed(std::string("\x16\x00", 2))), named("type hash"));
  std::string cuckoo(1, '\x07');
  persistence::ByteWriter writer(cuckoo);
  writer.length(persistence::module_id("MBbloomCF", 4));
  EXPECT_EQ(refusal(sealed(cuckoo)), named("module MBbloomCF"));
}

TEST_F(DumpValueTest, TheLimitsAreForClients) {
  const std::vector<NamedValue> pairs{{"proto-max-bulk-len", "1mb"}};
  ASSERT_TRUE(config_.set(pairs));
  const std::string payload = dump_of(*string_entry(std::string((size_t{1} << 20) + 1, 'x')));
  EXPECT_EQ(refusal(payload), kStringTooLong);
  EXPECT_TRUE(restore(payload, CommandOrigin::kOwnJournal));
}

}  // namespace
}  // namespace server

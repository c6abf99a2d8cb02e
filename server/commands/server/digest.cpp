// SPDX-License-Identifier: MIT
#include "server/commands/server/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <memory>

#include "persistence/bytes/byte_stream.h"
#include "persistence/bytes/chunked_output.h"
#include "persistence/filters/filter_codec.h"

namespace server {
namespace {

using core::keyspace::Entry;

class Sha1 final : public persistence::ByteSink {
 public:
  Sha1() : context_(EVP_MD_CTX_new()) { EVP_DigestInit_ex(context_.get(), EVP_sha1(), nullptr); }

  core::Result<> write(std::string_view bytes) override {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
    return {};
  }
  void write_number(uint64_t number) {
    (void)write({reinterpret_cast<const char*>(&number), sizeof number});
  }
  // Hashes the length of the text before its bytes, so that the texts "a", "bc" give another digest
  // than "ab", "c".
  void write_text(std::string_view text) {
    write_number(text.size());
    (void)write(text);
  }
  Digest finish() {
    Digest digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    return digest;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

void write_value(Sha1& sum, const Entry& entry) {
  if (entry.is_filter()) {
    sum.write_number(1);
    persistence::ChunkedOutput chunks(sum, {.sums = false, .on_piece = {}});
    persistence::ByteWriter writer(chunks);
    persistence::encode_filter(writer, entry.filter(), persistence::Packing::kNever);
    (void)chunks.flush();  // a digest accepts every chunk, so flush() cannot fail
    return;
  }
  core::keyspace::IntegerText scratch;
  sum.write_number(0);
  sum.write_text(entry.text(scratch));
}

}  // namespace

Digest value_digest(const Entry& entry) {
  Sha1 sum;
  write_value(sum, entry);
  return sum.finish();
}

Digest keyspace_digest(const core::keyspace::Keyspace& keyspace) {
  Digest total{};
  for (unsigned database = 0; database < keyspace.database_count(); ++database) {
    keyspace.for_each(database, [&](const Entry& entry) {
      Sha1 sum;
      sum.write_number(database);
      sum.write_text(entry.key());
      sum.write_number(static_cast<uint64_t>(entry.expires_at_ms()));
      write_value(sum, entry);
      const Digest one = sum.finish();
      // The digests are combined by XOR, because tables are unordered.
      for (size_t i = 0; i < total.size(); ++i) total[i] ^= one[i];
    });
  }
  return total;
}

std::string to_text(const Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace server

// SPDX-License-Identifier: MIT
//
// Tests that TLS reads its files without waiting for other processes. tls_context_test.cpp tests
// the errors for files with invalid content.
#include "server/base/transport/tls_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/support/temp_directory.h"
#include "tests/support/tls_authority.h"

namespace server {
namespace {

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() { EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0); }

  static std::unique_ptr<X509, decltype(&X509_free)> read(const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "re");
    X509* const certificate = PEM_read_X509(file, nullptr, nullptr, nullptr);
    std::fclose(file);
    return {certificate, &X509_free};
  }
  // Returns the path of the authority's certificate in a directory for tls-ca-cert-dir. OpenSSL
  // finds a certificate there by the hash of its subject.
  std::string hashed_path() const {
    const auto authority = read(authority_.certificate_file());
    return fmt::format("{}/{:08x}.0", directory_.path(), X509_subject_name_hash(authority.get()));
  }
  // Verifies a certificate of the authority as a handshake does. Returns whether the context
  // accepts the certificate.
  bool trusts() {
    const auto certificate = read(authority_.issue("somebody").certificate_file);
    const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(
        X509_STORE_CTX_new(), &X509_STORE_CTX_free);
    EXPECT_EQ(X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context_.get()),
                                  certificate.get(), nullptr),
              1);
    const bool is_trusted = X509_verify_cert(check.get()) == 1;
    ERR_clear_error();
    return is_trusted;
  }
  std::string fault(std::string_view what, std::string_view option) const {
    return fmt::format("{}: can't open '{}': it is a FIFO; {} needs a regular file", what, fifo_,
                       option);
  }

  const support::TempDirectory directory_;
  const std::string fifo_ = directory_.path() + "/fifo";
  TlsAuthority authority_;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_method()),
                                                                   &SSL_CTX_free};
};

// A FIFO must be rejected, because OpenSSL would wait for a process that writes to it.
TEST_F(TlsFilesTest, RefuseAFifo) {
  EXPECT_EQ(use_certificate_chain(context_.get(), {fifo_, "a"}).error().message,
            fault(kCertificateFails, "a"));
  EXPECT_EQ(use_private_key(context_.get(), {fifo_, "b"}, "").error().message,
            fault(kPrivateKeyFails, "b"));
  EXPECT_EQ(use_dh_parameters(context_.get(), {fifo_, "c"}).error().message,
            fault(kDhParametersFail, "c"));
  EXPECT_EQ(trust_file(context_.get(), {fifo_, "d"}).error().message, fault(kAuthoritiesFail, "d"));
}

TEST_F(TlsFilesTest, AFileNamesAuthorities) {
  EXPECT_FALSE(trusts());
  ASSERT_TRUE(trust_file(context_.get(), authority_.certificate_file()));
  EXPECT_TRUE(trusts());
}

TEST_F(TlsFilesTest, ADirectoryIsReadWhenAHandshakeAsks) {
  ASSERT_TRUE(trust_directory(context_.get(), directory_.path()));
  EXPECT_FALSE(trusts());
  std::filesystem::copy_file(authority_.certificate_file(), hashed_path());
  EXPECT_TRUE(trusts());
  // OpenSSL's certificate store keeps an authority that it has read, even if the file is removed.
  std::filesystem::remove(hashed_path());
  EXPECT_TRUE(trusts());
}

TEST_F(TlsFilesTest, DirectoriesMayBeSeveralAndMissing) {
  std::filesystem::copy_file(authority_.certificate_file(), hashed_path());
  ASSERT_TRUE(trust_directory(context_.get(), fifo_ + "-absent:" + directory_.path()));
  EXPECT_TRUE(trusts());
}

TEST_F(TlsFilesTest, AFifoInADirectoryIsReportedAtOnce) {
  ASSERT_EQ(::mkfifo(hashed_path().c_str(), 0600), 0);
  const auto trusted = trust_directory(context_.get(), directory_.path());
  ASSERT_FALSE(trusted);
  EXPECT_EQ(trusted.error().message, "Failed to load CA certificates: can't open '" +
                                         hashed_path() +
                                         "': it is a FIFO; tls-ca-cert-dir needs a regular file");
}

TEST_F(TlsFilesTest, AFifoThatComesLaterHoldsNoHandshakeUp) {
  ASSERT_TRUE(trust_directory(context_.get(), directory_.path()));
  ASSERT_EQ(::mkfifo(hashed_path().c_str(), 0600), 0);
  EXPECT_FALSE(trusts());
  std::filesystem::remove(hashed_path());
  std::filesystem::copy_file(authority_.certificate_file(), hashed_path());
  EXPECT_TRUE(trusts());
}

TEST_F(TlsFilesTest, AChainIsReadToItsEnd) {
  const auto identity = authority_.issue_by_way_of("between", "somebody");
  ASSERT_TRUE(use_certificate_chain(context_.get(), identity.certificate_file));
  ASSERT_TRUE(use_private_key(context_.get(), identity.key_file, ""));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context_.get(), &chain);
  EXPECT_EQ(sk_X509_num(chain), 1);
}

}  // namespace
}  // namespace server

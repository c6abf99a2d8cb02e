// SPDX-License-Identifier: MIT
//
// TlsIdentity: a key and a self-signed certificate, as PEM files in a directory of their own.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

class TlsIdentity {
 public:
  TlsIdentity() {
    std::string pattern = ::testing::TempDir() + "bloomery_tls_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    renew();
  }
  ~TlsIdentity() { std::filesystem::remove_all(directory_); }
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  // Replaces the key and the certificate in the files by new ones. Encrypts the key if `password`
  // is not empty.
  void renew(const std::string& password = "") const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), &X509_free);
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86'400);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(certificate.get());
    const auto* const text = reinterpret_cast<const unsigned char*>("bloomery");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(certificate.get(), name);
    EXPECT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
    std::FILE* file = std::fopen(certificate_file().c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate.get()), 1);
    std::fclose(file);
    file = std::fopen(key_file().c_str(), "w");
    const auto* const phrase = reinterpret_cast<const unsigned char*>(password.data());
    EXPECT_EQ(PEM_write_PrivateKey(file, key.get(), password.empty() ? nullptr : EVP_aes_256_cbc(),
                                   phrase, static_cast<int>(password.size()), nullptr, nullptr),
              1);
    std::fclose(file);
  }

  const std::string& directory() const { return directory_; }
  std::string certificate_file() const { return directory_ + "/certificate.pem"; }
  std::string key_file() const { return directory_ + "/key.pem"; }

 private:
  std::string directory_;
};

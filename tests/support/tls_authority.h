// SPDX-License-Identifier: MIT
//
// TlsAuthority: a certificate authority that signs certificates for "localhost" and 127.0.0.1. The
// PEM files are in a directory of its own.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

class TlsAuthority {
 public:
  struct Identity {
    std::string certificate_file;
    std::string key_file;
  };
  struct Wishes {
    // Period of validity from now on; negative for an expired certificate.
    long seconds = 86'400;
    bool is_authority = false;  // true if the certificate may sign other certificates
  };

  TlsAuthority() {
    std::string pattern = ::testing::TempDir() + "bloomery_authority_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    own_ = make("authority", {.is_authority = true});
  }
  ~TlsAuthority() { std::filesystem::remove_all(directory_); }
  TlsAuthority(const TlsAuthority&) = delete;
  TlsAuthority& operator=(const TlsAuthority&) = delete;

  std::string certificate_file() const { return path("authority", ".crt"); }
  Identity issue(const std::string& name, const Wishes& wishes) {
    (void)make(name, wishes);
    return files(name);
  }
  Identity issue(const std::string& name) { return issue(name, {}); }
  // Issues a certificate through an intermediate authority. The file contains both certificates.
  Identity issue_by_way_of(const std::string& between, const std::string& name) {
    const Signer signer = make(between, {.is_authority = true});
    const Signer signed_one = make(name, {}, &signer);
    std::FILE* const file = std::fopen(path(name, ".crt").c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, signed_one.certificate.get()), 1);
    EXPECT_EQ(PEM_write_X509(file, signer.certificate.get()), 1);
    std::fclose(file);
    return files(name);
  }

 private:
  struct Signer {
    std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{nullptr, &EVP_PKEY_free};
    std::unique_ptr<X509, decltype(&X509_free)> certificate{nullptr, &X509_free};
  };

  std::string path(const std::string& name, const char* ending) const {
    return directory_ + "/" + name + ending;
  }
  Identity files(const std::string& name) const { return {path(name, ".crt"), path(name, ".key")}; }
  static void extend(X509* certificate, int kind, const char* value) {
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, kind, value), &X509_EXTENSION_free);
    EXPECT_EQ(X509_add_ext(certificate, extension.get(), -1), 1);
  }
  // Creates a certificate for `name`. The certificate is signed by `by`, or by this authority if
  // `by` is null. The first certificate is the authority's own, which is self-signed.
  Signer make(const std::string& name, const Wishes& wishes, const Signer* by = nullptr) {
    Signer made;
    made.key.reset(EVP_EC_gen("P-256"));
    made.certificate.reset(X509_new());
    X509* const certificate = made.certificate.get();
    const Signer* signer = by != nullptr ? by : own_.key != nullptr ? &own_ : &made;
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -172'800);
    X509_gmtime_adj(X509_getm_notAfter(certificate), wishes.seconds);
    X509_set_pubkey(certificate, made.key.get());
    X509_NAME* const subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(signer->certificate.get()));
    if (wishes.is_authority) {
      extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
      extend(certificate, NID_key_usage, "keyCertSign");
    } else {
      extend(certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    }
    EXPECT_GT(X509_sign(certificate, signer->key.get(), EVP_sha256()), 0);
    std::FILE* file = std::fopen(path(name, ".crt").c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    std::fclose(file);
    file = std::fopen(path(name, ".key").c_str(), "w");
    EXPECT_EQ(PEM_write_PrivateKey(file, made.key.get(), nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
    return made;
  }

  std::string directory_;
  long serial_ = 0;
  Signer own_;
};

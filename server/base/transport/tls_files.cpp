// SPDX-License-Identifier: MIT
#include "server/base/transport/tls_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/printable.h"
#include "persistence/files/file_system.h"
#include "persistence/files/posix_io.h"
#include "server/base/log/log.h"

namespace server {
namespace {

struct FreeOpenssl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(STACK_OF(X509_INFO) * parts) const {
    sk_X509_INFO_pop_free(parts, X509_INFO_free);
  }
};
template <class Object>
using Owned = std::unique_ptr<Object, FreeOpenssl>;

// Returns the bytes of the file for OpenSSL, read through the descriptor that was checked.
core::Result<Owned<BIO>> open_pem(const NamedFile& file) {
  auto opened = persistence::open_file(file, O_RDONLY);
  if (!opened) return opened.error();
  std::FILE* const stream = ::fdopen(opened->get(), "r");
  if (stream == nullptr) return persistence::io_failure("open", file.path, errno);
  static_cast<void>(opened->release());
  return {boost::system::in_place_value, BIO_new_fp(stream, BIO_CLOSE)};
}

core::Error cannot_open(std::string_view what, const core::Error& error) {
  return {fmt::format("{}: {}", what, core::without_code(error.message))};
}

core::Error cannot_use(std::string_view what, const NamedFile& file) {
  return openssl_error(fmt::format("{}: {}", what, core::printable(file.path)));
}

// Opens a PEM file for `use`, which returns false after an OpenSSL error. `what` starts the error.
template <class Use>
core::Result<> load_pem(const NamedFile& file, std::string_view what, Use&& use) {
  ERR_clear_error();
  const auto pem = open_pem(file);
  if (!pem) return cannot_open(what, pem.error());
  if (!use(pem->get())) return cannot_use(what, file);
  return {};
}

// Passes the passphrase of a key file to OpenSSL, which would otherwise ask on the terminal.
int give_password(char* out, int size, int, void* data) {
  const auto& password = *static_cast<const std::string*>(data);
  if (password.empty() || password.size() > static_cast<size_t>(size)) {
    // An error is raised, because OpenSSL would otherwise report that the user cancelled the prompt
    // for a passphrase. But no prompt was shown.
    ERR_raise(ERR_LIB_PEM, PEM_R_BAD_PASSWORD_READ);
    return -1;
  }
  std::memcpy(out, password.data(), password.size());
  return static_cast<int>(password.size());
}

// Returns the next certificate. Returns null at the end of the file, or after an OpenSSL error.
Owned<X509> read_certificate(BIO* pem) {
  std::string no_password;
  Owned<X509> certificate(PEM_read_bio_X509_AUX(pem, nullptr, give_password, &no_password));
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE) {
    ERR_clear_error();
  }
  return certificate;
}

// Trusts the certificates of a file. Returns false after an OpenSSL error.
bool add_authorities(X509_STORE* store, BIO* pem) {
  std::string no_password;
  const Owned<STACK_OF(X509_INFO)> parts(
      PEM_X509_INFO_read_bio(pem, nullptr, give_password, &no_password));
  if (parts == nullptr) return false;
  bool has_any = false;
  for (int i = 0; i < sk_X509_INFO_num(parts.get()); ++i) {
    const X509_INFO* const part = sk_X509_INFO_value(parts.get(), i);
    if (part->x509 != nullptr && X509_STORE_add_cert(store, part->x509) != 1) return false;
    if (part->crl != nullptr && X509_STORE_add_crl(store, part->crl) != 1) return false;
    has_any = has_any || part->x509 != nullptr || part->crl != nullptr;
  }
  if (!has_any) ERR_raise(ERR_LIB_X509, X509_R_NO_CERTIFICATE_OR_CRL_FOUND);
  return has_any;
}

// Implements tls-ca-cert-dir. OpenSSL's own lookup in directories is not used: it opens the files
// itself, and would block if a path is a FIFO.
using Directories = std::vector<std::string>;
constexpr std::string_view kDirectoryOption = "tls-ca-cert-dir";

void free_directories(X509_LOOKUP* lookup) {
  delete static_cast<Directories*>(X509_LOOKUP_get_method_data(lookup));
}

// Adds the certificates of the files DIRECTORY/HASH.0, DIRECTORY/HASH.1 and so on. Stops at the
// first file that is missing or unusable.
void read_authorities(X509_STORE* store, const std::string& directory, unsigned long hash) {
  for (int number = 0;; ++number) {
    const std::string path = fmt::format("{}/{:08x}.{}", directory, hash, number);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    const auto pem = open_pem({path, kDirectoryOption});
    if (!pem) return log_verbose("{}", cannot_open("A handshake", pem.error()).message);
    if (!add_authorities(store, pem->get())) return;
  }
}

int find_authority(X509_LOOKUP* lookup, X509_LOOKUP_TYPE type, const X509_NAME* name,
                   X509_OBJECT* found) {
  int is_hashed = 0;
  const unsigned long hash = X509_NAME_hash_ex(name, nullptr, nullptr, &is_hashed);
  if (type != X509_LU_X509 || is_hashed != 1) return 0;
  X509_STORE* const store = X509_LOOKUP_get_store(lookup);
  ERR_set_mark();
  for (const auto& directory : *static_cast<Directories*>(X509_LOOKUP_get_method_data(lookup))) {
    read_authorities(store, directory, hash);
  }
  // Removes the errors of unusable files from OpenSSL's error queue, so that no later call reports
  // them.
  ERR_pop_to_mark();
  X509_STORE_lock(store);
  const X509_OBJECT* const object =
      X509_OBJECT_retrieve_by_subject(X509_STORE_get0_objects(store), type, name);
  X509* const certificate = object == nullptr ? nullptr : X509_OBJECT_get0_X509(object);
  const bool is_found = certificate != nullptr && X509_OBJECT_set1_X509(found, certificate) == 1;
  // The caller of the lookup takes its own reference, so the reference in `found` is released.
  if (is_found) X509_free(certificate);
  X509_STORE_unlock(store);
  return is_found ? 1 : 0;
}

X509_LOOKUP_METHOD* directory_method() {
  static X509_LOOKUP_METHOD* const method = [] {
    X509_LOOKUP_METHOD* const made = X509_LOOKUP_meth_new("directories of authorities");
    X509_LOOKUP_meth_set_free(made, free_directories);
    X509_LOOKUP_meth_set_get_by_subject(made, find_authority);
    return made;
  }();
  return method;
}

// Returns whether the name is a hash with a number, such as 9d66eef0.0.
bool is_hashed_name(std::string_view name) {
  constexpr size_t kHashDigits = 8;
  const auto are_all = [](std::string_view text, std::string_view characters) {
    return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
  };
  return name.size() > kHashDigits + 1 && name[kHashDigits] == '.' &&
         are_all(name.substr(0, kHashDigits), "0123456789abcdef") &&
         are_all(name.substr(kHashDigits + 1), "0123456789");
}

// Checks that handshakes can open the certificate files of the directory, so that the operator sees
// an error at startup. Errors: the directory or one of these files cannot be read.
core::Result<> check_directory(const std::string& directory) {
  const auto names = persistence::posix_file_system().list(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    if (!is_hashed_name(name)) continue;
    const std::string path = directory + '/' + name;
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (!std::filesystem::exists(status)) continue;
    const auto opened = persistence::open_file({path, kDirectoryOption}, O_RDONLY);
    if (!opened) return opened.error();
  }
  return {};
}

}  // namespace

// Returns the first error of OpenSSL as text. REQUIRES: the errors of earlier steps are cleared.
core::Error openssl_error(std::string_view what) {
  // The first error is the cause. Callers inside OpenSSL add the later errors, which say less.
  const unsigned long code = ERR_peek_error();
  if (ERR_SYSTEM_ERROR(code)) {
    return {fmt::format("{}: {}", what, std::generic_category().message(ERR_GET_REASON(code)))};
  }
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  return {fmt::format("{}: {}", what, text.data())};
}

core::Result<> use_certificate_chain(SSL_CTX* context, const NamedFile& file) {
  return load_pem(file, kCertificateFails, [context](BIO* pem) {
    std::string no_password;
    const Owned<X509> own(PEM_read_bio_X509_AUX(pem, nullptr, give_password, &no_password));
    if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
    SSL_CTX_clear_chain_certs(context);
    while (const Owned<X509> next = read_certificate(pem)) {
      if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return false;
    }
    return ERR_peek_error() == 0;
  });
}

core::Result<> use_private_key(SSL_CTX* context, const NamedFile& file,
                               const std::string& password) {
  return load_pem(file, kPrivateKeyFails, [&](BIO* pem) {
    const Owned<EVP_PKEY> key(
        PEM_read_bio_PrivateKey(pem, nullptr, give_password, const_cast<std::string*>(&password)));
    return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
  });
}

core::Result<> use_dh_parameters(SSL_CTX* context, const NamedFile& file) {
  return load_pem(file, kDhParametersFail, [context](BIO* pem) {
    Owned<EVP_PKEY> parameters(PEM_read_bio_Parameters(pem, nullptr));
    if (parameters == nullptr || SSL_CTX_set0_tmp_dh_pkey(context, parameters.get()) != 1) {
      return false;
    }
    // The pointer is released, because the context owns the parameters now.
    static_cast<void>(parameters.release());
    return true;
  });
}

core::Result<> trust_file(SSL_CTX* context, const NamedFile& file) {
  return load_pem(file, kAuthoritiesFail, [context](BIO* pem) {
    return add_authorities(SSL_CTX_get_cert_store(context), pem);
  });
}

core::Result<> trust_directory(SSL_CTX* context, const NamedFile& directories) {
  ERR_clear_error();
  auto parts = std::make_unique<Directories>();
  for (std::string_view rest = directories.path; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    parts->emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string& directory : *parts) {
    if (auto checked = check_directory(directory); !checked) {
      return cannot_open(kAuthoritiesFail, checked.error());
    }
  }
  X509_LOOKUP* const lookup =
      X509_STORE_add_lookup(SSL_CTX_get_cert_store(context), directory_method());
  if (lookup == nullptr) return cannot_use(kAuthoritiesFail, directories);
  X509_LOOKUP_set_method_data(lookup, parts.release());
  return {};
}

}  // namespace server

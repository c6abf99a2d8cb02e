// SPDX-License-Identifier: MIT
#include "server/base/transport/tls_stream.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/memory/release_storage.h"

namespace server {
namespace {

constexpr int kClosed = -1;
constexpr size_t kRecordBytesMax = SSL3_RT_MAX_PLAIN_LENGTH;

bool is_temporary(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

// Buffer for encrypted bytes from the socket to OpenSSL. Valid until receive() returns.
std::span<char> scratch(size_t size) {
  thread_local std::vector<char> bytes;
  if (bytes.size() < size) bytes.resize(size);
  return {bytes.data(), size};
}

}  // namespace

std::string connection_error(const SSL* ssl, unsigned long code) {
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  const bool is_rejected =
      ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  if (!is_rejected || SSL_is_server(ssl) != 0) return text.data();
  return fmt::format("{}: {}", text.data(),
                     X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
}

// Transfer: the functions through which OpenSSL accesses the socket.
struct TlsStream::Transfer {
  static TlsStream& of(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* out, int size) {
    std::string_view& input = of(bio).input_;
    BIO_clear_retry_flags(bio);
    if (input.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const size_t count = std::min(input.size(), static_cast<size_t>(size));
    std::memcpy(out, input.data(), count);
    input.remove_prefix(count);
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    return of(bio).write({bytes, static_cast<size_t>(size)}) ? size : -1;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
      BIO_meth_set_read(made, read);
      BIO_meth_set_write(made, write);
      BIO_meth_set_ctrl(made, control);
      return made;
    }();
    return method;
  }
};

void TlsStream::FreeSsl::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

TlsStream::TlsStream(std::shared_ptr<SSL_CTX> context, Side side, int descriptor)
    : context_(std::move(context)), descriptor_(descriptor), side_(side) {}

bool TlsStream::begin() {
  ERR_clear_error();
  ssl_.reset(SSL_new(context_.get()));
  BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(Transfer::method());
  if (bio == nullptr) {
    failure_ = "out of memory";
    return false;
  }
  context_.reset();
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (side_ == Side::kServer) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
  return true;
}

bool TlsStream::is_established() {
  if (phase() == Phase::kEstablished) return true;
  if (ssl_ == nullptr && !begin()) {
    is_broken_ = true;
    return false;
  }
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    phase_.store(Phase::kEstablished, std::memory_order_release);
    return true;
  }
  is_broken_ = !goes_on_after(result);
  return false;
}

bool TlsStream::goes_on_after(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return true;
    case SSL_ERROR_SSL:
      failure_ = connection_error(ssl_.get(), ERR_peek_last_error());
      return false;
    default:
      return false;
  }
}

bool TlsStream::send_held() {
  while (!held_.empty()) {
    const ssize_t size = ::send(descriptor_, held_.data(), held_.size(), MSG_NOSIGNAL);
    if (size < 0) return is_temporary(errno);
    held_.erase(0, static_cast<size_t>(size));
  }
  core::release_storage(held_);
  return true;
}

bool TlsStream::write(std::string_view bytes) {
  if (held_.empty()) {
    const ssize_t size = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0 && !is_temporary(errno)) return false;
    if (size > 0) bytes.remove_prefix(static_cast<size_t>(size));
  }
  if (held_.size() + bytes.size() > kHeldBytesMax) return false;
  held_.append(bytes);
  return true;
}

Stream::Outcome TlsStream::broken() {
  is_broken_ = true;
  return {Status::kBroken};
}

Stream::Outcome TlsStream::receive(std::span<char> first, std::span<char> second, size_t size_max) {
  assert(first.size() + second.size() >= size_max + kExtraBytesMax);
  const std::scoped_lock lock(mutex_);
  if (is_broken_ || descriptor_ == kClosed) return {Status::kBroken};
  const std::span<char> bytes = scratch(size_max);
  const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (got == 0) return {Status::kEnd};
  if (got < 0) return is_temporary(errno) ? Outcome{Status::kLater} : broken();
  input_ = {bytes.data(), static_cast<size_t>(got)};
  size_t size = 0;
  const bool goes_on = is_established() ? decrypt(first, second, size) : !is_broken_;
  input_ = std::string_view();
  if (!goes_on) {
    if (size == 0) return broken();
    // Bytes received before the failure are still returned. shutdown() makes the descriptor
    // readable, so that the connection notices the end of the stream.
    ::shutdown(descriptor_, SHUT_RD);
  }
  return {size > 0 ? Status::kDone : Status::kLater, size, !held_.empty()};
}

bool TlsStream::decrypt(std::span<char> first, std::span<char> second, size_t& size) {
  while (!input_.empty() || SSL_pending(ssl_.get()) > 0) {
    const std::span<char> room =
        size < first.size() ? first.subspan(size) : second.subspan(size - first.size());
    // The caller's buffers are always big enough, because the plain text of a TLS record is never
    // longer than the record.
    if (room.empty()) return false;
    ERR_clear_error();
    size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), room.data(), room.size(), &count);
    if (result == 1) {
      size += count;
      continue;
    }
    if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN) {
      // The peer has finished sending, but may keep its socket open. After shutdown(), the next
      // recv() reports the end of the stream.
      ::shutdown(descriptor_, SHUT_RD);
      return true;
    }
    if (!goes_on_after(result)) {
      is_broken_ = true;
      return false;
    }
  }
  return true;
}

Stream::Outcome TlsStream::send(std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  if (is_broken_ || descriptor_ == kClosed) return {Status::kBroken};
  if (!send_held()) return broken();
  if (!held_.empty()) return {Status::kLater, 0, true};
  if (!is_established()) return {is_broken_ ? Status::kBroken : Status::kLater, 0, !held_.empty()};
  size_t taken = 0;
  while (taken < bytes.size() && held_.empty()) {
    ERR_clear_error();
    const size_t count = std::min(bytes.size() - taken, kRecordBytesMax);
    size_t written = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data() + taken, count, &written);
    if (result != 1) {
      if (!goes_on_after(result)) return broken();
      break;
    }
    taken += written;
  }
  return {taken > 0 ? Status::kDone : Status::kLater, taken, !held_.empty()};
}

void TlsStream::close() {
  const std::scoped_lock lock(mutex_);
  if (descriptor_ == kClosed) return;
  if (phase() == Phase::kEstablished && !is_broken_ && held_.empty()) {
    ERR_clear_error();
    (void)SSL_shutdown(ssl_.get());
  }
  ssl_.reset();
  context_.reset();
  ::close(std::exchange(descriptor_, kClosed));
  phase_.store(Phase::kClosed, std::memory_order_release);
}

std::string TlsStream::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

}  // namespace server

// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_client.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <utility>

#include "server/base/transport/tls_files.h"
#include "server/cluster/etcd_calls.h"
#include "server/cluster/etcd_watches.h"

namespace server::cluster {
namespace {

namespace ssl = boost::asio::ssl;

core::Result<> use_certificate(SSL_CTX* context, const EtcdOptions& options) {
  const persistence::NamedFile& cert = options.cert_file;
  const persistence::NamedFile& key = options.key_file;
  if (cert.path.empty() != key.path.empty()) {
    return core::Error{
        "cluster-etcd-cert-file and cluster-etcd-key-file belong together: set both, or none"};
  }
  if (cert.path.empty()) return {};
  if (auto used = use_certificate_chain(context, cert); !used) return used;
  return use_private_key(context, key, "");
}

core::Result<std::unique_ptr<ssl::context>> make_tls(const EtcdOptions& options) {
  const persistence::NamedFile& ca_file = options.ca_file;
  auto tls = std::make_unique<ssl::context>(ssl::context::tls_client);
  boost::system::error_code failed;
  tls->set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1, failed);
  tls->set_verify_mode(ssl::verify_peer, failed);
  if (ca_file.path.empty()) {
    tls->set_default_verify_paths(failed);
    if (failed) return core::Error{"ERR Failed to load CA certificates: " + failed.message()};
  } else if (auto trusted = trust_file(tls->native_handle(), ca_file); !trusted) {
    return core::Error{"ERR " + trusted.error().message};
  }
  if (auto used = use_certificate(tls->native_handle(), options); !used) {
    return core::Error{"ERR " + used.error().message};
  }
  return tls;
}

}  // namespace

template <class Reply>
void EtcdClient::call(EtcdRequest kind, std::string_view path, std::string body,
                      core::Result<Reply> (*parse)(std::string_view), EtcdHandler<Reply> handler,
                      bool may_be_repeated) {
  auto on_answer = [this, kind, parse, handler = std::move(handler)](EtcdAnswer answer) {
    EtcdResult<Reply> result{answer.outcome, {}, std::move(answer.error)};
    bool is_understood = true;
    if (result.answered()) {
      if (auto reply = parse(answer.reply)) {
        result.reply = *std::move(reply);
      } else {
        is_understood = false;
        // A reply that cannot be parsed leaves the outcome unknown: etcd may have executed the
        // call.
        result.outcome = EtcdOutcome::kUnknown;
        result.error = {EtcdCode::kInternal,
                        std::string(core::without_code(reply.error().message))};
      }
    }
    report(kind, result.error);
    handler(std::move(result));
    return is_understood;
  };
  calls_->start({std::string(path), std::move(body), may_be_repeated, std::move(on_answer)});
}

core::Result<std::unique_ptr<EtcdClient>> EtcdClient::make(boost::asio::io_context& io,
                                                           EtcdOptions options) {
  std::vector<EtcdEndpoint> endpoints;
  for (const std::string& url : options.endpoints) {
    auto endpoint = parse_etcd_endpoint(url);
    if (!endpoint) return endpoint.error();
    endpoints.push_back(*std::move(endpoint));
  }
  if (endpoints.empty()) return core::Error{"ERR no etcd endpoint is given"};
  std::unique_ptr<ssl::context> tls;
  if (std::ranges::any_of(endpoints, &EtcdEndpoint::tls)) {
    auto made = make_tls(options);
    if (!made) return made.error();
    tls = *std::move(made);
  } else if (!options.cert_file.path.empty() || !options.key_file.path.empty()) {
    return core::Error{fmt::format("ERR {} and {} need an etcd endpoint that begins with https://",
                                   options.cert_file.option, options.key_file.option)};
  }
  auto calls =
      std::make_shared<EtcdCalls>(io, std::move(options), std::move(endpoints), std::move(tls));
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(calls)));
}

EtcdClient::EtcdClient(std::shared_ptr<EtcdCalls> calls)
    : calls_(std::move(calls)), watches_(std::make_shared<EtcdWatches>(calls_)) {
  const std::weak_ptr<EtcdWatches> watches = watches_;
  calls_->on_move([watches] {
    if (const auto present = watches.lock()) present->move();
  });
}

EtcdClient::~EtcdClient() {
  watches_->stop();
  calls_->stop();
}

void EtcdClient::range(const EtcdRange& range, EtcdHandler<EtcdRangeReply> handler) {
  call(EtcdRequest::kRead, "/v3/kv/range", etcd_range_json(range), parse_etcd_range,
       std::move(handler), true);
}

void EtcdClient::txn(const EtcdTxn& txn, EtcdHandler<EtcdTxnReply> handler) {
  const auto reads = [](const EtcdOperation& operation) {
    return std::holds_alternative<EtcdRange>(operation);
  };
  const bool only_reads =
      std::ranges::all_of(txn.success, reads) && std::ranges::all_of(txn.failure, reads);
  const auto kind = only_reads ? EtcdRequest::kRead : EtcdRequest::kChange;
  call(kind, "/v3/kv/txn", etcd_txn_json(txn), parse_etcd_txn, std::move(handler), only_reads);
}

void EtcdClient::grant(uint64_t ttl_s, EtcdHandler<EtcdLeaseReply> handler) {
  call(EtcdRequest::kLease, "/v3/lease/grant", etcd_grant_json(ttl_s), parse_etcd_grant,
       std::move(handler), false);
}

void EtcdClient::keep_alive(uint64_t lease, EtcdHandler<EtcdLeaseReply> handler) {
  // Sending a keepalive twice is harmless. So if a member of etcd does not answer, the call can be
  // sent to another member, like a call that only reads.
  call(EtcdRequest::kLease, "/v3/lease/keepalive", etcd_lease_json(lease), parse_etcd_keep_alive,
       std::move(handler), true);
}

void EtcdClient::revoke(uint64_t lease, EtcdHandler<EtcdRevokeReply> handler) {
  call(EtcdRequest::kLease, "/v3/lease/revoke", etcd_lease_json(lease), parse_etcd_revoke,
       std::move(handler), false);
}

uint64_t EtcdClient::watch(const EtcdWatch& watch, std::function<void(EtcdWatchNews)> handler) {
  return watches_->start(watch, [this, handler = std::move(handler)](EtcdWatchNews news) {
    const auto* const error = std::get_if<EtcdError>(&news);
    report(EtcdRequest::kWatch, error == nullptr ? EtcdError{} : *error);
    handler(std::move(news));
  });
}

void EtcdClient::cancel(uint64_t watch) {
  watches_->cancel(watch);
}

}  // namespace server::cluster

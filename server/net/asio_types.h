// SPDX-License-Identifier: MIT
//
// The Asio types of this server: descriptors and timers are bound to one io_context by type, which
// spares the type-erased executor on the hot path.
//
// Source:
// https://www.boost.org/doc/libs/1_81_0/doc/html/boost_asio/overview/composition/cpp20_coroutines.html
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace server::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;
template <class T = void>
using Awaitable = asio::awaitable<T, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;
// Errors arrive as values: auto [error, …] = co_await operation(…, kAsValue).
inline constexpr auto kAsValue = asio::as_tuple(asio::use_awaitable_t<Executor>{});

}  // namespace server::net

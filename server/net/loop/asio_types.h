// SPDX-License-Identifier: MIT
//
// Defines the Asio types that the server uses. Descriptors and timers are bound to io_context at
// compile time, which avoids the type-erased executor on the hot path.
//
// Thread safety: the timers of an io_context belong to the thread that runs it.
// Source: https://www.boost.org/doc/libs/1_81_0/doc/html/boost_asio/overview/model/executors.html
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>

namespace server::net {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

}  // namespace server::net

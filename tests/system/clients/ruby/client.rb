# SPDX-License-Identifier: MIT
#
# ruby-redis: strings, pipelines, transactions and BF.* by call(). Argument: PORT.
require 'redis'

def check(expected, actual)
  return if expected == actual
  raise "expected #{expected.inspect}, got #{actual.inspect} (#{caller.first})"
end

def refused(pattern)
  yield
rescue Redis::CommandError => e
  raise "expected #{pattern}, got #{e.message}" unless e.message.match?(pattern)
else
  raise "expected an error like #{pattern}"
end

redis = Redis.new(host: '127.0.0.1', port: Integer(ARGV[0]), db: 2, timeout: 60)
check 'PONG', redis.ping
check 'OK', redis.set('s', "\x00\xFF".b, ex: 100)
check "\x00\xFF".b, redis.get('s').b
check 0, redis.setbit('b', 100, 1)
check 1, redis.getbit('b', 100)
check 1, redis.bitcount('b')
check 3, redis.incrby('n', 3)

replies = redis.pipelined do |pipe|
  350.times { |index| pipe.setbit('bits', index, 1) }
  pipe.bitcount('bits')
end
check 350, replies.last
check ['OK', 2], redis.multi { |t| t.set('t', 1); t.incr('t') }
check nil, (redis.watch('t') { redis.incr('t'); redis.multi { |t| t.incr('t') } })

check 'OK', redis.call('BF.RESERVE', 'f', '0.01', '100')
refused(/item exists/) { redis.call('BF.RESERVE', 'f', '0.01', '100') }
check 1, redis.call('BF.ADD', 'f', 'a')
check [0, 1], redis.call('BF.MADD', 'f', 'a', 'b')
check [1, 0], redis.call('BF.MEXISTS', 'f', 'a', 'z')
check 2, redis.call('BF.CARD', 'f')
info = Hash[*redis.call('BF.INFO', 'f')]
check 100, info['Capacity']
check 2, info['Number of items inserted']
check 'master', redis.info['role']
redis.close

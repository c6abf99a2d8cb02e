# SPDX-License-Identifier: MIT
#
# Who was written to this month? A bit field of CRC32 indexes, filled in pipelines of 350 contacts,
# counted beside it, and fetched whole to be tested in memory. Argument: PORT.
require 'redis'
require 'zlib'

class EmailLimit
  # CRC32 is linear: those of two prefixes differ by the same bits for every contact of one length,
  # so only an index taken modulo a prime tells them apart.
  BITS = 130003
  BATCH = 350
  HASHES = 5

  def initialize(redis, name, ttl_s:)
    @redis = redis
    @bits_key = "limit:#{name}:bits"
    @count_key = "limit:#{name}:count"
    @ttl_s = ttl_s
  end

  # Adds the contacts and returns how many of them were new.
  def add(contacts)
    contacts.each_slice(BATCH).sum { |batch| add_batch(batch) }
  end

  def count
    @redis.get(@count_key).to_i
  end

  # The whole bit field at once; each contact is then a look into a string.
  def snapshot
    field = @redis.get(@bits_key).b
    ->(contact) { indexes(contact).all? { |index| bit(field, index) == 1 } }
  end

  def indexes(contact)
    (0...HASHES).map { |number| Zlib.crc32("#{number}:#{contact}") % BITS }
  end

  # Redis counts bits from the most significant one of each byte.
  def bit(field, index)
    byte = field.getbyte(index / 8) || 0
    (byte >> (7 - index % 8)) & 1
  end

  private

  def add_batch(batch)
    before = @redis.pipelined do |pipe|
      batch.each { |contact| indexes(contact).each { |index| pipe.setbit(@bits_key, index, 1) } }
    end
    fresh = before.each_slice(HASHES).count { |bits| bits.include?(0) }
    @redis.pipelined do |pipe|
      pipe.incrby(@count_key, fresh)
      pipe.expire(@bits_key, @ttl_s)
      pipe.expire(@count_key, @ttl_s)
    end
    fresh
  end
end

def check(condition, message)
  raise message unless condition
end

redis = Redis.new(host: '127.0.0.1', port: Integer(ARGV[0]), timeout: 60)
limit = EmailLimit.new(redis, '2026-11', ttl_s: 3600)
contacts = (0...7000).map { |number| "contact#{number}@example.org" }

fresh = limit.add(contacts)
check fresh.between?(6950, 7000), "#{fresh} of 7000 contacts were new"
check limit.count == fresh, "counted #{limit.count}, added #{fresh}"
check limit.add(contacts).zero?, 'a contact was new twice'
check limit.count == fresh, 'the second pass changed the count'
check (1..3600).cover?(redis.ttl('limit:2026-11:bits')), 'the bit field does not expire'
check (1..3600).cover?(redis.ttl('limit:2026-11:count')), 'the count does not expire'

written_to = limit.snapshot
check contacts.all? { |contact| written_to.call(contact) }, 'a contact is missing in memory'
strangers = (0...20_000).map { |number| "stranger#{number}@example.org" }
wrong = strangers.count { |contact| written_to.call(contact) }
# 7000 contacts with 5 hashes in 130003 bits: 0.56 %, 112 of 20000; five deviations more are 165.
check wrong <= 165, "#{wrong} strangers were taken for contacts"

# What memory says, GETBIT says.
field = redis.get('limit:2026-11:bits').b
sample = (0...EmailLimit::BITS).step(61).to_a
bits = redis.pipelined { |pipe| sample.each { |index| pipe.getbit('limit:2026-11:bits', index) } }
check bits == sample.map { |index| limit.bit(field, index) }, 'GETBIT and GET disagree'
check redis.bitcount('limit:2026-11:bits') == field.unpack1('B*').count('1'), 'BITCOUNT is wrong'

<?php
// SPDX-License-Identifier: MIT
//
// A filter made of SETBIT and GETBIT with seeded BKDR hashes: one command at a time, in pipelines,
// over several keys, over two servers, and with offsets up to 2^32 - 1. Arguments: PORT PORT.
declare(strict_types=1);

const SEEDS = [31, 131, 1313, 13131, 131313, 1313131, 13131313];

function bkdrHash(string $text, int $seed): int
{
    $hash = 0;
    foreach (unpack('C*', $text) as $byte) {
        $hash = ($hash * $seed + $byte) & 0xffffffff;
    }
    return $hash;
}

/** Where an item's bits lie: [server, key, offset] for each hash. */
final class BkdrFilter
{
    /** @param Redis[] $servers */
    public function __construct(
        private array $servers,
        private string $name,
        private int $shards,
        private int $bits,
    ) {
    }

    public function places(string $item): array
    {
        $shard = crc32($item) % $this->shards;
        $server = $this->servers[$shard % count($this->servers)];
        return array_map(
            fn (int $seed) => [$server, "$this->name:$shard", bkdrHash($item, $seed) % $this->bits],
            SEEDS
        );
    }

    public function add(string $item): void
    {
        foreach ($this->places($item) as [$server, $key, $offset]) {
            $server->setBit($key, $offset, true);
        }
    }

    public function has(string $item): bool
    {
        foreach ($this->places($item) as [$server, $key, $offset]) {
            if ($server->getBit($key, $offset) === 0) {
                return false;
            }
        }
        return true;
    }

    /** @return bool[] */
    public function hasAll(array $items): array
    {
        $replies = $this->runAll($items, 'getBit');
        return array_map(fn (array $bits) => !in_array(0, $bits, true), $replies);
    }

    public function addAll(array $items): void
    {
        $this->runAll($items, 'setBit', true);
    }

    /** One pipeline per server; the replies come back per item. */
    private function runAll(array $items, string $command, mixed ...$more): array
    {
        $pipes = array_map(fn (Redis $server) => $server->pipeline(), $this->servers);
        $owners = [];
        foreach ($items as $index => $item) {
            foreach ($this->places($item) as [$server, $key, $offset]) {
                $owner = array_search($server, $this->servers, true);
                $pipes[$owner]->$command($key, $offset, ...$more);
                $owners[$owner][] = $index;
            }
        }
        $replies = array_fill_keys(array_keys($items), []);
        foreach ($pipes as $owner => $pipe) {
            foreach ($pipe->exec() as $number => $reply) {
                $replies[$owners[$owner][$number]][] = $reply;
            }
        }
        return $replies;
    }
}

function check(bool $condition, string $message): void
{
    if (!$condition) {
        fwrite(STDERR, "$message\n");
        exit(1);
    }
}

function items(string $kind, int $count): array
{
    return array_map(fn (int $number) => "$kind-" . md5("$kind$number"), range(1, $count));
}

function checkFilter(string $what, BkdrFilter $filter, array $added): void
{
    check(!in_array(false, $filter->hasAll($added), true), "$what: an item got lost");
    foreach (array_slice($added, 0, 50) as $item) {
        check($filter->has($item), "$what: GETBIT alone and in a pipeline disagree");
    }
    $wrong = count(array_filter($filter->hasAll(items('stranger', 5000))));
    check($wrong <= 100, "$what: $wrong of 5000 strangers found");
}

$servers = [];
foreach ([1, 2] as $argument) {
    $server = new Redis();
    $server->connect('127.0.0.1', (int) $argv[$argument]);
    $servers[] = $server;
}

$plain = new BkdrFilter([$servers[0]], 'plain', 1, 1 << 20);
$some = items('item', 300);
foreach ($some as $item) {
    $plain->add($item);
}
checkFilter('plain', $plain, $some);

$many = items('item', 5000);
foreach (['pipelined' => [1, 1], 'sharded' => [8, 1], 'two servers' => [8, 2]] as $what => $shape) {
    [$shards, $count] = $shape;
    $filter = new BkdrFilter(array_slice($servers, 0, $count), $what, $shards, 1 << 17);
    $filter->addAll(array_slice($many, 0, $shards > 1 ? 5000 : 2000));
    checkFilter($what, $filter, array_slice($many, 0, $shards > 1 ? 5000 : 2000));
}
for ($shard = 0; $shard < 8; $shard++) {
    $home = $servers[$shard % 2];
    check($home->exists("two servers:$shard") === 1, "shard $shard is not where it belongs");
    $other = $servers[1 - $shard % 2];
    check($other->exists("two servers:$shard") === 0, "shard $shard is everywhere");
}

// The widest filter a bitmap can be: every 32-bit hash is an offset of its own.
$wide = new BkdrFilter([$servers[0]], 'wide', 1, 1 << 32);
$few = items('item', 8);
$wide->addAll($few);
check($servers[0]->setBit('wide:0', 0xffffffff, true) === 0, 'the last bit was set before');
check($servers[0]->getBit('wide:0', 0xffffffff) === 1, 'the last bit was not set');
check($servers[0]->strlen('wide:0') === 1 << 29, 'the bitmap is not 512 MiB long');
check($servers[0]->bitCount('wide:0', -1, -1) === 1, 'the last byte counts wrong');
// setBit() itself refuses what lies beyond; the server has to as well.
$refused = $servers[0]->rawCommand('SETBIT', 'wide:0', (string) (1 << 32), '1');
check($refused === false, 'an offset of 2^32 was accepted');
checkFilter('wide', $wide, $few);
$servers[0]->unlink('wide:0');

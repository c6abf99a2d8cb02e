<?php
// SPDX-License-Identifier: MIT
//
// Which of my friends know this song? 100 filters of 100 songs, one per friend, sized by
// m = -n ln p / (ln 2)^2 and k = m/n ln 2 (Bloom 1970). Argument: PORT.
declare(strict_types=1);

const FRIENDS = 100;
const SONGS = 100;
const ERROR_RATE = 0.01;

final class SongFilter
{
    public readonly int $bits;
    public readonly int $hashCount;

    public function __construct(
        private Redis $redis,
        private string $key,
        int $capacity,
        float $rate,
    ) {
        $this->bits = (int) ceil(-$capacity * log($rate) / log(2) ** 2);
        $this->hashCount = max(1, (int) round($this->bits / $capacity * log(2)));
    }

    /** Kirsch and Mitzenmacher (2006): two hashes make all others. */
    public function offsets(string $song): array
    {
        [, $first, $second] = unpack('N2', md5($song, true));
        $second |= 1;
        return array_map(
            fn (int $number) => ($first + $number * $second) % $this->bits,
            range(0, $this->hashCount - 1)
        );
    }

    public function add(array $songs): void
    {
        $pipe = $this->redis->pipeline();
        foreach ($songs as $song) {
            foreach ($this->offsets($song) as $offset) {
                $pipe->setBit($this->key, $offset, true);
            }
        }
        $pipe->exec();
    }

    /** Puts the questions into a pipeline; knows() reads the answers. */
    public function ask(Redis $pipe, string $song): void
    {
        foreach ($this->offsets($song) as $offset) {
            $pipe->getBit($this->key, $offset);
        }
    }
}

function check(bool $condition, string $message): void
{
    if (!$condition) {
        fwrite(STDERR, "$message\n");
        exit(1);
    }
}

/** @return int[] the friends who know the song, in one round trip */
function knows(Redis $redis, array $filters, string $song): array
{
    $pipe = $redis->pipeline();
    foreach ($filters as $filter) {
        $filter->ask($pipe, $song);
    }
    $answers = array_chunk($pipe->exec(), $filters[0]->hashCount);
    return array_keys(array_filter($answers, fn (array $bits) => !in_array(0, $bits, true)));
}

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
$filters = [];
for ($friend = 0; $friend < FRIENDS; $friend++) {
    $filters[$friend] = new SongFilter($redis, "songs:$friend", SONGS, ERROR_RATE);
    $filters[$friend]->add(array_map(fn (int $n) => "song:$friend:$n", range(1, SONGS)));
}
check($filters[0]->bits === 959, "m is {$filters[0]->bits}");
check($filters[0]->hashCount === 7, "k is {$filters[0]->hashCount}");

for ($friend = 0; $friend < FRIENDS; $friend++) {
    check(in_array($friend, knows($redis, $filters, "song:$friend:1"), true), 'a song got lost');
    $fill = $redis->bitCount("songs:$friend") / $filters[$friend]->bits;
    check($fill > 0.4 && $fill < 0.6, "an optimal filter is half full, this one is $fill");
}
$wrong = 0;
for ($number = 0; $number < 100; $number++) {
    $wrong += count(knows($redis, $filters, "unknown:$number"));
}
// 10000 questions at 1 %: 100 wrong answers, five deviations more are 150.
check($wrong <= 150, "$wrong of 10000 answers were wrong");
check($redis->dbSize() === FRIENDS, 'a key too many');

<?php
// SPDX-License-Identifier: MIT
//
// phpredis: strings, pipelines, transactions and BF.* by rawCommand(). Argument: PORT.
declare(strict_types=1);

function check(mixed $expected, mixed $actual): void
{
    if ($expected !== $actual) {
        $line = debug_backtrace()[0]['line'];
        fwrite(STDERR, "line $line: expected " . var_export($expected, true) . ', got '
            . var_export($actual, true) . "\n");
        exit(1);
    }
}

$redis = new Redis();
check(true, $redis->connect('127.0.0.1', (int) $argv[1]));
check(true, $redis->select(3));
check(true, $redis->set('s', "\0\xff", ['nx', 'ex' => 100]));
check("\0\xff", $redis->get('s'));
check(0, $redis->setBit('b', 100, true));
check(1, $redis->getBit('b', 100));
check(1, $redis->bitCount('b'));
check(4, $redis->incrBy('n', 4));

$pipe = $redis->pipeline();
for ($index = 0; $index < 500; $index++) {
    $pipe->setBit('bits', $index * 3, true);
}
$pipe->bitCount('bits');
$replies = $pipe->exec();
check(500, end($replies));
check([true, 2], $redis->multi()->set('t', '1')->incr('t')->exec());

check(true, $redis->rawCommand('BF.RESERVE', 'f', '0.01', '100'));
check(false, $redis->rawCommand('BF.RESERVE', 'f', '0.01', '100'));
check('ERR item exists', $redis->getLastError());
check(1, $redis->rawCommand('BF.ADD', 'f', 'a'));
check([0, 1], $redis->rawCommand('BF.MADD', 'f', 'a', 'b'));
check([1, 0], $redis->rawCommand('BF.MEXISTS', 'f', 'a', 'z'));
check(2, $redis->rawCommand('BF.CARD', 'f'));
check('master', $redis->info()['role']);
$redis->close();

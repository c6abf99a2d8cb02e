// SPDX-License-Identifier: MIT
//
// ioredis 5 (RESP2) and 6 (RESP2 and RESP3): ready check by INFO, pipelines, MULTI, BF.* by call().
'use strict';
const {
  assert,
  checkHeard,
  load,
  patienceMs,
  port,
  protocol,
  rejects,
  run,
  tls,
} = require('./client.cjs');
const Redis = load('ioredis');

function flag(value) {
  return typeof value === 'boolean' ? Number(value) : value;
}

async function checkPubSub(client) {
  const subscriber = client.duplicate();
  subscriber.on('error', (error) => {
    throw error;
  });
  const heard = [];
  subscriber.on('message', (channel, message) => heard.push([channel, message]));
  subscriber.on('pmessage', (pattern, channel, message) => heard.push([channel, message]));
  assert.equal(await subscriber.subscribe('c'), 1);
  assert.equal(await subscriber.psubscribe('p*'), 2);
  await checkHeard(client, heard);
  // Over RESP2 a subscriber's PING is answered by what looks like a message.
  assert.deepEqual(await subscriber.ping(), protocol === 3 ? 'PONG' : ['pong', '']);
  await subscriber.unsubscribe('c');
  await subscriber.punsubscribe('p*');
  assert.equal(await client.publish('c', 'three'), 0);
  assert.equal(await subscriber.get('s'), 'v');
  await subscriber.quit();
}

run(async () => {
  const client = new Redis({
    host: '127.0.0.1',
    port,
    protocol,
    tls,
    connectTimeout: patienceMs,
    maxRetriesPerRequest: 0,
  });
  client.on('error', (error) => {
    throw error;
  });
  assert.equal(await client.ping(), 'PONG');
  assert.equal(await client.set('s', 'v', 'EX', 100), 'OK');
  assert.equal(await client.get('s'), 'v');

  assert.equal(await client.call('BF.RESERVE', 'f', '0.01', '100'), 'OK');
  await rejects(client.call('BF.RESERVE', 'f', '0.01', '100'), /item exists/);
  assert.equal(flag(await client.call('bf.add', 'f', 'a')), 1);
  const added = await client.call('BF.MADD', 'f', 'a', 'b');
  assert.deepEqual(added.map(flag), [0, 1]);
  const binary = Buffer.from([0, 255, 13, 10]);
  assert.equal(flag(await client.call('BF.ADD', 'f', binary)), 1);
  assert.equal(flag(await client.call('BF.EXISTS', 'f', binary)), 1);

  const pipeline = client.pipeline();
  for (let index = 0; index < 1000; index++) {
    pipeline.setbit('bits', index * 7, 1);
  }
  const replies = await pipeline.bitcount('bits').exec();
  assert.ok(replies.every(([error]) => error === null));
  assert.equal(replies[1000][1], 1000);

  const result = await client.multi().set('t', '1').incr('t').call('BF.ADD', 'f', 'c').exec();
  assert.deepEqual(result.map(([error, value]) => [error, flag(value)]), [
    [null, 'OK'],
    [null, 2],
    [null, 1],
  ]);
  await checkPubSub(client);
  await client.quit();
});

// SPDX-License-Identifier: MIT
//
// node-redis 4, 5 and 6 with the typed bf.* of @redis/bloom, over RESP2 and RESP3.
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
const { createClient } = load('redis');

// Version 4 names the fields; later ones hand out RedisBloom's labels.
function field(info, name, label) {
  return name in info ? info[name] : info[label];
}

async function checkFilters(client) {
  assert.equal(await client.bf.reserve('f', 0.01, 100), 'OK');
  await rejects(client.bf.reserve('f', 0.01, 100), /item exists/);
  assert.equal(await client.bf.add('f', 'a'), true);
  assert.equal(await client.bf.add('f', 'a'), false);
  assert.deepEqual(await client.bf.mAdd('f', ['a', 'b', 'c']), [false, true, true]);
  assert.equal(await client.bf.exists('f', 'b'), true);
  assert.equal(await client.bf.exists('f', 'z'), false);
  assert.deepEqual(await client.bf.mExists('f', ['a', 'z']), [true, false]);
  assert.equal(await client.bf.card('f'), 3);
  const options = { CAPACITY: 50, ERROR: 0.001, EXPANSION: 4 };
  assert.deepEqual(await client.bf.insert('g', ['x', 'y'], options), [true, true]);
  await rejects(client.bf.insert('none', 'x', { NOCREATE: true }), /not found/);
  const info = await client.bf.info('g');
  assert.equal(field(info, 'capacity', 'Capacity'), 50);
  assert.equal(field(info, 'numberOfFilters', 'Number of filters'), 1);
  assert.equal(field(info, 'numberOfInsertedItems', 'Number of items inserted'), 2);
  assert.equal(field(info, 'expansionRate', 'Expansion rate'), 4);
  await client.bf.reserve('n', 0.01, 10, { NONSCALING: true });
  const fixed = await client.bf.info('n');
  assert.equal(field(fixed, 'expansionRate', 'Expansion rate'), null);
}

async function checkStrings(client) {
  assert.equal(await client.set('s', 'v', { EX: 100 }), 'OK');
  assert.equal(await client.get('s'), 'v');
  assert.equal(await client.setBit('b', 70, 1), 0);
  assert.equal(await client.getBit('b', 70), 1);
  assert.equal(await client.bitCount('b'), 1);
  const replies = await client.multi().set('t', '1').incr('t').get('t').exec();
  assert.deepEqual(replies, ['OK', 2, '2']);
  const many = await Promise.all(Array.from({ length: 1000 }, () => client.incr('n:many')));
  assert.deepEqual(many, Array.from({ length: 1000 }, (_, index) => index + 1));
}

async function checkPubSub(client) {
  const subscriber = client.duplicate();
  subscriber.on('error', (error) => {
    throw error;
  });
  await subscriber.connect();
  const heard = [];
  await subscriber.subscribe('c', (message, channel) => heard.push([channel, message]));
  await subscriber.pSubscribe('p*', (message, channel) => heard.push([channel, message]));
  await checkHeard(client, heard);
  await subscriber.unsubscribe('c');
  await subscriber.pUnsubscribe('p*');
  assert.equal(await client.publish('c', 'three'), 0);
  // Over RESP2 this client hands out a Buffer once it has been a subscriber.
  assert.equal(String(await subscriber.get('s')), 'v');
  await subscriber.quit();
}

run(async () => {
  // Version 4 knows no RESP option and ignores it.
  const encryption = tls && { tls: true, ...tls };
  const client = createClient({
    socket: { host: '127.0.0.1', port, connectTimeout: patienceMs, ...encryption },
    RESP: protocol,
  });
  client.on('error', (error) => {
    throw error;
  });
  await client.connect();
  assert.equal(await client.ping(), 'PONG');
  await checkStrings(client);
  await checkFilters(client);
  await checkPubSub(client);
  await client.quit();
});

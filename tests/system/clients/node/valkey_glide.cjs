// SPDX-License-Identifier: MIT
//
// valkey-glide: native core, HELLO and INFO REPLICATION on connect, BF.* by customCommand().
'use strict';
const { assert, load, patienceMs, port, protocol, rejects, run } = require('./client.cjs');
const { Batch, GlideClient, ProtocolVersion } = load('@valkey/valkey-glide');

run(async () => {
  const client = await GlideClient.createClient({
    addresses: [{ host: '127.0.0.1', port }],
    protocol: protocol === 3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2,
    requestTimeout: patienceMs,
    advancedConfiguration: { connectionTimeout: patienceMs },
  });
  assert.equal(await client.ping(), 'PONG');
  assert.equal(await client.set('s', 'v'), 'OK');
  assert.equal(await client.get('s'), 'v');
  assert.equal(await client.setbit('b', 9, 1), 0);
  assert.equal(await client.bitcount('b'), 1);

  const [yes, no] = protocol === 3 ? [true, false] : [1, 0];
  assert.equal(await client.customCommand(['BF.RESERVE', 'f', '0.01', '100']), 'OK');
  await rejects(client.customCommand(['BF.RESERVE', 'f', '0.01', '100']), /item exists/);
  assert.equal(await client.customCommand(['BF.ADD', 'f', 'a']), yes);
  assert.deepEqual(await client.customCommand(['BF.MADD', 'f', 'a', 'b']), [no, yes]);
  assert.deepEqual(await client.customCommand(['BF.MEXISTS', 'f', 'a', 'z']), [yes, no]);
  assert.equal(await client.customCommand(['BF.CARD', 'f']), 2);

  for (const isAtomic of [true, false]) {
    const batch = new Batch(isAtomic).set('t', '1').incr('t').customCommand(['BF.CARD', 'f']);
    assert.deepEqual(await client.exec(batch, true), ['OK', 2, 2]);
  }
  client.close();
});

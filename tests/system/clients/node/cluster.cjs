// SPDX-License-Identifier: MIT
//
// Cluster clients against a cluster of CLUSTER_LEADERS shards, without it against one server that
// plays a whole cluster. CLUSTER_CLIENT names the package: redis, ioredis or @valkey/valkey-glide.
'use strict';
const { assert, load, patienceMs, port, protocol, rejects, run } = require('./client.cjs');
const KEYS = 200;
const LEADERS = Number(process.env.CLUSTER_LEADERS ?? 1);

// What each client calls the same things; `command` sends any words, the second being the key.
const openers = {
  async redis() {
    const { createCluster } = load('redis');
    const cluster = createCluster({
      rootNodes: [{ url: `redis://127.0.0.1:${port}` }],
      defaults: { RESP: protocol, socket: { connectTimeout: patienceMs } },
    });
    cluster.on('error', (error) => {
      throw error;
    });
    await cluster.connect();
    assert.equal(cluster.masters.length, LEADERS);
    return {
      command: (words, isReadOnly) => cluster.sendCommand(words[1], isReadOnly, words),
      atomically: (key) => cluster.multi().set(key, '1').incr(key).exec(),
      close: () => cluster.quit(),
    };
  },
  async ioredis() {
    const Redis = load('ioredis');
    const cluster = new Redis.Cluster([{ host: '127.0.0.1', port }], {
      redisOptions: { protocol, connectTimeout: patienceMs },
      slotsRefreshTimeout: patienceMs,
    });
    await new Promise((resolve, reject) => cluster.once('ready', resolve).once('error', reject));
    assert.equal(cluster.nodes('master').length, LEADERS);
    return {
      command: (words) => cluster.call(...words),
      atomically: async (key) => {
        const results = await cluster.multi().set(key, '1').incr(key).exec();
        return results.map(([, value]) => value);
      },
      close: () => cluster.quit(),
    };
  },
  async '@valkey/valkey-glide'() {
    const { ClusterBatch, GlideClusterClient, ProtocolVersion } = load('@valkey/valkey-glide');
    const cluster = await GlideClusterClient.createClient({
      addresses: [{ host: '127.0.0.1', port }],
      protocol: protocol === 3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2,
      requestTimeout: patienceMs,
      advancedConfiguration: { connectionTimeout: patienceMs },
    });
    return {
      command: (words) => cluster.customCommand(words),
      atomically: (key) => cluster.exec(new ClusterBatch(true).set(key, '1').incr(key), true),
      close: () => cluster.close(),
    };
  },
};

run(async () => {
  const client = await openers[process.env.CLUSTER_CLIENT]();
  const keys = Array.from({ length: KEYS }, (_, index) => `key:${index}`);
  await Promise.all(keys.map((key) => client.command(['SET', key, `of ${key}`], false)));
  const values = await Promise.all(keys.map((key) => client.command(['GET', key], true)));
  assert.deepEqual(values, keys.map((key) => `of ${key}`));
  await client.command(['BF.RESERVE', 'f', '0.01', '100'], false);
  assert.equal(Number(await client.command(['BF.ADD', 'f', 'a'], false)), 1);
  assert.equal(Number(await client.command(['BF.EXISTS', 'f', 'a'], true)), 1);
  assert.deepEqual(await client.atomically('{tag}n'), ['OK', 2]);
  const one = await client.command(['MGET', '{tag}n', '{tag}none'], true);
  assert.deepEqual(one, ['2', null]);
  await rejects(client.command(['RENAME', 'key:1', 'key:2'], false), /CROSSSLOT|CrossSlot/i);
  await client.close();
});

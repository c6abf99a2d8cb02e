// SPDX-License-Identifier: MIT
//
// Writes numbered items to every shard of a cluster until its input ends; what it prints, and what
// an item is, tests/system/harness/cluster_writers.py tells.
// Arguments: KIND FOLDER NAME TAG,TAG... HOST:PORT...; the kinds are the names in `openers`. Those
// with `-defaults` use the library's default timeouts and retries.
'use strict';
const path = require('node:path');
const { createRequire } = require('node:module');

const [kind, folder, name, tags, ...addresses] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(folder), 'x.cjs'));
const nodes = addresses.map((address) => {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at), port: Number(address.slice(at + 1)) };
});

const TIMEOUT_MS = 1500;
const GLIDE_TIMEOUT_MS = 10000;
const PAUSE_MS = 15;
const PAUSE_AFTER_ERROR_MS = 50;
// A client that fails on a shard for so long is given up for a new one, as a supervisor would
// restart its program.
const GIVE_UP_MS = 4000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => process.hrtime.bigint(); // CLOCK_MONOTONIC

// A reply that does not come in time is an error: nobody knows what became of the write.
function inTime(promise, timeoutMs) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no reply in time')), timeoutMs);
  });
  promise.catch(() => {});
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function openIoredis(options) {
  const Redis = load('ioredis');
  const client = new Redis.Cluster(nodes, options);
  client.on('error', () => {});
  return { write: (words) => client.call(...words), end: () => client.disconnect() };
}

async function openNodeRedis(options) {
  const { createCluster } = load('redis');
  const client = createCluster({
    rootNodes: nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` })),
    ...options,
  });
  client.on('error', () => {});
  await client.connect();
  return {
    write: (words) => client.sendCommand(words[1], false, words),
    end: () => client.destroy(),
  };
}

async function openGlide(options) {
  const { GlideClusterClient, Logger } = load('@valkey/valkey-glide');
  Logger.setLoggerConfig('off'); // it would log to the standard output
  const client = await GlideClusterClient.createClient({ addresses: nodes, ...options });
  return { write: (words) => client.customCommand(words), end: () => client.close() };
}

const openers = {
  ioredis: async () =>
    openIoredis({
      redisOptions: { connectTimeout: TIMEOUT_MS, commandTimeout: TIMEOUT_MS },
      slotsRefreshTimeout: TIMEOUT_MS,
    }),
  'ioredis-defaults': async () => openIoredis(),
  redis: () =>
    openNodeRedis({
      defaults: { socket: { connectTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS } },
    }),
  'redis-defaults': () => openNodeRedis(),
  'valkey-glide': () => openGlide({ requestTimeout: GLIDE_TIMEOUT_MS }),
  'valkey-glide-defaults': () => openGlide(),
};

function writeCommand(tag, number) {
  const key = `${tag}:${name}`;
  if (number % 3 === 0) return ['SET', `${key}:${number}`, String(number)];
  if (number % 3 === 1) return ['BF.ADD', `${key}:f`, String(number)];
  return ['SETBIT', `${key}:b`, String(number), '1'];
}

let stopping = false;
process.stdin.resume();
process.stdin.on('end', () => {
  stopping = true;
});
// Both clients report lost connections as events too, some of them where nobody listens.
process.on('unhandledRejection', () => {});
process.on('uncaughtException', (error) => console.log(`error 0 ${now()} uncaught ${error}`));

async function run(lane, tag) {
  let client;
  let succeeded = Date.now();
  for (let number = 1; !stopping; number++) {
    const sent = now();
    try {
      client ??= await inTime(openers[kind](), GIVE_UP_MS);
      await inTime(client.write(writeCommand(tag, number)), 2 * GIVE_UP_MS);
      console.log(`ack ${lane} ${number} ${sent} ${now()} 0`);
      succeeded = Date.now();
      await sleep(PAUSE_MS);
    } catch (error) {
      const what = error.message || error.stack;
      const text = `${error.name} ${error.code ?? ''} ${what}`.replaceAll('\n', ' ');
      console.log(`error ${lane} ${now()} ${text.slice(0, 200)}`);
      await sleep(PAUSE_AFTER_ERROR_MS);
      if (Date.now() - succeeded > GIVE_UP_MS && client !== undefined) {
        succeeded = Date.now();
        Promise.resolve().then(client.end).catch(() => {});
        client = undefined;
      }
    }
  }
}

Promise.all(tags.split(',').map((tag, lane) => run(lane, tag))).then(() => process.exit(0));
// A client that hangs is not waited for.
process.stdin.on('end', () => setTimeout(() => process.exit(0), 2000).unref());

// SPDX-License-Identifier: MIT
//
// Writes through Sentinel until its input ends; prints `ack KEY` for each acknowledged write and
// `error TEXT` for each other.
// Arguments: PREFIX PACKAGE FOLDER NAME PASSWORD HOST:PORT..., PACKAGE being redis or ioredis.
'use strict';
const path = require('node:path');
const { createRequire } = require('node:module');

const [prefix, packageName, folder, name, password, ...addresses] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(folder), 'x.cjs'));
const sentinels = addresses.map((address) => {
  const [host, port] = address.split(':');
  return { host, port: Number(port) };
});

const TIMEOUT_MS = 1000;
const PAUSE_MS = 4;
const PAUSE_AFTER_ERROR_MS = 50;
// A client that fails for so long is given up for a new one, as a supervisor would restart its
// program: node-redis may not get over the silence of the one sentinel that it listens to.
const GIVE_UP_MS = 4000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A reply that does not come in time is an error: nobody knows what became of the write.
function inTime(promise, timeoutMs = TIMEOUT_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no reply in time')), timeoutMs);
  });
  promise.catch(() => {});
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function ioredisWriter() {
  const Redis = load('ioredis');
  const client = new (Redis.default ?? Redis)({
    sentinels,
    name,
    password,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => PAUSE_AFTER_ERROR_MS,
    sentinelRetryStrategy: () => PAUSE_AFTER_ERROR_MS,
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  client.on('error', () => {});
  return { write: (key) => client.set(key, key), end: () => client.disconnect() };
}

async function nodeRedisWriter() {
  const { createSentinel } = load('redis');
  const options = {
    socket: { connectTimeout: TIMEOUT_MS, socketTimeout: TIMEOUT_MS, reconnectStrategy: false },
  };
  const client = createSentinel({
    name,
    sentinelRootNodes: sentinels,
    nodeClientOptions: { ...options, password },
    sentinelClientOptions: options,
    scanInterval: 500,
    maxCommandRediscovers: 4,
  });
  client.on('error', () => {});
  await client.connect();
  return { write: (key) => client.set(key, key), end: () => client.destroy() };
}

let stopping = false;
process.stdin.resume();
process.stdin.on('end', () => {
  stopping = true;
});
// Both clients report lost connections as events too, some of them where nobody listens.
process.on('unhandledRejection', (error) => console.log(`error unhandled ${error.message}`));

(async () => {
  const connect = packageName === 'redis' ? nodeRedisWriter : ioredisWriter;
  let writer;
  let succeeded = Date.now();
  for (let number = 1; !stopping; number++) {
    const key = `${prefix}:${number}`;
    try {
      writer ??= await inTime(Promise.resolve(connect()), GIVE_UP_MS);
      await inTime(writer.write(key));
      console.log(`ack ${key}`);
      succeeded = Date.now();
      await sleep(PAUSE_MS);
    } catch (error) {
      console.log(`error ${String(error.message).replaceAll('\n', ' ')}`);
      await sleep(PAUSE_AFTER_ERROR_MS);
      if (Date.now() - succeeded > GIVE_UP_MS && writer !== undefined) {
        console.log('error gave the client up');
        succeeded = Date.now();
        Promise.resolve()
          .then(writer.end)
          .catch(() => {});
        writer = undefined;
      }
    }
  }
  process.exit(0);
})();

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

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A reply that does not come in time is an error: nobody knows what became of the write.
function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no reply in time')), TIMEOUT_MS);
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
  return (key) => client.set(key, key);
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
  return (key) => client.set(key, key);
}

let stopping = false;
process.stdin.resume();
process.stdin.on('end', () => {
  stopping = true;
});
// Both clients report lost connections as events too, some of them where nobody listens.
process.on('unhandledRejection', (error) => console.log(`error unhandled ${error.message}`));

(async () => {
  const write = packageName === 'redis' ? await nodeRedisWriter() : ioredisWriter();
  for (let number = 1; !stopping; number++) {
    const key = `${prefix}:${number}`;
    try {
      await inTime(write(key));
      console.log(`ack ${key}`);
      await sleep(PAUSE_MS);
    } catch (error) {
      console.log(`error ${String(error.message).replaceAll('\n', ' ')}`);
      await sleep(PAUSE_AFTER_ERROR_MS);
    }
  }
  process.exit(0);
})();

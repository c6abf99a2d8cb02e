// SPDX-License-Identifier: MIT
// The head of the page: the server's name, and one sentence about its state.

import { byId, setText } from "/dom.js";
import { bytesText, clockText, countText, percentText, spanText } from "/texts.js";

// "ip=10.0.0.1,port=6379,state=online,offset=14,lag=1"
const parts = (text) => Object.fromEntries(text.split(",").map((part) => part.split("=")));

export function replicasOf(info) {
  const replicas = [];
  for (let i = 0; info[`slave${i}`]; i += 1) {
    const { ip, port, state, offset, lag } = parts(info[`slave${i}`]);
    replicas.push({
      name: `${ip}:${port}`, state, lagSeconds: Number(lag),
      lagBytes: Math.max(0, Number(info.master_repl_offset) - Number(offset)),
    });
  }
  return replicas;
}

// Replicas acknowledge once a second, so a small lag is normal.
export const isBehind = (replica) =>
  replica.state !== "online" || replica.lagSeconds > 5 || replica.lagBytes > 2 ** 20;

export const replicaText = (replica) => (replica.state === "online"
  ? `${replica.lagSeconds} s and ${bytesText(replica.lagBytes)} behind`
  : `${replica.state.replaceAll("_", " ")}, not in step yet`);

export const roleText = (info) => (info.role === "slave" ? "replica" : "leader");

// Returns the texts of all problems, the most severe first.
function problemsOf({ info, unready }) {
  const problems = unready === "" ? [] : [unready];
  if (info.aof_enabled === "1" && info.aof_last_write_status !== "ok") {
    problems.push("The append log cannot be written");
  }
  if (info.rdb_last_bgsave_status !== "ok") problems.push("The last snapshot failed");
  if (info.aof_last_bgrewrite_status === "err") problems.push("The last rewrite of the append log failed");
  if (info.role === "slave" && info.master_link_status !== "up") problems.push("The link to the leader is down");
  const late = replicasOf(info).filter(isBehind);
  if (late.length > 0) problems.push(`Replica ${late[0].name} is ${replicaText(late[0])}`);
  const used = info.maxmemory > 0 ? info.used_memory / info.maxmemory : 0;
  if (used > 0.95) problems.push(`Memory is at ${percentText(used)} of its limit`);
  if (info.cluster_enabled === "1" && info.cluster_state !== "ok") problems.push("The cluster is not whole");
  return problems;
}

function goodText({ info }) {
  if (info.role === "slave") return `Ready: a replica in step with ${info.master_host}:${info.master_port}`;
  const count = Number(info.connected_slaves);
  if (count === 0) return "Ready: a leader without replicas";
  return `Ready: a leader with ${count === 1 ? "one replica" : `${countText(count)} replicas`}, none behind`;
}

export function showHeader(now) {
  const { info } = now;
  setText("server", `${location.hostname}:${info.tcp_port} · version ${info.bloomery_version} · ` +
    `${roleText(info)} · up ${spanText(info.uptime_in_seconds)}`);
  const problems = problemsOf(now);
  const others = problems.length - 1;
  const more = others > 0 ? `; and ${others} more` : "";
  showState(problems.length === 0 ? goodText(now) : `${problems[0]}${more}`, problems.length > 0);
}

export function showState(text, isBad) {
  setText("state", text);
  byId("state").className = isBad ? "bad" : "good";
}

// While the server does not answer, the page shows old data.
export function showGone(since) {
  document.body.classList.toggle("gone", since !== null);
  if (since === null) return;
  const seconds = Math.round((Date.now() - since) / 1000);
  showState(`No answer from the server since ${clockText(since)}, for ${spanText(seconds)}. ` +
    "The figures below are older.", true);
}

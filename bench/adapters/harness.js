// The roles and the execution log that every Node adapter shares, the same as in harness.py.
// An adapter calls main({setup, producer, work, left}); producer() resolves to {one, many, close}.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const URL = process.env.BENCH_URL;
const CHUNK = 5000; // jobs per bulk call
const WARM_UP = 20;
const peer = createRequire(path.join(process.env.BENCH_PACKAGES, "x.js")); // the peers' packages
const now = () => Number(process.hrtime.bigint()); // the clock of Python's monotonic_ns; exact to 1 ns for 100 days
const sleep = (seconds) => new Promise((wake) => setTimeout(wake, seconds * 1000));
const payload = (i) => ({ i, pad: "x".repeat(78) });

// --- the execution log: a record (job number + 1, time) per execution

let log = null;
let position = 0;
const record = Buffer.alloc(16);
function ran(i) {
  const at = process.hrtime.bigint();
  log ??= fs.openSync(path.join(process.env.BENCH_LOG, `${process.pid}.log`), "w");
  record.writeBigInt64LE(BigInt(i + 1), 0);
  record.writeBigInt64LE(at, 8);
  fs.writeSync(log, record, 0, 16, 16 * position++);
}

// --- roles

async function produce(adapter, body) {
  const producer = await adapter.producer();
  try {
    return await body(producer);
  } finally {
    await producer.close();
  }
}

const roles = {
  setup: async (adapter) => { await adapter.setup(); return null; },

  bulk: (adapter, { n }) => produce(adapter, async ({ many }) => {
    const jobs = Array.from({ length: n }, (_, i) => payload(i));
    const started = now();
    await many(jobs);
    return { n, seconds: (now() - started) / 1e9, has_bulk: true };
  }),

  single: (adapter, { seconds }) => produce(adapter, async ({ one }) => {
    let i = 0;
    for (; i < WARM_UP; i++) await one(payload(i));
    const started = now();
    while (now() < started + seconds * 1e9) await one(payload(i++));
    return { n: i - WARM_UP, stored: i, seconds: (now() - started) / 1e9 };
  }),

  spaced: (adapter, { n, gap }) => produce(adapter, async ({ one }) => {
    const requested_at = [];
    let due = now();
    for (let i = 0; i < n; i++) {
      due += gap * 1e9;
      await sleep(Math.max(0, (due - now()) / 1e9));
      requested_at.push(now());
      await one(payload(i));
    }
    return { n, requested_at };
  }),

  paced: (adapter, { rate, seconds, tick = 0.01 }) => produce(adapter, async ({ many }) => {
    const total = Math.trunc(rate * seconds), each = Math.max(1, Math.trunc(rate * tick));
    const requested_at = [], started = now() + 50_000_000;
    let late = 0;
    for (let first = 0; first < total; first += each) {
      const due = started + (first / rate) * 1e9, ahead = (due - now()) / 1e9;
      if (ahead > 0) await sleep(ahead);
      else if (ahead < -tick) late++;
      const jobs = [];
      for (let i = first; i < Math.min(first + each, total); i++) { jobs.push(payload(i)); requested_at.push(due); }
      await many(jobs);
    }
    return { n: total, requested_at, late_ticks: late, seconds: (now() - started) / 1e9 };
  }),

  wait: async (adapter) => {
    await adapter.left();
    process.stdout.write("READY\n");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    const deadline = now() + 60e9;
    let left;
    while ((left = await adapter.left()) && now() < deadline) await sleep(0.01);
    return { at: now(), left };
  },

  left: async (adapter) => ({ left: await adapter.left() }),
};

// --- querying PostgreSQL

let client = null;
async function query(sql) {
  if (!client) {
    client = new (peer("pg").Client)({ connectionString: URL });
    await client.connect();
  }
  return Number((await client.query({ text: sql, rowMode: "array" })).rows[0][0]);
}

async function main(adapter) {
  const [role, given] = process.argv.slice(2);
  if (role === "work") return adapter.work();
  const result = await roles[role](adapter, JSON.parse(given));
  process.stdout.write("RESULT " + JSON.stringify(result) + "\n", () => process.exit(0));
}

module.exports = { URL, CHUNK, peer, ran, query, main };

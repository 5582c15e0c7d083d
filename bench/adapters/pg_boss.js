// pg-boss: LISTEN/NOTIFY on, batches of 500 by 4 concurrent workers (best of a single run each of 500x1, 500x4,
// 1000x2, 2000x2), polling at its shortest. Its handler receives a whole batch; all other peers make one call per job.
"use strict";
const { URL, CHUNK, peer, ran, query, main } = require("./harness.js");
const { PgBoss } = peer("pg-boss");

const QUEUE = "bench";

async function start(more) {
  const boss = new PgBoss({ connectionString: URL, schedule: false, useListenNotify: true, ...more });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
}

main({
  setup: async () => {
    const boss = await start();
    await boss.createQueue(QUEUE, { notify: true });
    await boss.stop({ graceful: false });
  },

  producer: async () => {
    const boss = await start({ supervise: false });
    return {
      one: (data) => boss.send(QUEUE, data),
      many: async (payloads) => {
        for (let first = 0; first < payloads.length; first += CHUNK)
          await boss.insert(QUEUE, payloads.slice(first, first + CHUNK).map((data) => ({ data })));
      },
      close: () => boss.stop({ graceful: false }),
    };
  },

  work: async () => {
    const boss = await start({ max: 20 });
    const options = { batchSize: 500, localConcurrency: 4, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
    await boss.work(QUEUE, options, async (jobs) => { for (const job of jobs) ran(job.data.i); });
    process.on("SIGTERM", () => process.exit(0));
  },

  left: () => query(`SELECT count(*) FROM pgboss.job WHERE name = '${QUEUE}' AND state < 'completed'`),
});

// Runs a list of steps against an AG-UI endpoint with the official client, and prints what it made of them as JSON.
// usage: node agui_client.mjs URL THREAD '[{"say": "hi"}, {"resume": [...]}, {"say": "hi", "abortOn": "TYPE"}]'
import { HttpAgent } from "@ag-ui/client";

const [url, threadId, steps] = [process.argv[2], process.argv[3], JSON.parse(process.argv[4])];
const agent = new HttpAgent({ url, threadId });
const runs = [];
let said = 0;
for (const step of steps) {
  const events = [];
  const run = { events, error: null };
  runs.push(run);
  const subscriber = {
    onEvent: ({ event }) => {
      events.push({ type: event.type, outcome: event.outcome?.type, delta: event.delta, content: event.content });
      if (step.abortOn === event.type) agent.abortRun();
    },
  };
  try {
    if (step.say) agent.messages.push({ id: `u${++said}`, role: "user", content: step.say });
    await agent.runAgent(step.resume ? { resume: step.resume } : {}, subscriber);
  } catch (fault) {
    run.error = String(fault.message ?? fault);
  }
  run.interrupts = agent.pendingInterrupts ?? [];
  run.messages = structuredClone(agent.messages);
}
console.log(JSON.stringify(runs));

// Where steps come from: a worker that trains, or a recorded run where there can be none.

const here = (name) => new URL(name, import.meta.url);
let file;

/** The recorded run {before, history, curves}, loaded once. */
export const recorded = () => (file ??= fetch(here("recorded.json")).then((response) => response.json()));

/** A worker that is asked one thing at a time. A run is "own", or "healthy", which is trained beside it. */
export class Live {
  #worker = new Worker(here("worker.js"), { type: "module" });
  #asked = 0;
  device = "";

  #ask(message, watch) {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#worker.onmessage = ({ data }) => {
        if (data.id !== id) return;
        if (data.writing) watch?.(data.writing);
        else if (data.error) reject(new Error(data.error));
        else resolve(data);
      };
      this.#worker.onerror = ({ message }) => reject(new Error(message || "no worker"));
      this.#worker.postMessage({ id, ...message });
    });
  }

  /** Nobody waits for this: what fails here fails again in `start`, which says so. */
  prepare = (settings) => this.#ask({ prepare: settings }).catch(() => {});

  async start(settings, run = "own") {
    const begin = (device) => this.#ask({ start: settings, run, device });
    const found = await begin().catch(() => begin("wasm"));
    this.device = found.device === "webgpu" ? "the graphics card" : "the processor";
  }

  measure = async (run = "own") => (await this.#ask({ measure: run })).held;
  step = (asked, watch) => this.#ask({ step: { run: "own", ...asked } }, watch);

  end() {
    this.#worker.terminate();
  }
}

/** The same from a file, for machines that cannot. */
export class Recorded {
  device = "recorded";
  #at = 0;

  static async of(why) {
    return Object.assign(new Recorded(), { why, ...(await recorded()) });
  }

  start = async () => (this.#at = 0);
  measure = async () => this.before;

  async step() {
    await new Promise((resolve) => setTimeout(resolve, 600));
    return this.history[this.#at++];
  }

  end() {}
}

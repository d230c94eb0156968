// Judges what is typed, off the page's thread: a text is answered with {begins}, and then with what is
// judged of it. It has a worker of its own, which the page ends when a loop does not.

import { close } from "./loss.js";
import { judged } from "./judging.js";

const known = fetch(new URL("cases.json", import.meta.url)).then((response) => response.json());
onmessage = async ({ data: text }) => {
  const cases = await known;
  close();
  postMessage({ begins: true });
  postMessage(judged(text, cases));
};

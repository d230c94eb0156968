// What "Break it" can break: each a mistake in one function, and the settings without which
// it would not show. What is said of them on the page was measured on three seeds.

import { numpy as np } from "./jax/index.js";
import { NEEDS } from "./settings.js";
import { form_reward } from "./tasks.js";

export const FAULTS = {
  no_baseline: { noBaseline: true },
  sign_turned: { sign: -1 },
  max_for_min: { minimum: np.maximum, settings: NEEDS.max_for_min },
  padding_counted: { padding: true },
  stale_sampler: { stale: true },
  form_alone: { reward: form_reward },
};

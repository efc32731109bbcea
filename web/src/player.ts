// A button that plays something in steps of its own pace, and pauses it.

import type { App } from "./app";
import { h } from "./dom";

export interface Player { button: HTMLElement; stop: () => void }

export function player(say: App["say"], pace: number, step: () => void): Player {
  let timer: ReturnType<typeof setInterval> | undefined;
  const button = h("button", { type: "button", "aria-pressed": "false" }, say("play"));
  const stop = () => { clearInterval(timer); timer = undefined; button.textContent = say("play"); button.setAttribute("aria-pressed", "false"); };
  button.addEventListener("click", () => {
    if (timer) return stop();
    button.textContent = say("pause");
    button.setAttribute("aria-pressed", "true");
    timer = setInterval(step, pace);
  });
  return { button, stop };
}

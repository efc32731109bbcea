// What every part of the page knows.

import type { Catalogue, CatalogueWords } from "./answers";
import type { State } from "./state";
import type { Say } from "./words";

export interface App {
  state: State;
  say: Say;
  catalogue: Catalogue;
  named: CatalogueWords;
  /// Changes what is asked; the address follows.
  set(change: Partial<State>): void;
  /// Goes to another section, or lays the page out again.
  go(change: Partial<State>): void;
}

/// A part of the page: its elements, and what to do when the question changes.
export interface Part {
  element: HTMLElement;
  update(): void;
  /// Ends what runs by itself.
  leave?(): void;
}

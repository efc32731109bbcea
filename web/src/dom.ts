// Elements in few words. Text is always text: nothing here parses markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/// Text with the only markup answers have: **bold** and `code`.
export function marked(text: string): Node[] {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).filter(Boolean).map((piece) => {
    const bare = piece.replace(/^(\*\*|`)|(\*\*|`)$/g, "");
    if (piece.length > 1 && piece.startsWith("`")) return h("code", {}, bare);
    return piece.startsWith("**") ? h("strong", {}, bare) : document.createTextNode(piece);
  });
}

/// A picture that the engine drew, as elements.
export function picture(text: string): Element {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const element = document.importNode(parsed.documentElement, true);
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", element.querySelector("title")?.textContent ?? "");
  return element;
}

let counter = 0;
export function id(prefix: string): string {
  counter += 1;
  return `${prefix}-${counter}`;
}

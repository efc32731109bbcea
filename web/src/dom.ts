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

/// Calls where a pointer or a finger is on a picture, as a share of its width.
export function pointed(picture: Element, at: (share: number) => void): void {
  const point = (event: Event) => {
    const { left, width } = picture.getBoundingClientRect();
    at(((event as PointerEvent).clientX - left) / width);
  };
  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", point);
}

let counter = 0;
export function id(prefix: string): string {
  counter += 1;
  return `${prefix}-${counter}`;
}

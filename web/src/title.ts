// The answer in the title and the description of the page, so that a tab, a bookmark and a history say it.

export function tell(answer: string, more = ""): void {
  document.title = `${answer} · zeropilot`;
  const description = document.querySelector<HTMLMetaElement>("meta[name=description]");
  if (description && more) description.content = more;
}

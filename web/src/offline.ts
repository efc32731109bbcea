// Keeps the page's own files in the browser, so that it opens without a network. They are those of one build: a new build
// replaces all of them at once, when no page of the old one is open any more.

declare const self: ServiceWorkerGlobalScope;
/// What this build is told by, and its files; written by the build.
declare const BUILD: string;
declare const FILES: string[];

// Two copies of the page may share an origin.
const own = `zeropilot ${self.registration.scope} `;
const name = own + BUILD;

async function keep(): Promise<void> {
  const kept = await caches.open(name);
  await kept.addAll(FILES.map((file) => new Request(file, { cache: "no-cache" })));
}

async function forgetOthers(): Promise<void> {
  const names = await caches.keys();
  await Promise.all(names.filter((other) => other.startsWith(own) && other !== name).map((other) => caches.delete(other)));
}

async function answer(request: Request): Promise<Response> {
  const kept = await caches.open(name);
  return await kept.match(request, { ignoreSearch: true }) ?? fetch(request);
}

self.addEventListener("install", (event) => event.waitUntil(keep()));
self.addEventListener("activate", (event) => event.waitUntil(forgetOthers()));
self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(self.registration.scope)) event.respondWith(answer(event.request));
});
export {};

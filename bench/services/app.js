// A small web service of Node: JSON, compression, hashes, pages.
const http = require("http");
const zlib = require("zlib");
const crypto = require("crypto");

const items = Array.from({ length: 1500 }, (_, n) => ({ id: n, name: "item " + n, tags: ["a" + (n % 7), "b" + (n % 11)] }));

function search(n) {
  const found = items.filter((it) => it.tags.includes("a" + (n % 7))).map((it) => ({ ...it, score: (it.id * 31) % 97 }));
  found.sort((a, b) => b.score - a.score || a.name.localeCompare(b.name));
  return JSON.stringify(found.slice(0, 200));
}

function page(n) {
  const rows = items.slice(n % 1000, (n % 1000) + 150);
  return "<ul>" + rows.map((it) => `<li>${it.name.replace(/[<>&]/g, "")} ${it.tags.join(", ")}</li>`).join("") + "</ul>";
}

function sign(n) {
  const body = JSON.parse(JSON.stringify(items.slice(0, 300)));
  return crypto.createHash("sha256").update(JSON.stringify(body) + n).digest("hex");
}

http
  .createServer((request, answer) => {
    const url = new URL(request.url, "http://localhost");
    const n = Number(url.searchParams.get("n") || 0);
    const make = { "/search": search, "/page": page, "/sign": sign }[url.pathname] || page;
    zlib.gzip(make(n), (_, bytes) => {
      answer.setHeader("content-encoding", "gzip");
      answer.end(bytes);
    });
  })
  .listen(Number(process.argv[2]), "127.0.0.1");

// Reads files with the importer of speedscope's own package, outside of any
// browser: node speedscope.js PACKAGE FILE...
// Prints for each file what it understood, as JSON.
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const [release, ...files] = process.argv.slice(2);

const folder = path.join(release, "dist", "release");
const name = fs.readdirSync(folder).find((name) => /^speedscope-.*\.js$/.test(name));
let bundle = fs.readFileSync(path.join(folder, name), "utf8");
// The importers are one lazy module of the bundle; hold on to the promise of it.
const exported = /(\w+)=\{\};\w+\(\1,\{importFromFileSystemDirectoryEntry/.exec(bundle.replaceAll("$", "_"));
const module_ = exported && exported[1];
const promise = new RegExp(`(\\w+)=Promise\\.resolve\\(\\)\\.then\\(\\(\\)=>\\(\\w+\\(\\),${module_}\\)\\);`);
if (!module_ || !promise.test(bundle)) {
  console.error("the package is laid out in a new way");
  process.exit(3);
}
bundle = bundle.replace(promise, (all, name) => `${all}globalThis.importers=${name};`);

// The page around it is not there: whatever is asked of it is nothing.
const nothing = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : key === "then" ? undefined : nothing),
  apply: () => nothing,
  construct: () => nothing,
});
const { TextDecoder, TextEncoder, Uint8Array, ArrayBuffer, DataView } = globalThis;
const world = { console: { log() {}, warn() {}, error() {} }, TextDecoder, TextEncoder, Uint8Array,
  ArrayBuffer, DataView, Promise, setTimeout, performance, WebAssembly, URL, atob, btoa };
// Its decoder of protocol buffers takes another kind of number from here, if there is one.
world.Long = world.dcodeIO = undefined;
world.window = world.self = new Proxy(world, { get: (all, key) => (key in all ? all[key] : nothing), has: () => true });
for (const key of ["document", "navigator", "location", "indexedDB", "localStorage", "HTMLElement", "fetch"]) world[key] = nothing;
vm.createContext(world);
try {
  vm.runInContext(bundle, world, { timeout: 60000 });
} catch (error) {
  // The program itself does not start; its importers are there by now.
  if (!world.importers) throw error;
}

const told = (profile) => {
  const frames = [];
  profile.forEachFrame((frame) => {
    frames.push({ name: frame.name, file: frame.file, own: frame.getSelfWeight(), total: frame.getTotalWeight() });
  });
  return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames };
};
(async () => {
  const importers = await world.importers;
  for (const file of files) {
    const bytes = fs.readFileSync(file);
    const array = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    const group = await importers.importProfilesFromArrayBuffer(path.basename(file), array);
    console.log(JSON.stringify(group && { name: group.name, profiles: group.profiles.map(told) }));
  }
})().catch((error) => {
  console.error(String(error && error.stack));
  process.exit(1);
});

// Computes the same again and again, with garbage, native code and threads of its own, and
// prints the results.
const crypto = require('crypto');
const zlib = require('zlib');
const { promisify } = require('util');
const deflate = promisify(zlib.deflate), inflate = promisify(zlib.inflate);

function mix(n) {
    const objects = [];
    for (let i = 0; i < 200; i++) objects.push({ key: `k${(i * 7919 + n) % 1009}`, value: [i, n, i * n] });
    objects.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.value[0] - b.value[0]));
    return JSON.stringify(objects);
}

async function round() {
    const hash = crypto.createHash('sha256');
    for (let n = 0; n < 30; n++) {
        const packed = await deflate(mix(n));
        hash.update(await inflate(packed));
        if (n % 5 === 0) await new Promise(setImmediate);
    }
    return hash.digest('hex');
}

(async () => {
    for (;;) console.log(await round());
})();

// A client of uuidd's socket for Node.js, without a package (see uuidd/protocol.md).
//
//     node blocks.mjs 3             for each of 3 blocks of both timelines, the first and last v1 and v7
//     node blocks.mjs make v7 1000  the result of a method, as JSON

import { randomBytes } from "node:crypto";
import { connect } from "node:net";

const EPOCH = 0x01b21dd213814000n; // the tick of 1970-01-01T00:00:00Z

// Encodes numbers, booleans, short text and short arrays.
function encode(value) {
  if (Array.isArray(value))
    return Buffer.concat([Buffer.of(0x90 | value.length), ...value.map(encode)]);
  if (typeof value === "boolean") return Buffer.of(value ? 0xc3 : 0xc2);
  if (typeof value === "string") return Buffer.concat([Buffer.of(0xa0 | value.length), Buffer.from(value)]);
  const bytes = Buffer.of(0xce, 0, 0, 0, 0);
  bytes.writeUInt32BE(value, 1);
  return bytes;
}

// Decodes the daemon's messages. Throws a RangeError if a message is not complete yet.
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  take(size) {
    if (this.at + size > this.bytes.length) throw new RangeError("not complete");
    return this.bytes.subarray(this.at, (this.at += size));
  }
  // Numbers past 2**53 are rounded: so a block has unix_ms and tick_in_ms beside first.
  uint(size) {
    return this.take(size).reduce((value, byte) => value * 256 + byte, 0);
  }
  int(size) {
    return Number(BigInt.asIntN(8 * size, BigInt("0x" + this.take(size).toString("hex"))));
  }
  text(size) {
    return this.take(size).toString();
  }
  array(size) {
    return Array.from({ length: size }, () => this.value());
  }
  map(size) {
    return Object.fromEntries(Array.from({ length: size }, () => [this.value(), this.value()]));
  }
  value() {
    const head = this.uint(1);
    if (head < 0x80) return head;
    if (head < 0x90) return this.map(head & 15);
    if (head < 0xa0) return this.array(head & 15);
    if (head < 0xc0) return this.text(head & 31);
    if (head >= 0xe0) return head - 0x100;
    if (head === 0xc0) return null;
    if (head === 0xc2 || head === 0xc3) return head === 0xc3;
    if (head >= 0xc4 && head <= 0xc6) return this.take(this.uint(1 << (head - 0xc4)));
    if (head === 0xca) return this.take(4).readFloatBE();
    if (head === 0xcb) return this.take(8).readDoubleBE();
    if (head >= 0xcc && head <= 0xcf) return this.uint(1 << (head - 0xcc));
    if (head >= 0xd0 && head <= 0xd3) return this.int(1 << (head - 0xd0));
    if (head >= 0xd9 && head <= 0xdb) return this.text(this.uint(1 << (head - 0xd9)));
    if (head >= 0xdc && head <= 0xdd) return this.array(this.uint(2 << (head - 0xdc)));
    if (head >= 0xde) return this.map(this.uint(2 << (head - 0xde)));
    throw new Error(`this reader does not know MessagePack type ${head}`);
  }
}

// A connection to the daemon; call() gives a promise of the result.
class Daemon {
  constructor(path = process.env.UUIDD_SOCKET || "/run/uuidd/request") {
    this.waiting = new Map();
    this.msgid = 0;
    this.rest = Buffer.alloc(0);
    this.socket = connect(path);
    this.socket.on("data", (data) => this.read(data));
    this.socket.on("error", (error) => this.end(error));
    this.socket.on("close", () => this.end(new Error("the daemon closed the connection")));
  }
  call(method, ...params) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.msgid, { resolve, reject });
      this.socket.write(encode([0, this.msgid, method, params]));
    });
  }
  read(data) {
    this.rest = Buffer.concat([this.rest, data]);
    const reader = new Reader(this.rest);
    try {
      for (;;) {
        const [, msgid, error, result] = reader.value();
        const { resolve, reject } = this.waiting.get(msgid);
        this.waiting.delete(msgid);
        if (error === null) resolve(result);
        else reject(Object.assign(new Error(error), { code: error.split(": ")[0] }));
        this.rest = this.rest.subarray(reader.at);
        reader.bytes = this.rest;
        reader.at = 0;
      }
    } catch (error) {
      if (!(error instanceof RangeError)) this.socket.destroy(error);
    }
  }
  end(error) {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}

function uuid(high, low, version) {
  high = (high & ~0xf000n) | (BigInt(version) << 12n);
  low = (low & 0x3fff_ffff_ffff_ffffn) | 0x8000_0000_0000_0000n;
  const hex = ((high << 64n) | low).toString(16).padStart(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

// The v1 UUID of tick number k of a block of utc.
function v1(block, k) {
  const tick = BigInt(block.unix_ms) * 10_000n + BigInt(block.tick_in_ms + k) + EPOCH;
  const high = ((tick & 0xffff_ffffn) << 32n) | (((tick >> 32n) & 0xffffn) << 16n) | (tick >> 48n);
  const node = BigInt("0x" + block.node.toString("hex"));
  return uuid(high, (BigInt(block.clock_seq) << 48n) | node, 1);
}

// The v7 UUID of tick number k of a block of steady.
function v7(block, k) {
  const place = block.tick_in_ms + k;
  const ms = block.unix_ms + Math.floor(place / 10_000);
  const tick = BigInt(place % 10_000);
  const random = randomBytes(8).readBigUInt64BE() >> 12n; // 52 bits, below 8 zero bits
  return uuid((BigInt(ms) << 16n) | (tick >> 2n), ((tick & 3n) << 60n) | random, 7);
}

process.on("uncaughtException", (error) => {
  console.error(error.message);
  process.exit(1);
});

const daemon = new Daemon();
const [what = "1", ...params] = process.argv.slice(2);
const isNumber = (word) => /^\d+$/.test(word);
if (isNumber(what)) {
  const printed = Array.from({ length: Number(what) }, async () => {
    const utc = await daemon.call("take", "utc", 20_001);
    const steady = await daemon.call("take", "steady", 20_001);
    console.log(v1(utc, 0), v1(utc, utc.count - 1), v7(steady, 0), v7(steady, steady.count - 1));
  });
  await Promise.all(printed);
} else {
  const words = params.map((word) => (isNumber(word) ? Number(word) : word));
  console.log(JSON.stringify(await daemon.call(what, ...words)));
}
daemon.socket.end();

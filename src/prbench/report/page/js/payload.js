// Unpacking: blocks of gzip in base64, each holding typed arrays and JSON side by side (see report/payload.py).

const index = JSON.parse(document.getElementById("index").textContent);
const TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };
const unpacked = new Map();

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function readPart(buffer, [type, start, size]) {
  if (type === "json") return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start, size)));
  const Kind = TYPES[type];
  return new Kind(buffer, start, size / Kind.BYTES_PER_ELEMENT);
}

async function readBlock(id) {
  const buffer = await inflate(fromBase64(document.getElementById(id).textContent));
  const parts = {};
  for (const [name, part] of Object.entries(index.blocks[id])) parts[name] = readPart(buffer, part);
  return parts;
}

/** The parts of a block by name; unpacked once, when first asked for. */
function block(id) {
  if (!unpacked.has(id)) unpacked.set(id, readBlock(id));
  return unpacked.get(id);
}

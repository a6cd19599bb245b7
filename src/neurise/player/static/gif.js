// Write an animated GIF: one palette, frames of palette places, compressed by LZW.

class Bytes {
  constructor() {
    this.parts = [];
  }
  byte(...values) {
    this.parts.push(...values);
  }
  short(...values) {
    values.forEach((value) => this.parts.push(value & 255, value >> 8));
  }
  text(text) {
    for (const letter of text) this.parts.push(letter.charCodeAt(0));
  }
}

// The codes of a frame grow from size + 1 to 12 bits; then the table is cleared.
function compressed(pixels, size, out) {
  const clear = 1 << size;
  const bytes = [];
  let table,
    bits,
    next,
    held = 0,
    count = 0;
  const put = (code) => {
    held |= code << count;
    count += bits;
    while (count >= 8) {
      bytes.push(held & 255);
      held >>>= 8;
      count -= 8;
    }
  };
  const reset = () => {
    table = new Map();
    bits = size + 1;
    next = clear + 2;
  };
  reset();
  put(clear);
  let known = pixels[0];
  for (let place = 1; place < pixels.length; place++) {
    const key = (known << 8) | pixels[place];
    const code = table.get(key);
    if (code !== undefined) {
      known = code;
      continue;
    }
    put(known);
    if (next < 4096) {
      table.set(key, next);
      if (next === 1 << bits) bits += 1;
      next += 1;
    } else {
      put(clear);
      reset();
    }
    known = pixels[place];
  }
  put(known);
  put(clear + 1);
  if (count) bytes.push(held & 255);
  out.byte(size);
  for (let start = 0; start < bytes.length; start += 255) {
    const block = bytes.slice(start, start + 255);
    out.byte(block.length, ...block);
  }
  out.byte(0);
}

// Frames are Uint8Arrays of width × height places of the palette, a list of [r, g, b]; delay is in hundredths of a second.
export function gif(width, height, palette, frames, delay = 5) {
  const size = Math.max(2, Math.ceil(Math.log2(palette.length)));
  const out = new Bytes();
  out.text("GIF89a");
  out.short(width, height);
  out.byte(0x80 | (size - 1), 0, 0);
  for (let token = 0; token < 1 << size; token++) out.byte(...(palette[token] ?? [0, 0, 0]));
  out.byte(0x21, 0xff, 11);
  out.text("NETSCAPE2.0");
  out.byte(3, 1, 0, 0, 0);
  frames.forEach((frame, place) => {
    out.byte(0x21, 0xf9, 4, 0);
    out.short(place === frames.length - 1 ? 150 : delay);
    out.byte(0, 0, 0x2c);
    out.short(0, 0, width, height);
    out.byte(0);
    compressed(frame, size, out);
  });
  out.byte(0x3b);
  return new Blob([Uint8Array.from(out.parts)], { type: "image/gif" });
}

// A small Llama that computes in the tab: RMSNorm, rotary positions, grouped-query attention, a gated feed-forward layer. It is held
// against the library's own log-probabilities by a test. Numbers are summed in double precision and kept in single precision.
"use strict";

// 16-bit floats, little-endian and in base64, as a Float32Array.
function halves(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 2 }, (_, i) => {
    const bits = view.getUint16(2 * i, true), sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return exponent === 31 ? (fraction ? NaN : sign * Infinity) : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

// y [n, rows] = x [n, columns] times the transpose of w [rows, columns].
function multiply(y, x, w, n, rows, columns) {
  for (let r = 0; r < rows; r++) {
    const at = r * columns;
    for (let t = 0; t < n; t++) {
      const from = t * columns;
      let a = 0, b = 0, c = 0, d = 0, i = 0;
      for (; i + 3 < columns; i += 4) {
        a += w[at + i] * x[from + i];
        b += w[at + i + 1] * x[from + i + 1];
        c += w[at + i + 2] * x[from + i + 2];
        d += w[at + i + 3] * x[from + i + 3];
      }
      for (; i < columns; i++) a += w[at + i] * x[from + i];
      y[t * rows + r] = a + b + c + d;
    }
  }
}

class Llama {
  // shape: width, layers, heads, kv_heads, head, ffn, vocabulary, context, theta, epsilon, tied. weights: base64 of all of them in the
  // order of `take` below.
  constructor(shape, weights) {
    this.shape = shape;
    const all = halves(weights);
    let at = 0;
    const take = (size) => all.subarray(at, (at += size));
    const { width, ffn, vocabulary, head } = shape, q = shape.heads * head, kv = shape.kv_heads * head;
    this.embedding = take(vocabulary * width);
    this.layers = Array.from({ length: shape.layers }, () => ({
      before: take(width), q: take(q * width), k: take(kv * width), v: take(kv * width), o: take(width * q),
      after: take(width), gate: take(ffn * width), up: take(ffn * width), down: take(width * ffn),
    }));
    this.norm = take(width);
    this.head = shape.tied ? this.embedding : take(vocabulary * width);
    if (at !== all.length) throw new Error(`a model of this shape has ${at} weights, and ${all.length} came`);
    this.turns = Float64Array.from({ length: head / 2 }, (_, i) => shape.theta ** (-2 * i / head));
  }

  // What is kept of the tokens that were read: keys and values by layer.
  cache() {
    const size = this.shape.context * this.shape.kv_heads * this.shape.head;
    return { ids: [], keys: this.layers.map(() => new Float32Array(size)), values: this.layers.map(() => new Float32Array(size)) };
  }

  // Logits after `ids`; what the cache has of their beginning is not computed again.
  read(ids, cache) {
    if (ids.length > this.shape.context) throw new RangeError("the prompt is longer than the model's context");
    let kept = 0;
    while (kept < cache.ids.length && kept < ids.length - 1 && cache.ids[kept] === ids[kept]) kept++;
    const logits = this.forward(ids.slice(kept), kept, cache);
    cache.ids = [...ids];
    return logits;
  }

  forward(ids, start, cache) {
    const { width, ffn, vocabulary, heads, kv_heads, head } = this.shape, n = ids.length, q = heads * head, kv = kv_heads * head;
    const x = new Float32Array(n * width), normed = new Float32Array(n * width), added = new Float32Array(n * width);
    const queries = new Float32Array(n * q), mixed = new Float32Array(n * q), gate = new Float32Array(n * ffn), up = new Float32Array(n * ffn);
    ids.forEach((id, t) => x.set(this.embedding.subarray(id * width, (id + 1) * width), t * width));
    const add = () => { for (let i = 0; i < x.length; i++) x[i] += added[i]; };
    this.layers.forEach((layer, l) => {
      const keys = cache.keys[l].subarray(start * kv, (start + n) * kv), values = cache.values[l].subarray(start * kv, (start + n) * kv);
      this.normalise(normed, x, layer.before, n);
      multiply(queries, normed, layer.q, n, q, width);
      multiply(keys, normed, layer.k, n, kv, width);
      multiply(values, normed, layer.v, n, kv, width);
      this.rotate(queries, n, heads, start);
      this.rotate(keys, n, kv_heads, start);
      this.attend(mixed, queries, cache.keys[l], cache.values[l], n, start);
      multiply(added, mixed, layer.o, n, width, q);
      add();
      this.normalise(normed, x, layer.after, n);
      multiply(gate, normed, layer.gate, n, ffn, width);
      multiply(up, normed, layer.up, n, ffn, width);
      for (let i = 0; i < gate.length; i++) gate[i] = (gate[i] / (1 + Math.exp(-gate[i]))) * up[i];
      multiply(added, gate, layer.down, n, width, ffn);
      add();
    });
    this.normalise(normed, x, this.norm, n);
    const logits = new Float32Array(vocabulary);
    multiply(logits, normed.subarray((n - 1) * width), this.head, 1, vocabulary, width);
    return logits;
  }

  normalise(out, x, weight, n) {
    const width = weight.length;
    for (let t = 0; t < n; t++) {
      let sum = 0;
      for (let i = 0; i < width; i++) sum += x[t * width + i] ** 2;
      const scale = 1 / Math.sqrt(sum / width + this.shape.epsilon);
      for (let i = 0; i < width; i++) out[t * width + i] = x[t * width + i] * scale * weight[i];
    }
  }

  // Rotary positions: pairs are i and i + head / 2, as in Hugging Face's Llama.
  rotate(x, n, heads, start) {
    const { head } = this.shape, half = head / 2;
    for (let t = 0; t < n; t++) for (let i = 0; i < half; i++) {
      const angle = (start + t) * this.turns[i], cos = Math.cos(angle), sin = Math.sin(angle);
      for (let h = 0; h < heads; h++) {
        const a = (t * heads + h) * head + i, b = a + half, left = x[a], right = x[b];
        x[a] = left * cos - right * sin;
        x[b] = right * cos + left * sin;
      }
    }
  }

  attend(out, queries, keys, values, n, start) {
    const { heads, kv_heads, head } = this.shape, scale = 1 / Math.sqrt(head), scores = new Float64Array(start + n);
    for (let t = 0; t < n; t++) for (let h = 0; h < heads; h++) {
      const q = (t * heads + h) * head, shared = Math.floor((h * kv_heads) / heads), seen = start + t + 1;
      let most = -Infinity, total = 0;
      for (let s = 0; s < seen; s++) {
        const k = (s * kv_heads + shared) * head;
        let dot = 0;
        for (let i = 0; i < head; i++) dot += queries[q + i] * keys[k + i];
        most = Math.max(most, (scores[s] = dot * scale));
      }
      for (let s = 0; s < seen; s++) total += scores[s] = Math.exp(scores[s] - most);
      for (let i = 0; i < head; i++) {
        let sum = 0;
        for (let s = 0; s < seen; s++) sum += scores[s] * values[(s * kv_heads + shared) * head + i];
        out[q + i] = sum / total;
      }
    }
  }
}

// Probabilities at a temperature; at 0 of the untouched logits, of which the largest is taken.
function chances(logits, temperature) {
  const scale = temperature > 0 ? temperature : 1, most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const found = Float64Array.from(logits, (v) => Math.exp((v - most) / scale)), total = found.reduce((a, b) => a + b, 0);
  return found.map((v) => v / total);
}

// The smallest set of most likely tokens whose probability reaches top_p, and zeros outside of it.
function nucleus(found, topP) {
  if (topP >= 1) return found;
  const order = Array.from(found.keys()).sort((a, b) => found[b] - found[a] || a - b), kept = new Float64Array(found.length);
  let below = 0;
  for (const i of order) {
    if (below >= topP) break;
    kept[i] = found[i];
    below += found[i];
  }
  return kept;
}

const MASK = (1n << 64n) - 1n;
function mixed(z) {
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}
// A number in [0, 1) of a seed (a BigInt) and an index: splitmix64, as the library draws.
function uniform(seed, index) {
  return Number(mixed((mixed(seed & MASK) + BigInt(index + 1) * 0x9e3779b97f4a7c15n) & MASK) >> 11n) * 2 ** -53;
}

// A token, drawn by inverting the cumulative distribution at one uniform number; { id, logprob, chances }.
function draw(logits, sampling, seed, index) {
  const whole = chances(logits, sampling.temperature);
  if (sampling.temperature <= 0) {
    const id = logits.indexOf(logits.reduce((a, b) => Math.max(a, b), -Infinity));
    return { id, logprob: 0, chances: whole };
  }
  const kept = nucleus(whole, sampling.top_p), total = kept.reduce((a, b) => a + b, 0), target = uniform(seed, index) * total;
  let below = 0, id = 0, last = 0;
  for (; id < kept.length; id++) {
    if (kept[id] > 0) last = id;
    below += kept[id];
    if (below > target) break;
  }
  id = Math.min(id, last);
  return { id, logprob: Math.log(kept[id] / total), chances: whole };
}

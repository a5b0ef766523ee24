// Passes of a small Llama on one core, in float32: what `native.py` builds and calls.
//
// A Llama here is: an embedding, layers of RMS norm, attention with rotary positions and grouped heads, RMS norm and
// SwiGLU, without biases, a last norm and a head. What always holds: a call computes the same bits for the same numbers;
// it uses one thread and no global state, so that several threads may call at once. Matrices are row-major. A matrix
// product takes its right side in panels of PANEL columns, which `pack` makes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX512F__)
constexpr long WIDTH = 16, ROWS = 12;
#elif defined(__AVX2__)
constexpr long WIDTH = 8, ROWS = 6;
#elif defined(__aarch64__)
constexpr long WIDTH = 4, ROWS = 12;
#else
constexpr long WIDTH = 4, ROWS = 6;
#endif
constexpr long PANEL = 2 * WIDTH;
constexpr long BLOCK = 96;   // tokens whose numbers stay in the core's own cache between two products
constexpr long QUERIES = 48; // of a block of attention
typedef float Vector __attribute__((vector_size(4 * WIDTH)));
typedef float Eight __attribute__((vector_size(32)));
using std::vector;

namespace {

template <class T> inline T load(const float *p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class T> inline void store(float *p, T v) { std::memcpy(p, &v, sizeof v); }

long panels(long n) { return (n + PANEL - 1) / PANEL; }
long packed(long k, long n) { return panels(n) * PANEL * k; }

// e^x to a few units in the last place (range reduction and polynomial of Cephes); written so that it is vectorised
inline float exponential(float x) {
    x = std::min(x, 88.0f);
    float n = __builtin_rintf(std::max(x, -87.0f) * 1.44269504f);
    float r = __builtin_fmaf(n, -0.693359375f, std::max(x, -87.0f));
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = __builtin_fmaf(p, r, 1.3981999507e-3f);
    p = __builtin_fmaf(p, r, 8.3334519073e-3f);
    p = __builtin_fmaf(p, r, 4.1665795894e-2f);
    p = __builtin_fmaf(p, r, 1.6666665459e-1f);
    p = __builtin_fmaf(p, r, 5.0000001201e-1f);
    p = __builtin_fmaf(p * r, r, r) + 1.0f;
    int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, 4);
    return x < -87.0f ? 0.0f : p * power;
}

// panels of B (k x n), where B[i][j] = b[i * rows + j * columns]
void pack(const float *b, long rows, long columns, long k, long n, float *out, long stride = 0) {
    stride = stride ? stride : k * PANEL;
    for (long begin = 0; begin < n; begin += PANEL, out += stride) {
        long width = std::min(PANEL, n - begin);
        const float *from = b + begin * columns;
        if (width < PANEL)
            std::memset(out, 0, 4 * k * PANEL);
        if (columns == 1)
            for (long i = 0; i < k; i++)
                std::memcpy(out + i * PANEL, from + i * rows, 4 * width);
        else
            for (long j = 0; j < width; j++)
                for (long i = 0; i < k; i++)
                    out[i * PANEL + j] = from[i * rows + j * columns];
    }
}

template <int R>
void tile(const float *a, long rs, long ks, const float *b, long k, float *c, long ldc, long width, bool add) {
    Vector sum[R][2] = {};
    for (long i = 0; i < k; i++, a += ks, b += PANEL) {
        Vector left = load<Vector>(b), right = load<Vector>(b + WIDTH);
#pragma GCC unroll 12
        for (int r = 0; r < R; r++) {
            sum[r][0] += a[r * rs] * left;
            sum[r][1] += a[r * rs] * right;
        }
    }
    for (int r = 0; r < R; r++, c += ldc) {
        if (width == PANEL) {
            store(c, add ? load<Vector>(c) + sum[r][0] : sum[r][0]);
            store(c + WIDTH, add ? load<Vector>(c + WIDTH) + sum[r][1] : sum[r][1]);
        } else {
            float whole[PANEL];
            store(whole, sum[r][0]);
            store(whole + WIDTH, sum[r][1]);
            for (long j = 0; j < width; j++)
                c[j] = add ? c[j] + whole[j] : whole[j];
        }
    }
}

using Tile = void (*)(const float *, long, long, const float *, long, float *, long, long, bool);
const Tile TILES[] = {nullptr, tile<1>, tile<2>, tile<3>, tile<4>,  tile<5>,  tile<6>,
                      tile<7>, tile<8>, tile<9>, tile<10>, tile<11>, tile<12>};

// C (m x n) = or += A B, where A[i][j] = a[i * rs + j * ks] and B is packed; `stride` is from one panel to the next
void product(const float *a, long rs, long ks, long m, long k, const float *b, long n, float *c, long ldc,
             bool add = false, long stride = 0) {
    stride = stride ? stride : k * PANEL;
    for (long j = 0; j < n; j += PANEL, b += stride)
        for (long i = 0; i < m; i += ROWS)
            TILES[std::min(ROWS, m - i)](a + i * rs, rs, ks, b, k, c + i * ldc + j, ldc, std::min(PANEL, n - j), add);
}

float dot(const float *a, const float *b, long n) {
    Vector sum = {};
    long i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        sum += load<Vector>(a + i) * load<Vector>(b + i);
    float total = 0;
    for (long k = 0; k < WIDTH; k++)
        total += sum[k];
    for (; i < n; i++)
        total += a[i] * b[i];
    return total;
}

inline float sum_of(Eight v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

// y = x / rms(x) * w
void norm(const float *x, const float *w, float epsilon, long n, long d, float *y) {
    for (long i = 0; i < n; i++, x += d, y += d) {
        float scale = 1 / std::sqrt(dot(x, x, d) / d + epsilon);
        for (long j = 0; j < d; j++)
            y[j] = x[j] * scale * w[j];
    }
}

// adds the gradient of `norm` to dx and dw
void norm_back(const float *x, const float *w, float epsilon, long n, long d, const float *dy, float *dx, float *dw) {
    vector<float> weighted(d);
    for (long i = 0; i < n; i++, x += d, dy += d, dx += d) {
        float scale = 1 / std::sqrt(dot(x, x, d) / d + epsilon);
        for (long j = 0; j < d; j++)
            weighted[j] = dy[j] * w[j];
        float back = dot(weighted.data(), x, d) * scale * scale * scale / d;
        for (long j = 0; j < d; j++) {
            dx[j] += weighted[j] * scale - x[j] * back;
            dw[j] += dy[j] * x[j] * scale;
        }
    }
}

// turns pairs (j, j + size / 2) of a head by the angle of its position, or back
void rotate(float *x, const float *cosine, const float *sine, long size, float direction) {
    for (long j = 0, half = size / 2; j < half; j++) {
        float a = x[j], b = x[j + half], s = direction * sine[j];
        x[j] = a * cosine[j] - b * s;
        x[j + half] = b * cosine[j] + a * s;
    }
}

// exp(x - top) in place; returns the sum
float exponentials(float *x, long n, float top) {
    for (long j = 0; j < n; j++)
        x[j] = exponential(x[j] - top);
    Vector sum = {};
    long j = 0;
    for (; j + WIDTH <= n; j += WIDTH)
        sum += load<Vector>(x + j);
    float total = 0;
    for (long k = 0; k < WIDTH; k++)
        total += sum[k];
    for (; j < n; j++)
        total += x[j];
    return total;
}

float largest(const float *x, long n) {
    Vector tops = Vector{} - INFINITY;
    long j = 0;
    for (; j + WIDTH <= n; j += WIDTH) {
        Vector v = load<Vector>(x + j);
        tops = v > tops ? v : tops;
    }
    float top = -INFINITY;
    for (long k = 0; k < WIDTH; k++)
        top = std::max(top, tops[k]);
    for (; j < n; j++)
        top = std::max(top, x[j]);
    return top;
}

struct Shape {
    long width, layers, heads, kv_heads, size, inner, words;
    float epsilon;
    long queries() const { return heads * size; }
    long all() const { return (heads + 2 * kv_heads) * size; } // queries, keys and values of a token
    long group() const { return heads / kv_heads; }
};

// one query of every head against `length` keys; a position of keys and values has kv_heads * size numbers
void attend_one(const Shape &s, const float *query, const float *keys, const float *values, long length, float scale,
                float *out, float *scores) {
    long step = s.kv_heads * s.size, parts = s.size / 8;
    for (long h = 0; h < s.heads; h++) {
        const float *q = query + h * s.size, *k = keys + h / s.group() * s.size, *v = values + h / s.group() * s.size;
        float *o = out + h * s.size;
        for (long t = 0; t < length; t++) {
            Eight sum = {};
            for (long i = 0; i < parts; i++)
                sum += load<Eight>(q + 8 * i) * load<Eight>(k + t * step + 8 * i);
            scores[t] = sum_of(sum) * scale;
        }
        float inverse = 1 / exponentials(scores, length, largest(scores, length));
        for (long i = 0; i < parts; i++) {
            Eight even = {}, odd = {};
            long t = 0;
            for (; t + 1 < length; t += 2) {
                even += scores[t] * load<Eight>(v + t * step + 8 * i);
                odd += scores[t + 1] * load<Eight>(v + (t + 1) * step + 8 * i);
            }
            if (t < length)
                even += scores[t] * load<Eight>(v + t * step + 8 * i);
            store(o + 8 * i, (even + odd) * inverse);
        }
    }
}

// Hides from the query at place i what it does not see: place j > i, and, in a tree, j whose descendants end before i.
void hide(float *scores, long i, long length, const int64_t *ends) {
    for (long j = i + 1; j < length; j++)
        scores[j] = -INFINITY;
    if (ends)
        for (long j = 0; j <= i; j++)
            scores[j] = i < ends[j] ? scores[j] : -INFINITY;
}

// Queries at places start to start + n of a row whose keys and values begin at `keys` and `values`, `step` apart.
// With `sums` it also gives the logarithm of each query's sum of exponentials, head by head, `n` apart.
void attend(const Shape &s, const float *query, long ldq, long start, long n, const float *keys, const float *values,
            long step, const int64_t *ends, float scale, float *out, float *sums) {
    long length = start + n, places = panels(length) * PANEL, depth = panels(s.size);
    vector<float> across(places * s.size), along(depth * length * PANEL), scores(QUERIES * places);
    for (long g = 0; g < s.kv_heads; g++) {
        pack(keys + g * s.size, 1, step, s.size, length, across.data());
        pack(values + g * s.size, step, 1, length, s.size, along.data());
        for (long h = g * s.group(); h < (g + 1) * s.group(); h++)
            for (long b = 0; b < n; b += QUERIES) {
                long m = std::min(QUERIES, n - b), seen = start + b + m;
                product(query + b * ldq + h * s.size, ldq, 1, m, s.size, across.data(), seen, scores.data(), places);
                for (long i = 0; i < m; i++) {
                    float *row = scores.data() + i * places;
                    for (long j = 0; j < seen; j++)
                        row[j] *= scale;
                    hide(row, start + b + i, seen, ends);
                    float top = largest(row, seen), sum = exponentials(row, seen, top), inverse = 1 / sum;
                    for (long j = 0; j < seen; j++)
                        row[j] *= inverse;
                    if (sums)
                        sums[h * n + b + i] = top + std::log(sum);
                }
                product(scores.data(), places, 1, m, seen, along.data(), s.size, out + b * s.queries() + h * s.size,
                        s.queries(), false, length * PANEL);
            }
    }
}

// The gradient of `attend` for a whole row of n tokens: dall (n x all) from dout (n x queries).
void attend_back(const Shape &s, const float *all, const float *out, const float *dout, const float *sums, long n,
                 const int64_t *ends, float scale, float *dall) {
    long places = panels(n) * PANEL, depth = panels(s.size), step = s.all(), q = s.queries(), v = s.kv_heads * s.size;
    vector<float> keys_across(places * s.size), values_across(places * s.size), keys_along(depth * n * PANEL),
        block(depth * QUERIES * PANEL), weights(QUERIES * places), slopes(QUERIES * places);
    std::memset(dall, 0, 4 * n * step);
    for (long g = 0; g < s.kv_heads; g++) {
        const float *keys = all + q + g * s.size, *values = keys + v;
        float *dkeys = dall + q + g * s.size, *dvalues = dkeys + v;
        pack(keys, 1, step, s.size, n, keys_across.data());
        pack(values, 1, step, s.size, n, values_across.data());
        pack(keys, step, 1, n, s.size, keys_along.data());
        for (long h = g * s.group(); h < (g + 1) * s.group(); h++)
            for (long b = 0; b < n; b += QUERIES) {
                long m = std::min(QUERIES, n - b), seen = b + m;
                const float *query = all + b * step + h * s.size, *d = dout + b * q + h * s.size;
                product(query, step, 1, m, s.size, keys_across.data(), seen, weights.data(), places);
                product(d, q, 1, m, s.size, values_across.data(), seen, slopes.data(), places);
                for (long i = 0; i < m; i++) {
                    float *w = weights.data() + i * places, *slope = slopes.data() + i * places;
                    float sum = sums[h * n + b + i], mean = dot(d + i * q, out + (b + i) * q + h * s.size, s.size);
                    for (long j = 0; j < seen; j++)
                        w[j] *= scale;
                    hide(w, b + i, seen, ends);
                    for (long j = 0; j < seen; j++) {
                        w[j] = exponential(w[j] - sum);
                        slope[j] = w[j] * (slope[j] - mean) * scale;
                    }
                }
                product(slopes.data(), places, 1, m, seen, keys_along.data(), s.size, dall + b * step + h * s.size,
                        step, false, n * PANEL);
                pack(query, step, 1, m, s.size, block.data());
                product(slopes.data(), 1, places, seen, m, block.data(), s.size, dkeys, step, true);
                pack(d, q, 1, m, s.size, block.data());
                product(weights.data(), 1, places, seen, m, block.data(), s.size, dvalues, step, true);
            }
    }
}

// Tensors of the model in the order of `native.py`: the embedding, of each layer the nine below, the last norm, the head.
enum { NORM, QUERY, KEY, VALUE, OUTPUT, SECOND, GATE, UP, DOWN, TENSORS };

// Weights of a layer as panels: of the products forward (transposed) or of those backward.
struct Packed {
    vector<float> all, output, inner, down;
    Packed(const Shape &s, const float *const *w, bool back) {
        auto one = [&](vector<float> &to, std::initializer_list<int> which, std::initializer_list<long> heights,
                       long in) {
            long total = 0;
            for (long h : heights)
                total += h;
            vector<float> whole(total * in);
            float *at = whole.data();
            auto height = heights.begin();
            for (int k : which) {
                std::memcpy(at, w[k], 4 * *height * in);
                at += *height++ * in;
            }
            to.resize(back ? packed(total, in) : packed(in, total));
            if (back)
                pack(whole.data(), in, 1, total, in, to.data());
            else
                pack(whole.data(), 1, in, in, total, to.data());
        };
        long kv = s.kv_heads * s.size;
        one(all, {QUERY, KEY, VALUE}, {s.queries(), kv, kv}, s.width);
        one(output, {OUTPUT}, {s.width}, s.queries());
        one(inner, {GATE, UP}, {s.inner, s.inner}, s.width);
        one(down, {DOWN}, {s.width}, s.inner);
    }
};

struct Model {
    Shape s;
    vector<Packed> layers;
    vector<float> head;
    vector<vector<float>> norms; // two a layer, and the last
    const float *embedding, *cosine, *sine;
};

// Queries, keys and values of n tokens, turned by their positions.
void project(const Shape &s, const float *x, const float *weight, const Packed &p, const int64_t *position,
             const float *cosine, const float *sine, long n, float *h, float *all) {
    norm(x, weight, s.epsilon, n, s.width, h);
    product(h, s.width, 1, n, s.width, p.all.data(), s.all(), all, s.all());
    for (long i = 0; i < n; i++)
        for (long k = 0; k < s.heads + s.kv_heads; k++)
            rotate(all + i * s.all() + k * s.size, cosine + position[i] * s.size, sine + position[i] * s.size, s.size, 1);
}

// silu(gate) * up
void gated(const float *both, long ld, long n, long inner, float *out, long ldo) {
    for (long i = 0; i < n; i++, both += ld, out += ldo)
        for (long j = 0; j < inner; j++)
            out[j] = both[j] / (1 + exponential(-both[j])) * both[inner + j];
}

void begin(const Shape &s, const float *embedding, const int64_t *ids, long n, float *x) {
    for (long i = 0; i < n; i++)
        std::memcpy(x + i * s.width, embedding + ids[i] * s.width, 4 * s.width);
}

Shape shape_of(const int64_t *d, float epsilon) { return {d[0], d[1], d[2], d[3], d[4], d[5], d[6], epsilon}; }

} // namespace

extern "C" {

// A model for `sample`, whose weights are copied except the embedding and the two tables of positions.
void *make(const int64_t *dims, float epsilon, const float *const *w, const float *cosine, const float *sine) {
    Shape s = shape_of(dims, epsilon);
    auto *m = new Model{s, {}, vector<float>(packed(s.width, s.words)), {}, w[0], cosine, sine};
    const float *const *layer = w + 1;
    for (long l = 0; l < s.layers; l++, layer += TENSORS) {
        m->layers.emplace_back(s, layer, false);
        m->norms.emplace_back(layer[NORM], layer[NORM] + s.width);
        m->norms.emplace_back(layer[SECOND], layer[SECOND] + s.width);
    }
    m->norms.emplace_back(layer[0], layer[0] + s.width);
    pack(layer[1], 1, s.width, s.width, s.words, m->head.data());
    return m;
}

void drop(void *model) { delete static_cast<Model *>(model); }

// One pass of n packed tokens over keys and values (slots, capacity, kv heads, size) of each layer.
//
// at: flat place slot * capacity + position of each token. pieces: slot, start and count of each row's new tokens.
// wanted: the tokens after which logits (wanted x words) are asked for.
void sample(const void *model, const int64_t *ids, const int64_t *position, const int64_t *at, long n,
            const int64_t *pieces, long count, long capacity, float *const *keys, float *const *values,
            const int64_t *wanted, long asked, float *logits) {
    const Model &m = *static_cast<const Model *>(model);
    const Shape &s = m.s;
    long kv = s.kv_heads * s.size, ld = 2 * s.inner + WIDTH;
    float scale = 1 / std::sqrt(static_cast<float>(s.size));
    vector<float> x(n * s.width), all(n * s.all()), out(n * s.queries()), h(BLOCK * s.width), both(BLOCK * ld),
        scores(capacity);
    begin(s, m.embedding, ids, n, x.data());
    for (long l = 0; l < s.layers; l++) {
        const Packed &p = m.layers[l];
        for (long b = 0; b < n; b += BLOCK)
            project(s, x.data() + b * s.width, m.norms[2 * l].data(), p, position + b, m.cosine, m.sine,
                    std::min(BLOCK, n - b), h.data(), all.data() + b * s.all());
        for (long i = 0; i < n; i++) {
            std::memcpy(keys[l] + at[i] * kv, all.data() + i * s.all() + s.queries(), 4 * kv);
            std::memcpy(values[l] + at[i] * kv, all.data() + i * s.all() + s.queries() + kv, 4 * kv);
        }
        const float *query = all.data();
        float *answer = out.data();
        for (long r = 0; r < count; r++) {
            long row = pieces[3 * r] * capacity * kv, start = pieces[3 * r + 1], tokens = pieces[3 * r + 2];
            if (tokens == 1)
                attend_one(s, query, keys[l] + row, values[l] + row, start + 1, scale, answer, scores.data());
            else
                attend(s, query, s.all(), start, tokens, keys[l] + row, values[l] + row, kv, nullptr, scale, answer,
                       nullptr);
            query += tokens * s.all();
            answer += tokens * s.queries();
        }
        for (long b = 0; b < n; b += BLOCK) {
            long t = std::min(BLOCK, n - b);
            float *y = x.data() + b * s.width;
            product(out.data() + b * s.queries(), s.queries(), 1, t, s.queries(), p.output.data(), s.width, y, s.width,
                    true);
            norm(y, m.norms[2 * l + 1].data(), s.epsilon, t, s.width, h.data());
            product(h.data(), s.width, 1, t, s.width, p.inner.data(), 2 * s.inner, both.data(), ld);
            gated(both.data(), ld, t, s.inner, both.data(), ld);
            product(both.data(), ld, 1, t, s.inner, p.down.data(), s.width, y, s.width, true);
        }
    }
    for (long b = 0; b < asked; b += BLOCK) {
        long t = std::min(BLOCK, asked - b);
        vector<float> last(t * s.width);
        for (long i = 0; i < t; i++)
            std::memcpy(last.data() + i * s.width, x.data() + wanted[b + i] * s.width, 4 * s.width);
        norm(last.data(), m.norms.back().data(), s.epsilon, t, s.width, h.data());
        product(h.data(), s.width, 1, t, s.width, m.head.data(), s.words, logits + b * s.words, s.words);
    }
}

// Numbers that `forward` keeps for `backward`, of n tokens.
long kept(const int64_t *dims, long n) {
    Shape s = shape_of(dims, 0);
    return n * (s.layers * (2 * s.width + s.all() + s.queries() + s.heads + 2 * s.inner) + s.width);
}

// Hidden states (n x width) after the last norm, of rows that stand one after the other.
//
// rows: the lengths of `count` rows. ends: of each token the place, within its row, after its last descendant; null
// where no row branches. w: as for `make`.
void forward(const int64_t *dims, float epsilon, const float *const *w, const float *cosine, const float *sine,
             const int64_t *ids, const int64_t *position, const int64_t *ends, const int64_t *rows, long count, long n,
             float *keep, float *hidden) {
    Shape s = shape_of(dims, epsilon);
    float scale = 1 / std::sqrt(static_cast<float>(s.size));
    vector<float> h(BLOCK * s.width), product_of(BLOCK * (s.inner + WIDTH));
    begin(s, w[0], ids, n, keep);
    const float *const *layer = w + 1;
    for (long l = 0; l < s.layers; l++, layer += TENSORS) {
        Packed p(s, layer, false);
        float *x = keep, *all = x + n * s.width, *out = all + n * s.all(), *sums = out + n * s.queries(),
              *middle = sums + n * s.heads, *both = middle + n * s.width, *next = both + n * 2 * s.inner;
        for (long b = 0; b < n; b += BLOCK)
            project(s, x + b * s.width, layer[NORM], p, position + b, cosine, sine, std::min(BLOCK, n - b), h.data(),
                    all + b * s.all());
        for (long r = 0, b = 0; r < count; b += rows[r++]) {
            const float *row = all + b * s.all();
            attend(s, row, s.all(), 0, rows[r], row + s.queries(), row + s.queries() + s.kv_heads * s.size, s.all(),
                   ends ? ends + b : nullptr, scale, out + b * s.queries(), sums + b * s.heads);
        }
        for (long b = 0; b < n; b += BLOCK) {
            long t = std::min(BLOCK, n - b);
            float *y = middle + b * s.width, *z = next + b * s.width, *inner = both + b * 2 * s.inner;
            std::memcpy(y, x + b * s.width, 4 * t * s.width);
            product(out + b * s.queries(), s.queries(), 1, t, s.queries(), p.output.data(), s.width, y, s.width, true);
            norm(y, layer[SECOND], s.epsilon, t, s.width, h.data());
            product(h.data(), s.width, 1, t, s.width, p.inner.data(), 2 * s.inner, inner, 2 * s.inner);
            gated(inner, 2 * s.inner, t, s.inner, product_of.data(), s.inner + WIDTH);
            std::memcpy(z, y, 4 * t * s.width);
            product(product_of.data(), s.inner + WIDTH, 1, t, s.inner, p.down.data(), s.width, z, s.width, true);
        }
        keep = next;
    }
    norm(keep, layer[0], s.epsilon, n, s.width, hidden);
}

// Adds the gradient of `forward` to `dw`, given that of the hidden states; keep is what `forward` kept.
void backward(const int64_t *dims, float epsilon, const float *const *w, float *const *dw, const float *cosine,
              const float *sine, const int64_t *ids, const int64_t *position, const int64_t *ends, const int64_t *rows,
              long count, long n, const float *keep, const float *dhidden) {
    Shape s = shape_of(dims, epsilon);
    float scale = 1 / std::sqrt(static_cast<float>(s.size));
    long ld = 2 * s.inner + WIDTH, kv = s.kv_heads * s.size;
    keep += kept(dims, n) - n * s.width;
    const float *const *layer = w + 1 + s.layers * TENSORS;
    float *const *grad = dw + 1 + s.layers * TENSORS;
    vector<float> dx(n * s.width), dmiddle(n * s.width), dout(n * s.queries()), dall(n * s.all()), h(BLOCK * s.width),
        dh(BLOCK * s.width), product_of(BLOCK * (s.inner + WIDTH)), dproduct(BLOCK * (s.inner + WIDTH)),
        dboth(BLOCK * ld),
        panel(std::max({packed(BLOCK, s.inner), packed(BLOCK, s.width), packed(BLOCK, s.queries())}));
    norm_back(keep, layer[0], s.epsilon, n, s.width, dhidden, dx.data(), grad[0]);
    for (long l = s.layers - 1; l >= 0; l--) {
        layer -= TENSORS;
        grad -= TENSORS;
        Packed p(s, layer, true);
        const float *both = keep - n * 2 * s.inner, *middle = both - n * s.width, *sums = middle - n * s.heads,
                    *out = sums - n * s.queries(), *all = out - n * s.all(), *x = all - n * s.width;
        for (long b = 0; b < n; b += BLOCK) {
            long t = std::min(BLOCK, n - b), lp = s.inner + WIDTH;
            const float *g = both + b * 2 * s.inner, *d = dx.data() + b * s.width, *y = middle + b * s.width;
            float *dy = dmiddle.data() + b * s.width;
            gated(g, 2 * s.inner, t, s.inner, product_of.data(), lp);
            pack(product_of.data(), lp, 1, t, s.inner, panel.data());
            product(d, 1, s.width, s.width, t, panel.data(), s.inner, grad[DOWN], s.inner, true);
            product(d, s.width, 1, t, s.width, p.down.data(), s.inner, dproduct.data(), lp);
            for (long i = 0; i < t; i++) {
                const float *gate = g + i * 2 * s.inner, *up = gate + s.inner, *slope = dproduct.data() + i * lp;
                float *dgate = dboth.data() + i * ld, *dup = dgate + s.inner;
                for (long j = 0; j < s.inner; j++) {
                    float open = 1 / (1 + exponential(-gate[j]));
                    dup[j] = slope[j] * gate[j] * open;
                    dgate[j] = slope[j] * up[j] * open * (1 + gate[j] * (1 - open));
                }
            }
            norm(y, layer[SECOND], s.epsilon, t, s.width, h.data());
            pack(h.data(), s.width, 1, t, s.width, panel.data());
            product(dboth.data(), 1, ld, s.inner, t, panel.data(), s.width, grad[GATE], s.width, true);
            product(dboth.data() + s.inner, 1, ld, s.inner, t, panel.data(), s.width, grad[UP], s.width, true);
            product(dboth.data(), ld, 1, t, 2 * s.inner, p.inner.data(), s.width, dh.data(), s.width);
            std::memcpy(dy, d, 4 * t * s.width);
            norm_back(y, layer[SECOND], s.epsilon, t, s.width, dh.data(), dy, grad[SECOND]);
            pack(out + b * s.queries(), s.queries(), 1, t, s.queries(), panel.data());
            product(dy, 1, s.width, s.width, t, panel.data(), s.queries(), grad[OUTPUT], s.queries(), true);
            product(dy, s.width, 1, t, s.width, p.output.data(), s.queries(), dout.data() + b * s.queries(),
                    s.queries());
        }
        for (long r = 0, b = 0; r < count; b += rows[r++])
            attend_back(s, all + b * s.all(), out + b * s.queries(), dout.data() + b * s.queries(), sums + b * s.heads,
                        rows[r], ends ? ends + b : nullptr, scale, dall.data() + b * s.all());
        for (long b = 0; b < n; b += BLOCK) {
            long t = std::min(BLOCK, n - b);
            float *d = dall.data() + b * s.all();
            for (long i = 0; i < t; i++)
                for (long k = 0; k < s.heads + s.kv_heads; k++)
                    rotate(d + i * s.all() + k * s.size, cosine + position[b + i] * s.size,
                           sine + position[b + i] * s.size, s.size, -1);
            norm(x + b * s.width, layer[NORM], s.epsilon, t, s.width, h.data());
            pack(h.data(), s.width, 1, t, s.width, panel.data());
            product(d, 1, s.all(), s.queries(), t, panel.data(), s.width, grad[QUERY], s.width, true);
            product(d + s.queries(), 1, s.all(), kv, t, panel.data(), s.width, grad[KEY], s.width, true);
            product(d + s.queries() + kv, 1, s.all(), kv, t, panel.data(), s.width, grad[VALUE], s.width, true);
            product(d, s.all(), 1, t, s.all(), p.all.data(), s.width, dh.data(), s.width);
            float *dy = dx.data() + b * s.width;
            std::memcpy(dy, dmiddle.data() + b * s.width, 4 * t * s.width);
            norm_back(x + b * s.width, layer[NORM], s.epsilon, t, s.width, dh.data(), dy, grad[NORM]);
        }
        keep = x;
    }
    for (long i = 0; i < n; i++)
        for (long j = 0; j < s.width; j++)
            dw[0][ids[i] * s.width + j] += dx[i * s.width + j];
}
}

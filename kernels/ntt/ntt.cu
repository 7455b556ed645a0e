// Number-theoretic transforms over Fr, in place.
//
// A transform of n = 2^log_n runs in passes. A pass transforms `digits` bits of the index, at bit `lo`, in all columns:
//
//     index = (column >> lo) 2^(lo + digits) + d 2^lo + (column mod 2^lo)          d: the digit, 0 <= d < 2^digits
//
// A block holds 2^cols neighbouring columns in shared memory, a thread eight values in registers: eight-point transforms, then
// an exchange through shared memory, until the digit is done. Passes from the highest bits down turn natural into bit-reversed
// order (decimation in frequency), from the lowest bits up the reverse (decimation in time); in both the digit itself goes in in
// natural order and leaves bit-reversed, and only the place in memory differs.
//
// Between two passes stand the twiddles w_(2^(lo+digits))^(k low), k the transformed digit and low = column mod 2^lo. They come
// from tables, as do a coset's powers and the 1/n, which are folded into the same tables (cuzk/gpu/ntt_plan.py).
// `low` is cut in two where one table would be too large: two products, two small tables.
#include "small.cuh"

namespace cuzk {

// Entry of a table for digit value k: (k << bits) + ((low >> shift) mod 2^bits)
struct TableShape {
    u32 shift, bits;
    CUZK_DEVICE explicit TableShape(u32 packed) : shift(packed & 0xff), bits(packed >> 8) {}
    CUZK_DEVICE u32 column(u32 low) const { return (low >> shift) & ((1u << bits) - 1); }
};

CUZK_DEVICE u32 reverse_bits(u32 value, u32 bits) { return bits ? __brev(value) >> (32 - bits) : 0; }

// Opens a gap of `width` zero bits at bit `at`.
CUZK_DEVICE u32 open_gap(u32 value, u32 at, u32 width) { return (value >> at) << (at + width) | (value & ((1u << at) - 1)); }

// Eight neighbours, and eight values 8, 64 or 512 apart, lie in different banks. Linear: swizzle(a ^ b) = swizzle(a) ^ swizzle(b).
CUZK_DEVICE u32 swizzle(u32 place) { return place ^ ((place >> 3 ^ place >> 6 ^ place >> 9) & 7); }

CUZK_DEVICE void put(u32* x, const uint4& a, const uint4& b) {
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
CUZK_DEVICE uint4 quad(const u32* x) { return make_uint4(x[0], x[1], x[2], x[3]); }

// Threads of a block at most, eight values each; blocks an SM: what 96 registers a thread allow.
constexpr u32 PASS_THREADS = 128, PASS_BLOCKS = 5;
// Distance between the two planes of half elements in shared memory.
constexpr u32 MAX_TILE = 8 * PASS_THREADS;

struct Twiddle {
    u32 low[8], high[8];
    CUZK_DEVICE void load(const uint4* __restrict__ table, u32 entry) {
        const uint4* w = table + 4 * static_cast<u64>(entry);
        uint4 w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
        put(low, w0, w1);
        put(high, w2, w3);
    }
};

struct PassTables {
    const uint4 *roots_a, *roots_b, *pre0, *pre1, *post0, *post1, *mid;
};

// The other factors of a quotient's pointwise step, one of them in Montgomery, all else in std form: the result is std.
struct Product {
    uint4* a;
    const uint4* b;
};

// product.a = a x, or a b - x, at `at`
CUZK_DEVICE void multiply_in(const Product& product, u64 at, const u32* x) {
    u32 a[8], b[8];
    put(a, product.a[at], product.a[at + 1]);
    if (product.b) {
        put(b, product.b[at], product.b[at + 1]);
        mont_mul<FrParams>(a, a, b);
        mod_sub<FrParams>(a, a, x);
    } else {
        mont_mul<FrParams>(a, a, x);
    }
    product.a[at] = quad(a);
    product.a[at + 1] = quad(a + 4);
}

// One pass; with roots_b also a second transform of the same digit (lo = 0: the last pass of an inverse transform and the first
// of the next forward one, `mid` between them). Tables are null where there is nothing to multiply.
// EIGHTS: digits is a multiple of three, so that every small transform has eight points.
//
// Registers hold the eight values only during a small transform, whose own twiddles are immediates. The twiddles from tables are
// applied to one value at a time, from shared memory to shared or device memory, while the next twiddle is on its way: that is
// what lets five blocks share an SM.
//
// All places are or-ed from disjoint bit fields: what depends on the thread is computed once (`own`), what depends on the value e
// is the same in all threads, and one operation joins them.
//
// POINTWISE: a quotient's last pass; its values x are not stored, but product.a becomes a x or, if there is a b, a b - x.
template <bool EIGHTS, bool POINTWISE>
CUZK_DEVICE void transform_pass(uint4* planes, uint4* __restrict__ data, const PassTables& t, const Product& product, u32 log_n, u32 lo,
                                u32 digits, u32 cols, u32 load_reversed, u32 store_natural, u32 unit_a, u32 unit_b, u32 pre_shape,
                                u32 post_shape) {
    const u32 thread_bits = digits + cols - 3, thread = threadIdx.x;
    const u32 column_mask = (1u << cols) - 1, low_mask = (1u << lo) - 1, columns = 1u << (log_n - digits);

    u32 x[8][8];
    u32 m = digits, unit = unit_a, rho = EIGHTS || m >= 3 ? 3 : m;
    const uint4* roots = t.roots_a;

    // The same in all threads: value e's slot in its small transform and that transform's bits in the tile, slot apart; the
    // frequency that value e holds after the transform, and its slot then (eight numbers of four bits).
    auto slot = [&](u32 e) { return EIGHTS ? e : e & ((1u << rho) - 1); };
    auto group = [&](u32 e, u32 at) { return EIGHTS ? 0 : open_gap((e >> rho) << thread_bits, at, rho); };
    u32 frequencies, slots;
    auto set_unit = [&](u32 unit) {
        frequencies = slots = 0;
#pragma unroll
        for (u32 e = 0; e < 8; e++) {
            u32 frequency = ((reverse_bits(slot(e), 3) >> (3 - rho)) * unit) & ((1u << rho) - 1);
            frequencies |= frequency << 4 * e;
            slots |= reverse_bits(frequency, 3) >> (3 - rho) << 4 * e;
        }
    };
    auto frequency = [&](u32 e) { return frequencies >> 4 * e & 7; };
    auto input_offset = [&](u32 e) { return group(e, cols + m - rho) | slot(e) << (cols + m - rho); };
    auto output_offset = [&](u32 e) { return group(e, cols + m) | (slots >> 4 * e & 7) << (cols + m); };
    // elements of memory between place 0 of column 0 and another place or column
    auto distance = [&](u32 column, u32 digit, bool reversed) {
        return ((column & ~low_mask) << digits) + (column & low_mask) + ((reversed ? reverse_bits(digit, digits) : digit) << lo);
    };

    u32 own = open_gap(thread, cols + m - rho, rho);
    const u32 own_column = (blockIdx.x << cols) | (own & column_mask), own_low = own_column & low_mask;
    auto outside = [&](u32 offset) { return (own_column | (EIGHTS ? 0 : offset & column_mask)) >= columns; };

    {
        const uint4* from = data + 2 * static_cast<u64>(distance(own_column, own >> cols, load_reversed));
        auto load = [&](u32* value, u32 offset) {
            const uint4* element = from + 2 * static_cast<u64>(distance(offset & column_mask, offset >> cols, load_reversed));
            uint4 a = make_uint4(0, 0, 0, 0), b = a;
            if (!outside(offset)) a = element[0], b = element[1];
            put(value, a, b);
        };
        if (t.pre0) {
            const TableShape shape0(pre_shape & 0xffff), shape1(pre_shape >> 16);
            const u32 digit = own >> cols, start = swizzle(own);
            const u32 base0 = (digit << shape0.bits) + shape0.column(own_low), base1 = (digit << shape1.bits) + shape1.column(own_low);
#pragma unroll 1
            for (u32 e = 0; e < 8; e++) {
                const u32 offset = input_offset(e), step = offset >> cols;
                u32 value[8];
                load(value, offset);
                const uint4* table = t.pre0;
                u32 entry = base0 + (step << shape0.bits);
#pragma unroll 1
                for (;;) {
                    Twiddle w;
                    w.load(table, entry);
                    twiddle_mul(value, w.low, w.high);
                    if (table == t.pre1 || !t.pre1) break;
                    table = t.pre1;
                    entry = base1 + (step << shape1.bits);
                }
                uint4* at = planes + (start ^ swizzle(offset));
                at[0] = quad(value);
                at[MAX_TILE] = quad(value + 4);
            }
#pragma unroll
            for (u32 e = 0; e < 8; e++) {
                const uint4* at = planes + (start ^ swizzle(input_offset(e)));
                put(x[e], at[0], at[MAX_TILE]);
            }
        } else {
#pragma unroll
            for (u32 e = 0; e < 8; e++) load(x[e], input_offset(e));
        }
    }

    bool second = false;
    for (;;) {
        small_transforms<EIGHTS>(x, rho);
        m -= rho;
        set_unit(unit);
        const bool inner = m > 0, between = t.roots_b && !second;
        const u32 start = swizzle(own);
        const u64 first = 2 * static_cast<u64>(distance(own_column, own >> cols, store_natural));
        auto element = [&](u32 offset) {
            return first + 2 * static_cast<u64>(distance(offset & column_mask, offset >> cols, store_natural));
        };
        auto store = [&](const u32* value, u32 offset) {
            if (!outside(offset)) {
                data[element(offset)] = quad(value);
                data[element(offset) + 1] = quad(value + 4);
            }
        };
        const bool to_memory = !inner && !between;
        const uint4* table0 = inner ? roots : between ? t.mid : t.post0;
        if (to_memory && !table0) {
#pragma unroll
            for (u32 e = 0; e < 8; e++) {
                reduce_once32<FrParams>(x[e], x[e]);
                if constexpr (POINTWISE) {
                    const u32 offset = output_offset(e);
                    if (outside(offset)) continue;
                    multiply_in(product, element(offset), x[e]);
                } else {
                    store(x[e], output_offset(e));
                }
            }
            return;
        }
#pragma unroll
        for (u32 e = 0; e < 8; e++) {
            uint4* at = planes + (start ^ swizzle(output_offset(e)));
            at[0] = quad(x[e]);
            at[MAX_TILE] = quad(x[e] + 4);
        }
        const uint4* next_table = to_memory ? t.post1 : nullptr;
        u32 shapes = post_shape;
#pragma unroll 1
        for (const uint4* table = table0; table; table = next_table, next_table = nullptr, shapes >>= 16) {
            // entry of value e: base + frequency stride, of the whole digit's frequency or, inside the digit, of the small one
            const TableShape shape(shapes & 0xffff);
            const u32 base = inner ? 0 : (reverse_bits(own >> cols, digits) << shape.bits) + shape.column(own_low);
            const u32 stride = inner ? ((own >> cols) & ((1u << m) - 1)) << (digits - m - rho) : 1u << (digits - rho + shape.bits);
            auto entry = [&](u32 e) {
                const u32 other = EIGHTS || inner ? 0 : reverse_bits(group(e, cols) >> cols, digits) << shape.bits;
                return base + frequency(e) * stride + other;
            };
            const bool leave = to_memory && !next_table;
            // frequency 0 inside the digit: nothing to multiply
            u32 e = inner ? 1 : 0;
            Twiddle w;
            w.load(table, entry(e));
#pragma unroll 1
            do {
                const u32 offset = output_offset(e);
                uint4* at = planes + (start ^ swizzle(offset));
                u32 value[8];
                put(value, at[0], at[MAX_TILE]);
                e++;
                Twiddle ahead;
                ahead.load(table, entry(e & 7));
                twiddle_mul(value, w.low, w.high);
                w = ahead;
                if (leave) {
                    store(value, offset);
                } else {
                    at[0] = quad(value);
                    at[MAX_TILE] = quad(value + 4);
                }
            } while (e < 8);
        }
        if (to_memory) return;

        __syncthreads();
        if (!inner) {
            second = true;
            m = digits;
            roots = t.roots_b;
            unit = unit_b;
        }
        rho = EIGHTS || m >= 3 ? 3 : m;
        own = open_gap(thread, cols + m - rho, rho);
        auto natural = [&](u32 place) { return (place & column_mask) | reverse_bits(place >> cols, digits) << cols; };
        const u32 from = swizzle(inner ? own : natural(own));
#pragma unroll
        for (u32 e = 0; e < 8; e++) {
            const u32 offset = input_offset(e);
            const uint4* at = planes + (from ^ swizzle(inner ? offset : natural(offset)));
            put(x[e], at[0], at[MAX_TILE]);
        }
        // the second transform's first values come from places that other threads write next
        if (!inner) __syncthreads();
    }
}

// geometry: log_n, lo, digits, cols, a byte each from the lowest; mode: bit 0 load_reversed, bit 1 store_natural, bits 4..6 and
// 8..10 the units of the two roots: which power of 7^((r-1)/8) their eighth roots are.
#define NTT_PASS(name, eights, pointwise)                                                                                      \
    CUZK_KERNEL(PASS_THREADS, PASS_BLOCKS)                                                                                     \
    name(uint4* __restrict__ data, u64 batch_stride, const uint4* __restrict__ roots_a, const uint4* __restrict__ roots_b,     \
         const uint4* __restrict__ pre0, const uint4* __restrict__ pre1, const uint4* __restrict__ post0,                      \
         const uint4* __restrict__ post1, const uint4* __restrict__ mid, u32 geometry, u32 mode, u32 pre_shape,                \
         u32 post_shape, uint4* a, const uint4* b) {                                                                           \
        CUZK_DYNAMIC_SHARED(uint4, planes);                                                                                    \
        transform_pass<eights, pointwise>(                                                                                     \
            planes, data + 2 * batch_stride * blockIdx.y, {roots_a, roots_b, pre0, pre1, post0, post1, mid}, {a, b},           \
            geometry & 255, geometry >> 8 & 255, geometry >> 16 & 255, geometry >> 24, mode & 1, mode >> 1 & 1, mode >> 4 & 7, \
            mode >> 8 & 7, pre_shape, post_shape);                                                                             \
    }
NTT_PASS(ntt_pass_eights, true, false)
NTT_PASS(ntt_pass_mixed, false, false)
NTT_PASS(ntt_pass_eights_pointwise, true, true)
NTT_PASS(ntt_pass_mixed_pointwise, false, true)

// A table of split twiddles: entry (k << bits) + l = scale row^k column^l cross^(k l), all Montgomery; k < 2^(log_size - bits).
CUZK_KERNEL(128, 4)
ntt_table(uint4* __restrict__ table, u32 log_size, u32 bits, const Fr* __restrict__ bases) {
    u32 index = global_thread();
    if (index >> log_size) return;
    u32 k = index >> bits, l = index & ((1u << bits) - 1);
    Fr value = bases[0];
    u64 exponents[3] = {k, l, static_cast<u64>(k) * l};
    for (int i = 0; i < 3; i++) {
        Fr power = bases[1 + i];
        for (u64 rest = exponents[i]; rest; rest >>= 1) {
            if (rest & 1) value = value * power;
            power = power.sqr();
        }
    }
    Fr shift = Fr::zero();  // 2^128 as an integer: w 2^256 * 2^128 / 2^256
    shift.v[4] = 1;
    Fr low = value * shift;
    uint4* out = table + 4 * static_cast<u64>(index);
    out[0] = quad(low.v);
    out[1] = quad(low.v + 4);
    out[2] = quad(value.v);
    out[3] = quad(value.v + 4);
}

// Bit reversal of the index in place. The index is cut into high (edge bits), middle and low (edge bits): tile `middle` changes
// places with tile reverse(middle), each through shared memory, so that memory sees rows of 2^edge elements. Neighbouring threads
// take the two halves of an element: a warp reads and writes 512 bytes in a row.
CUZK_KERNEL(512, 4)
ntt_bit_reverse(uint4* __restrict__ data, u64 batch_stride, u32 log_n, u32 edge) {
    CUZK_DYNAMIC_SHARED(uint4, tiles);
    const u32 side = 1u << edge, middle_bits = log_n - 2 * edge, size = 2 * side * side;
    const u32 middle = blockIdx.x, mirror = reverse_bits(middle, middle_bits);
    if (mirror < middle) return;
    data += 2 * batch_stride * blockIdx.y;
    const u32 half = threadIdx.x & 1, column = (threadIdx.x >> 1) & (side - 1), row = threadIdx.x >> (edge + 1);
    const u64 place = (static_cast<u64>(row) << (log_n - edge)) + column;
    const u64 here = 2 * (place + (static_cast<u64>(middle) << edge)) + half;
    const u64 there = 2 * (place + (static_cast<u64>(mirror) << edge)) + half;
    // rows rotated by their reversed number, so that reading down a column in reversed order meets all banks
    const u32 row_reversed = reverse_bits(row, edge), column_reversed = reverse_bits(column, edge);
    const u32 at = 2 * (row * side + ((column + row_reversed) & (side - 1))) + half;
    tiles[at] = data[here];
    tiles[at + size] = data[there];
    __syncthreads();
    const u32 from = 2 * (column_reversed * side + ((row_reversed + column) & (side - 1))) + half;
    data[there] = tiles[from];
    if (mirror != middle) data[here] = tiles[from + size];
}

}  // namespace cuzk

// SHA-256 blocks with every bit that their circuit has, in the circuit's order (cuzk/circuits/gadgets/sha256.py): results of
// xor, ch and maj, and the bits of sums. Constants fold as they do there, so a block with constant bits has fewer variables.
#include <cstring>

#include "../abi/abi.hpp"

namespace {

using namespace cuzk;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 ALL = 0xffffffff;

// 32 Booleans: their values; which are variables, and which of these are negated. The others are constants.
struct Word {
    u32 value, variable, negated;
};

// Appends bits to zeroed memory, from any bit on.
class Bits {
  public:
    Bits(u64* words, std::size_t first) : words_(words), at_(first) {}
    void put(u64 bits, unsigned count) {
        const std::size_t word = at_ / 64, shift = at_ % 64;
        words_[word] |= bits << shift;
        if (shift + count > 64) words_[word + 1] |= bits >> (64 - shift);
        at_ += count;
    }
    std::size_t at() const { return at_; }

  private:
    u64* words_;
    std::size_t at_;
};

inline u32 rotated(u32 x, int n) { return x >> n | x << (32 - n); }
inline Word rotr(const Word& x, int n) { return {rotated(x.value, n), rotated(x.variable, n), rotated(x.negated, n)}; }
inline Word shr(const Word& x, int n) { return {x.value >> n, x.variable >> n, x.negated >> n}; }

// One Boolean: for words that are not all variables.
struct Bit {
    bool value, variable, negated;
    Bit operator!() const { return {!value, variable, variable && !negated}; }
};
inline Bit bit(const Word& w, int i) { return {(w.value >> i & 1) != 0, (w.variable >> i & 1) != 0, (w.negated >> i & 1) != 0}; }
inline void set(Word& w, int i, const Bit& b) {
    w.value |= static_cast<u32>(b.value) << i;
    w.variable |= static_cast<u32>(b.variable) << i;
    w.negated |= static_cast<u32>(b.negated) << i;
}

Word exclusive_or(Bits& out, const Word& a, const Word& b) {
    const u32 both = a.variable & b.variable, mixed = a.negated ^ b.negated, value = a.value ^ b.value;
    if (both == ALL) {
        out.put(value ^ mixed, 32);
        return {value, ALL, mixed};
    }
    for (int i = 0; i < 32; i++)
        if (both >> i & 1) out.put((value ^ mixed) >> i & 1, 1);
    // of a variable and a constant: the variable, negated once more where the constant is one
    const u32 one = (a.variable ^ b.variable), constant = (a.value & ~a.variable) | (b.value & ~b.variable);
    return {value, a.variable | b.variable, (both & mixed) | (one & (a.negated ^ b.negated ^ constant))};
}

Bit conjunction(Bits& out, const Bit& a, const Bit& b) {
    if (!a.variable) return a.value ? b : a;
    if (!b.variable) return b.value ? a : b;
    const bool value = a.value && b.value;
    out.put(value, 1);
    return {value, true, false};
}

Bit choice(Bits& out, const Bit& a, const Bit& b, const Bit& c) {
    if (!a.variable && !b.variable && !c.variable) return a.value ? b : c;
    if (!a.variable && !a.value) return c;
    if (!b.variable && !b.value) return conjunction(out, !a, c);
    if (!c.variable && !c.value) return conjunction(out, a, b);
    if (!b.variable) return !conjunction(out, !a, !c);
    if (!c.variable) return !conjunction(out, a, !b);
    const bool value = a.value ? b.value : c.value;
    out.put(value, 1);
    return {value, true, false};
}

Word choice(Bits& out, const Word& a, const Word& b, const Word& c) {
    if ((a.variable & b.variable & c.variable) == ALL) {
        const u32 value = ((b.value ^ c.value) & a.value) ^ c.value;
        out.put(value, 32);
        return {value, ALL, 0};
    }
    Word made{0, 0, 0};
    for (int i = 0; i < 32; i++) set(made, i, choice(out, bit(a, i), bit(b, i), bit(c, i)));
    return made;
}

Bit majority(Bits& out, const Bit& a, const Bit& b, const Bit& c) {
    if (!a.variable && !b.variable && !c.variable) return {a.value + b.value + c.value >= 2, false, false};
    if (!a.variable && !a.value) return conjunction(out, b, c);
    if (!b.variable && !b.value) return conjunction(out, a, c);
    if (!c.variable && !c.value) return conjunction(out, a, b);
    if (!c.variable) return !conjunction(out, !a, !b);
    if (!b.variable) return !conjunction(out, !a, !c);
    if (!a.variable) return !conjunction(out, !b, !c);
    const bool both = b.value && c.value, value = (a.value && (b.value || c.value)) || both;
    out.put(static_cast<u64>(value) | static_cast<u64>(both) << 1, 2);
    return {value, true, false};
}

// Bit i of x at bit 2 i.
inline u64 spread(u32 x) {
    u64 v = x;
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
    v = (v | v << 2) & 0x3333333333333333;
    return (v | v << 1) & 0x5555555555555555;
}

Word majority(Bits& out, const Word& a, const Word& b, const Word& c) {
    if ((a.variable & b.variable & c.variable) == ALL) {
        const u32 both = b.value & c.value, value = (a.value & (b.value | c.value)) | both;
        out.put(spread(value) | spread(both) << 1, 64);  // the majority, then b and c of it, bit by bit
        return {value, ALL, 0};
    }
    Word made{0, 0, 0};
    for (int i = 0; i < 32; i++) set(made, i, majority(out, bit(a, i), bit(b, i), bit(c, i)));
    return made;
}

template <int N>
Word sum(Bits& out, const Word (&words)[N]) {
    u64 total = 0;
    u32 variable = 0;
    for (const Word& w : words) {
        total += w.value;
        variable |= w.variable;
    }
    if (!variable) return {static_cast<u32>(total), 0, 0};
    const unsigned width = 64 - static_cast<unsigned>(__builtin_clzll(N * static_cast<u64>(ALL)));
    out.put(total, width);
    return {static_cast<u32>(total), ALL, 0};
}

Word xor3(Bits& out, const Word& a, const Word& b, const Word& c) { return exclusive_or(out, exclusive_or(out, a, b), c); }

void compress(Bits& out, u32* next, const u32* input, const u32* variable, const u32* negated, const u32* constants) {
    Word state[8], w[64];
    for (int i = 0; i < 8; i++) state[i] = {input[i], variable[i], negated[i]};
    for (int i = 0; i < 16; i++) w[i] = {input[8 + i], variable[8 + i], negated[8 + i]};
    for (int i = 16; i < 64; i++) {
        const Word &x = w[i - 15], &y = w[i - 2];
        const Word s0 = xor3(out, rotr(x, 7), rotr(x, 18), shr(x, 3));
        const Word s1 = xor3(out, rotr(y, 17), rotr(y, 19), shr(y, 10));
        w[i] = sum<4>(out, {w[i - 16], s0, w[i - 7], s1});
    }
    Word a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    // Sums are made when their word is used, with what is added to them by then; those of round 0 are the state's own words.
    Word first[5], second[2], last_d{};
    for (int i = 0; i < 64; i++) {
        if (i) e = sum<6>(out, {first[0], first[1], first[2], first[3], first[4], last_d});
        const Word s1 = xor3(out, rotr(e, 6), rotr(e, 11), rotr(e, 25));
        const Word chosen = choice(out, e, f, g);
        if (i) a = sum<7>(out, {first[0], first[1], first[2], first[3], first[4], second[0], second[1]});
        const Word s0 = xor3(out, rotr(a, 2), rotr(a, 13), rotr(a, 22));
        second[1] = majority(out, a, b, c);
        second[0] = s0;
        first[0] = h, first[1] = s1, first[2] = chosen, first[3] = {constants[i], 0, 0}, first[4] = w[i];
        last_d = d;
        h = g, g = f, f = e, d = c, c = b, b = a;
    }
    const Word made[8] = {
        sum<8>(out, {first[0], first[1], first[2], first[3], first[4], second[0], second[1], state[0]}),
        sum<2>(out, {state[1], b}),
        sum<2>(out, {state[2], c}),
        sum<2>(out, {state[3], d}),
        sum<7>(out, {first[0], first[1], first[2], first[3], first[4], last_d, state[4]}),
        sum<2>(out, {state[5], f}),
        sum<2>(out, {state[6], g}),
        sum<2>(out, {state[7], h}),
    };
    for (int i = 0; i < 8; i++) next[i] = made[i].value;
}

}  // namespace

// For each of n instances: next[k] (8 words) of input[k] (8 words of state, 16 of block), and its `count` variables from bit
// `first` on of its `row` words of `bits`, which are zero there. `variable`, `negated`: masks of the 24 words, the same for all.
CUZK_API std::int64_t cuzk_sha256_trace(u32* next, const u32* input, u64 n, const u32* variable, const u32* negated,
                                        const u32* constants, u64* bits, u64 row, u64 first, u64 count) {
    return guarded([&]() -> std::int64_t {
        for (u64 k = 0; k < n; k++) {
            Bits out(bits + k * row, first);
            compress(out, next + 8 * k, input + 24 * k, variable, negated, constants);
            if (out.at() != first + count) return FAULT;
        }
        return DONE;
    });
}

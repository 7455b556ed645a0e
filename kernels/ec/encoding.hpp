// The ZCash encoding of points: big-endian std coordinates, flags in the top three bits of the first byte
// (0x80 compressed, 0x40 infinity, 0x20 the larger y), G2 with c1 first. "Larger" compares c1, then c0, with (q-1)/2.
#pragma once

#include "membership.hpp"

namespace cuzk {

constexpr unsigned char FLAG_COMPRESSED = 0x80, FLAG_INFINITY = 0x40, FLAG_LARGER = 0x20, FLAGS = 0xe0;

// q - 2, (q + 1) / 4 and comparisons work on std limbs.
inline bool larger_half(const Fq& mont) {
    Fq a = mont.to_std(), n = (-mont).to_std();
    for (int i = FqParams::N - 1; i >= 0; i--)
        if (a.v[i] != n.v[i]) return a.v[i] > n.v[i];
    return false;
}
inline bool larger_half(const Fq2& a) { return a.c1.is_zero() ? larger_half(a.c0) : larger_half(a.c1); }

// Square root; q = 3 mod 4.
inline bool square_root(Fq& r, const Fq& a) {
    u64 e[FqParams::N];
    u128 carry = 1;
    for (int i = 0; i < FqParams::N; i++) {
        carry += FqParams::mod(i);
        e[i] = static_cast<u64>(carry);
        carry >>= 64;
    }
    for (int i = 0; i < FqParams::N; i++) e[i] = e[i] >> 2 | (i + 1 < FqParams::N ? e[i + 1] << 62 : 0);
    Fq s = a.pow(e, FqParams::N);
    r = s;
    return s.sqr() == a;
}
// With norm n^2 = a0^2 + a1^2: x0^2 = (a0 + n) / 2 or (a0 - n) / 2, x1 = a1 / (2 x0).
inline bool square_root(Fq2& r, const Fq2& a) {
    if (a.c1.is_zero()) {
        Fq s;
        if (square_root(s, a.c0))
            r = {s, Fq::zero()};
        else if (square_root(s, -a.c0))
            r = {Fq::zero(), s};
        else
            return false;
        return true;
    }
    Fq n, x0;
    if (!square_root(n, a.norm())) return false;
    Fq half = inverse(Fq::one().dbl());
    if (!square_root(x0, (a.c0 + n) * half) && !square_root(x0, (a.c0 - n) * half)) return false;
    r = {x0, a.c1 * inverse(x0.dbl())};
    return r.sqr() == a;
}

inline void write_be(unsigned char* out, const Fq& mont) {
    Fq s = mont.to_std();
    for (int i = 0; i < 48; i++) out[47 - i] = static_cast<unsigned char>(s.v[i / 8] >> (8 * (i % 8)));
}
inline void write_be(unsigned char* out, const Fq2& a) {
    write_be(out, a.c1);
    write_be(out + 48, a.c0);
}
// False if the number is not below q. The flag bits of the first byte are masked off.
inline bool read_be(Fq& a, const unsigned char* in, bool flags) {
    a = Fq::zero();
    for (int i = 0; i < 48; i++) {
        u64 byte = i == 47 && flags ? in[0] & static_cast<unsigned char>(~FLAGS) : in[47 - i];
        a.v[i / 8] |= byte << (8 * (i % 8));
    }
    if (!canonical(a)) return false;
    a = a.to_mont();
    return true;
}
inline bool read_be(Fq2& a, const unsigned char* in, bool flags) { return read_be(a.c1, in, flags) && read_be(a.c0, in + 48, false); }

inline bool only_flag(const unsigned char* in, std::size_t size, unsigned char flag) {
    unsigned char any = in[0] ^ flag;
    for (std::size_t i = 1; i < size; i++) any |= in[i];
    return any == 0;
}

// sizeof(F) bytes compressed, 2 sizeof(F) uncompressed.
template <class F>
inline void compress(unsigned char* out, const Affine<F>& p) {
    std::memset(out, 0, sizeof(F));
    if (!p.is_infinity()) write_be(out, p.x);
    out[0] |= FLAG_COMPRESSED | (p.is_infinity() ? FLAG_INFINITY : larger_half(p.y) ? FLAG_LARGER : 0);
}
// False if the bytes are not the encoding of a point on the curve. The subgroup is not checked.
template <class F>
inline bool decompress(Affine<F>& p, const unsigned char* in) {
    if (!(in[0] & FLAG_COMPRESSED)) return false;
    p = Affine<F>::infinity();
    if (in[0] & FLAG_INFINITY) return only_flag(in, sizeof(F), FLAG_COMPRESSED | FLAG_INFINITY);
    if (!read_be(p.x, in, true)) return false;
    F y;
    if (!square_root(y, p.x.sqr() * p.x + curve_b(static_cast<const F*>(nullptr)))) return false;
    p.y = larger_half(y) == ((in[0] & FLAG_LARGER) != 0) ? y : -y;
    return true;
}
template <class F>
inline void to_uncompressed(unsigned char* out, const Affine<F>& p) {
    std::memset(out, 0, 2 * sizeof(F));
    if (p.is_infinity()) {
        out[0] = FLAG_INFINITY;
        return;
    }
    write_be(out, p.x);
    write_be(out + sizeof(F), p.y);
}
// False if a coordinate is not below q or the flags are wrong. Neither the curve nor the subgroup is checked.
template <class F>
inline bool from_uncompressed(Affine<F>& p, const unsigned char* in) {
    p = Affine<F>::infinity();
    if (in[0] & FLAG_INFINITY) return only_flag(in, 2 * sizeof(F), FLAG_INFINITY);
    return !(in[0] & FLAGS) && read_be(p.x, in, true) && read_be(p.y, in + sizeof(F), false) && !p.is_infinity();
}

}  // namespace cuzk

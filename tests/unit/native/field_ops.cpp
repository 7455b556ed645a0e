// Test program: pairs of field elements (raw Montgomery bytes, Fr or Fq) on stdin; for each pair a*b, a^2, a+b, a-b, -a, a^-1 and,
// in Fq, the results of the same pair as Fq2 and as points, on stdout. Built with each back end of fp.hpp.
#include <cstdio>
#include <cstring>

#include "ec/curve.hpp"

using namespace cuzk;

template <class F>
static void write(const F& x) {
    std::fwrite(static_cast<const void*>(&x), sizeof(F), 1, stdout);
}

template <class F>
static void field_pair(const F& a, const F& b) {
    write(a * b);
    write(a.sqr());
    write(a + b);
    write(a - b);
    write(-a);
    write(a.inverse_fermat());
}

// Points n G made by each formula; written as XYZZ.
template <class F>
static void points(const Affine<F>& g) {
    Xyzz<F> one = Xyzz<F>::from(g), two, sum = one, zero = one, minus = -one;
    Xyzz<F>::dbl_affine(two, g);
    write(two);
    for (int i = 0; i < 4; i++) {
        sum.add(g);  // the first is a doubling
        write(sum);
    }
    sum.add(two);
    write(sum);
    sum.dbl();
    write(sum);
    zero.add(minus);
    write(zero);
    two.add(two);
    write(two);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    if (!std::strcmp(argv[1], "fr")) {
        Fr p[2];
        while (std::fread(p, sizeof p, 1, stdin) == 1) field_pair(p[0], p[1]);
    } else if (!std::strcmp(argv[1], "fq")) {
        Fq p[2];
        while (std::fread(p, sizeof p, 1, stdin) == 1) field_pair(p[0], p[1]);
    } else if (!std::strcmp(argv[1], "fq2")) {
        Fq2 p[2];
        while (std::fread(p, sizeof p, 1, stdin) == 1) field_pair(p[0], p[1]);
    } else {
        points(g1_generator());
        points(g2_generator());
    }
    return 0;
}

// Every parallel function of the host library, called by several threads at once, each call with several threads of its own; results
// must equal those of one thread. Built with -fsanitize=thread: a race ends it with a report.
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using u64 = std::uint64_t;
using u32 = std::uint32_t;
extern "C" {
std::int64_t cuzk_fr_mul(char*, const char*, const char*, u64, int, u64);
std::int64_t cuzk_fr_inv(char*, const char*, u64, u64);
std::int64_t cuzk_fr_from_std(char*, const char*, u64, u64);
std::int64_t cuzk_fr_dot(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_fr_powers(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_fr_first_not_below_r(const char*, u64, u64);
std::int64_t cuzk_scan_witness(unsigned char*, u32*, const char*, u64, u64);
std::int64_t cuzk_nonzero_rows(unsigned char*, const char*, u64, u64, u64);
std::int64_t cuzk_ntt(char*, int, int, int, const char*, u64);
std::int64_t cuzk_matvec_u32(char*, const u64*, u64, const u32*, const u32*, u64, const char*, u64, const char*, u64, u64);
std::int64_t cuzk_first_unsatisfied(const char*, const char*, const char*, u64, u64);
std::int64_t cuzk_g1_generator(char*);
std::int64_t cuzk_g2_generator(char*);
std::int64_t cuzk_g1_fixed_base(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_g2_fixed_base(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_g1_msm(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_g2_msm(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_g1_sum(char*, const char*, const unsigned char*, u64, u64);
std::int64_t cuzk_g1_scale(char*, const char*, const char*, u64, u64);
std::int64_t cuzk_g1_check(const char*, u64, int, u64);
std::int64_t cuzk_g1_compress(unsigned char*, const char*, u64, u64);
std::int64_t cuzk_g1_decompress(char*, const unsigned char*, u64, u64);
std::int64_t cuzk_g1_sparse_combine(char*, const u64*, u64, const u32*, const u32*, u64, const char*, u64, const char*, u64, u64);
std::int64_t cuzk_guard_add(u64, u64);
std::int64_t cuzk_guard_faults(u64);
std::int64_t cuzk_guard_remove(u64);
}

namespace {

constexpr u64 N = 1 << 11, POINTS = 1 << 9;
using Buffer = std::vector<char>;

Buffer scalars(u64 n, u64 seed) {
    Buffer out(32 * n);
    for (u64 i = 0; i < n; i++)
        for (int limb = 0; limb < 4; limb++) {
            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            const u64 word = limb == 3 ? seed >> 2 : seed;
            std::memcpy(out.data() + 32 * i + 8 * limb, &word, 8);
        }
    return out;
}

Buffer ones(u64 n) {  // a witness as circuits have it: zeros, ones and a few others
    Buffer out = scalars(n, 7);
    for (u64 i = 0; i < n; i++)
        if (i % 5) {
            std::memset(out.data() + 32 * i, 0, 32);
            out[32 * i] = i % 2;
        }
    return out;
}

const unsigned char* bytes(const Buffer& b) { return reinterpret_cast<const unsigned char*>(b.data()); }
unsigned char* bytes(Buffer& b) { return reinterpret_cast<unsigned char*>(b.data()); }

struct Case {
    std::string name;
    std::function<Buffer(u64 threads)> run;
};

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
    const Buffer a = scalars(N, 1), b = scalars(N, 2), w = ones(N);
    Buffer g1(96), g2(192), mont(32 * N), p1(96 * POINTS), p2(192 * POINTS);
    cuzk_g1_generator(g1.data());
    cuzk_g2_generator(g2.data());
    cuzk_fr_from_std(mont.data(), a.data(), N, 1);
    cuzk_g1_fixed_base(p1.data(), g1.data(), a.data(), POINTS, 1);
    cuzk_g2_fixed_base(p2.data(), g2.data(), a.data(), POINTS, 1);
    Buffer packed(48 * POINTS);
    cuzk_g1_compress(bytes(packed), p1.data(), POINTS, 1);
    std::vector<u64> row_ptr(N + 1);
    std::vector<u32> col(4 * N), coef(4 * N);
    for (u64 i = 0; i <= N; i++) row_ptr[i] = 4 * i;
    for (u64 k = 0; k < 4 * N; k++) col[k] = (k * 2654435761u) % N, coef[k] = k % 5;
    std::vector<u32> columns(POINTS * 2), numbers(POINTS * 2);
    for (u64 k = 0; k < columns.size(); k++) columns[k] = (k * 7) % POINTS, numbers[k] = k % 5;
    const Buffer bitmap(POINTS / 8, 0x5a);

    const std::vector<Case> cases = {
        {"fr_mul", [&](u64 t) { Buffer o(32 * N); cuzk_fr_mul(o.data(), a.data(), b.data(), N, 1, t); return o; }},
        {"fr_inv", [&](u64 t) { Buffer o(32 * N); cuzk_fr_inv(o.data(), a.data(), N, t); return o; }},
        {"fr_dot", [&](u64 t) { Buffer o(32); cuzk_fr_dot(o.data(), a.data(), b.data(), N, t); return o; }},
        {"fr_powers", [&](u64 t) { Buffer o(32 * N); cuzk_fr_powers(o.data(), a.data(), b.data(), N, t); return o; }},
        {"fr_first_not_below_r", [&](u64 t) { return Buffer(1, cuzk_fr_first_not_below_r(a.data(), N, t) == -1); }},
        {"scan_witness", [&](u64 t) { Buffer o(N / 8 + 4 * N); const auto n = cuzk_scan_witness(bytes(o), reinterpret_cast<u32*>(o.data() + N / 8), w.data(), N, t);
                                      o.resize(N / 8 + 4 * n); return o; }},
        {"nonzero_rows", [&](u64 t) { Buffer o(N / 8); cuzk_nonzero_rows(bytes(o), w.data(), 4, N, t); return o; }},
        {"ntt", [&](u64 t) { Buffer o = mont; cuzk_ntt(o.data(), 11, 7, 0, nullptr, t); return o; }},
        {"inverse ntt on a coset", [&](u64 t) { Buffer o = mont; cuzk_ntt(o.data(), 11, 5, 1, b.data(), t); return o; }},
        {"matvec", [&](u64 t) { Buffer o(32 * N); cuzk_matvec_u32(o.data(), row_ptr.data(), N, col.data(), coef.data(), 4 * N, a.data(), 5, b.data(), N, t); return o; }},
        {"first_unsatisfied", [&](u64 t) { return Buffer(1, static_cast<char>(cuzk_first_unsatisfied(mont.data(), mont.data(), mont.data(), N, t))); }},
        {"g1_fixed_base", [&](u64 t) { Buffer o(96 * POINTS); cuzk_g1_fixed_base(o.data(), g1.data(), b.data(), POINTS, t); return o; }},
        {"g2_fixed_base", [&](u64 t) { Buffer o(192 * 64); cuzk_g2_fixed_base(o.data(), g2.data(), b.data(), 64, t); return o; }},
        {"g1_msm", [&](u64 t) { Buffer o(96); cuzk_g1_msm(o.data(), p1.data(), b.data(), POINTS, t); return o; }},
        {"g2_msm", [&](u64 t) { Buffer o(192); cuzk_g2_msm(o.data(), p2.data(), b.data(), POINTS, t); return o; }},
        {"g1_sum", [&](u64 t) { Buffer o(96); cuzk_g1_sum(o.data(), p1.data(), bytes(bitmap), POINTS, t); return o; }},
        {"g1_scale", [&](u64 t) { Buffer o(96 * 128); cuzk_g1_scale(o.data(), p1.data(), b.data(), 128, t); return o; }},
        {"g1_check", [&](u64 t) { return Buffer(1, cuzk_g1_check(p1.data(), POINTS, 1, t) == -1); }},
        {"g1_decompress", [&](u64 t) { Buffer o(96 * POINTS); cuzk_g1_decompress(o.data(), bytes(packed), POINTS, t); return o; }},
        {"g1_sparse_combine", [&](u64 t) { Buffer o(96 * POINTS / 4); cuzk_g1_sparse_combine(o.data(), row_ptr.data(), POINTS / 4, columns.data(), numbers.data(), columns.size(), a.data(), 5, p1.data(), POINTS, t); return o; }},
        {"guard", [&](u64) { char* p = static_cast<char*>(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                             const auto slot = cuzk_guard_add(reinterpret_cast<u64>(p), 4096); const Buffer o(1, static_cast<char>(cuzk_guard_faults(slot)));
                             cuzk_guard_remove(slot); munmap(p, 4096); return o; }},
    };
    std::vector<Buffer> wanted;
    for (const Case& one : cases) wanted.push_back(one.run(1));
    int wrong = 0;
    for (int round = 0; round < rounds; round++)
        for (std::size_t k = 0; k < cases.size(); k++) {
            std::vector<Buffer> got(3);
            std::vector<std::thread> callers;
            for (std::size_t c = 0; c < got.size(); c++)
                callers.emplace_back([&, c] { got[c] = cases[k].run(2 + c); });
            for (auto& caller : callers) caller.join();
            for (const Buffer& each : got)
                if (each != wanted[k]) std::printf("%s: another result with several threads\n", cases[k].name.c_str()), wrong++;
        }
    std::printf("%zu functions, %d rounds of 3 concurrent calls: %d wrong\n", cases.size(), rounds, wrong);
    return wrong ? 1 : 0;
}

#include "../abi/abi.hpp"
#include "ntt_host.hpp"

using namespace cuzk;

// In place; root: 5 or 7; coset: Montgomery shift or nullptr.
CUZK_API std::int64_t cuzk_ntt(char* data, int log_n, int root, int inverse, const char* coset, std::uint64_t threads) {
    return guarded([&]() -> std::int64_t {
        Fr w = root == 5 ? Fr::from_table([](int i) { return FrParams::root5(i); }) : Fr::from_table([](int i) { return FrParams::root7(i); });
        for (int i = log_n; i < FrParams::TWO_ADICITY; i++) w = w.sqr();
        Fr g;
        if (coset) std::memcpy(&g, coset, 32);
        Ntt(log_n, w, inverse != 0, coset ? &g : nullptr).run(data, threads);
        return DONE;
    });
}

// Any bytes as a sparse matrix, a witness and bitmaps: indices out of range are refused, nothing is read outside its array. Under
// AddressSanitizer and UndefinedBehaviorSanitizer; every array is its own allocation of the exact size.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

using u64 = std::uint64_t;
using u32 = std::uint32_t;
extern "C" std::int64_t cuzk_matvec_u32(char*, const u64*, u64, const u32*, const u32*, u64, const char*, u64, const char*, u64, u64);
extern "C" std::int64_t cuzk_matvec_u16(char*, const u64*, u64, const u32*, const std::uint16_t*, u64, const char*, u64, const char*, u64,
                                        u64);
extern "C" std::int64_t cuzk_g1_sparse_combine(char*, const u64*, u64, const u32*, const u32*, u64, const char*, u64, const char*, u64, u64);
extern "C" std::int64_t cuzk_scan_witness(unsigned char*, u32*, const char*, u64, u64);
extern "C" std::int64_t cuzk_gather_bits(unsigned char*, const unsigned char*, u64, const u32*, u64, u64, u64);
extern "C" std::int64_t cuzk_fr_take(char*, const char*, u64, const u32*, u64, u64);
extern "C" std::int64_t cuzk_fr_first_not_below_r(const char*, u64, u64);

namespace {

class Bytes {
  public:
    Bytes(const unsigned char* data, std::size_t size) : data_(data), size_(size) {}
    template <class T>
    std::unique_ptr<T[]> array(std::size_t n) {
        std::unique_ptr<T[]> out(new T[n]());
        const std::size_t wanted = n * sizeof(T), taken = std::min(wanted, size_);
        if (taken) std::memcpy(static_cast<void*>(out.get()), data_, taken);
        data_ += taken;
        size_ -= taken;
        return out;
    }
    unsigned small(unsigned below) { return below ? array<unsigned char>(1)[0] % below : 0; }

  private:
    const unsigned char* data_;
    std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    Bytes in(data, size);
    const u64 rows = in.small(9), nnz = in.small(17), wires = in.small(9), coefficients = 2 + in.small(4), threads = in.small(64) == 63 ? 3 : 1;
    const unsigned way = in.small(4);
    auto row_ptr = in.array<u64>(rows + 1);
    if (way & 1)
        for (u64 i = 0; i <= rows; i++) row_ptr[i] %= nnz + 2;  // mostly in range, so that what lies behind is reached
    auto col = in.array<u32>(nnz);
    auto coef = in.array<u32>(nnz);
    auto coef16 = in.array<std::uint16_t>(nnz);
    if (way & 2)
        for (u64 k = 0; k < nnz; k++) {
            col[k] %= wires + 1;
            coef[k] %= coefficients + 1;
            coef16[k] %= coefficients + 1;
        }
    auto table = in.array<char>(32 * coefficients);
    auto w = in.array<char>(32 * wires);
    std::unique_ptr<char[]> out(new char[32 * rows]);
    cuzk_matvec_u32(out.get(), row_ptr.get(), rows, col.get(), coef.get(), nnz, table.get(), coefficients, w.get(), wires, threads);
    cuzk_matvec_u16(out.get(), row_ptr.get(), rows, col.get(), coef16.get(), nnz, table.get(), coefficients, w.get(), wires, threads);
    if (in.small(8) == 7) {  // a thousand times as much work as all the rest
        std::unique_ptr<char[]> points(new char[96 * wires]()), sums(new char[96 * rows]);
        cuzk_g1_sparse_combine(sums.get(), row_ptr.get(), rows, col.get(), coef.get(), nnz, table.get(), coefficients, points.get(),
                               wires, threads);
    }
    std::unique_ptr<unsigned char[]> ones(new unsigned char[(wires + 7) / 8]()), bits(new unsigned char[(nnz + 7) / 8]());
    std::unique_ptr<u32[]> tail(new u32[wires]);
    cuzk_scan_witness(ones.get(), tail.get(), w.get(), wires, threads);
    cuzk_gather_bits(bits.get(), ones.get(), wires, col.get(), 0, nnz, threads);
    cuzk_gather_bits(bits.get(), ones.get(), wires, nullptr, in.small(20), nnz, threads);
    std::unique_ptr<char[]> taken(new char[32 * nnz]);
    cuzk_fr_take(taken.get(), w.get(), wires, col.get(), nnz, threads);
    cuzk_fr_first_not_below_r(w.get(), wires, threads);
    return 0;
}

// Sparse matrix times witness. Most rows of R1CS are short (PoRep: one to three nonzeros) and get a thread each: neighbouring rows
// read neighbouring columns. A few are long and would hold their warp (PoRep: a thousandth of A's rows, of 840 nonzeros, hold a
// third of them); the host lists them, and they get a warp each, the longest a block.
//
// The result has the form (std or Montgomery) of the field values; where bits occur, that of the table, so Montgomery.
#include "elements.cuh"

namespace cuzk {

constexpr u32 ROW_THREADS = 128;

// The blocks of a launch: `rows` rows in blocks of a thread a row, then warps and blocks for the listed rows, in this order.
struct Schedule {
    u32 rows, short_row;  // rows above `short_row` nonzeros are listed
    const u32* listed;
    u32 by_warp, by_block;
};

// sum over groups of `width` threads; the result is each group's first thread's. All threads of a block call.
CUZK_DEVICE Fr group_sum(Fr value, u32 width) {
    __shared__ uint4 parts[2 * ROW_THREADS];
    for (u32 half = width / 2; half > 0; half /= 2) {
        store_fr(parts, threadIdx.x, value);
        __syncthreads();
        if (threadIdx.x % width < half) value = value + load_fr(parts, threadIdx.x + half);
        __syncthreads();
    }
    return value;
}

// out[row] = sum over k in [ptr[row], ptr[row + 1]) of what add(acc, k) adds
template <class Pointer, class Add>
CUZK_DEVICE void multiply_rows(const Schedule& s, const Pointer* ptr, Add add, uint4* out) {
    const u32 row_blocks = (s.rows + ROW_THREADS - 1) / ROW_THREADS;
    Fr acc = Fr::zero();
    if (blockIdx.x < row_blocks) {
        const u32 row = global_thread();
        if (row >= s.rows) return;
        const Pointer end = ptr[row + 1];
        Pointer k = ptr[row];
        if (end - k > s.short_row) return;
        for (; k < end; k++) add(acc, k);
        store_fr(out, row, acc);
        return;
    }
    const u32 block = blockIdx.x - row_blocks, warp_blocks = (s.by_warp + ROW_THREADS / 32 - 1) / (ROW_THREADS / 32);
    const bool by_warp = block < warp_blocks;
    const u32 width = by_warp ? 32 : ROW_THREADS;
    const u32 index = by_warp ? block * (ROW_THREADS / 32) + threadIdx.x / 32 : s.by_warp + block - warp_blocks;
    const bool mine = index < (by_warp ? s.by_warp : s.by_warp + s.by_block);
    const u32 row = mine ? s.listed[index] : 0;
    if (mine)
        for (Pointer k = ptr[row] + threadIdx.x % width; k < ptr[row + 1]; k += width) add(acc, k);
    acc = group_sum(acc, width);
    if (mine && threadIdx.x % width == 0) store_fr(out, row, acc);
}

#define CSR_KERNELS(suffix, Id)                                                                                                 \
    CUZK_KERNEL(ROW_THREADS, 8)                                                                                                 \
    matvec_fields_##suffix(const u64* row_ptr, const u32* col, const Id* coef_id, const uint4* table, const uint4* values,      \
                           u32 rows, u32 short_row, const u32* listed, u32 by_warp, u32 by_block, uint4* out) {                 \
        multiply_rows(Schedule{rows, short_row, listed, by_warp, by_block}, row_ptr,                                            \
                      [=](Fr& acc, u64 k) { add_field(acc, table, coef_id[k], load_fr(values, col[k])); }, out);                \
    }                                                                                                                           \
    CUZK_KERNEL(ROW_THREADS, 8)                                                                                                 \
    matvec_bits_##suffix(const u64* row_ptr, const u32* col, const Id* coef_id, const uint4* table, const u64* ones,            \
                         const u64* mask, const u32* rank, const uint4* fields, u32 rows, u32 short_row, const u32* listed,     \
                         u32 by_warp, u32 by_block, uint4* out) {                                                               \
        const BitValues w{ones, mask, rank, fields};                                                                            \
        multiply_rows(Schedule{rows, short_row, listed, by_warp, by_block}, row_ptr,                                            \
                      [=](Fr& acc, u64 k) { add_term(acc, table, coef_id[k], w, col[k]); }, out);                               \
    }
CSR_KERNELS(u16, unsigned short)
CSR_KERNELS(u32, u32)

// Rows of one part of a template, and which of its aux variables are field elements.
struct TemplatePart {
    const u32* row_ptr;
    const int* col;
    const unsigned short* coef_id;
    const u64* mask;
    const u32* rank;
    const u32* listed;
    u64 rows, by_warp, by_block;
    u64 words, fields;  // words of a copy's bits, field elements of a copy
};

// Columns: [0, shared_inputs) inputs and [.., shared) aux of the prefix; [.., body_inputs) parameters of the copy, which are columns
// below `shared` (choices: those of copy 0, of copy 1, ...); [.., body_aux) inputs and the rest aux of the body's copy.
struct TemplateShape {
    TemplatePart prefix, body;
    u64 shared_inputs, shared, body_inputs, body_aux;
    const u32* choices;
};

// out: the prefix's rows, then those of every copy. part 0: the prefix; part 1: copy blockIdx.y of the body.
// inputs: all inputs, ONE first. Bits and fields: the prefix's, and one after another those of the copies.
CUZK_KERNEL(ROW_THREADS, 8)
matvec_template(const TemplateShape* shape, u32 part, u32 short_row, const uint4* table, const uint4* inputs, const u64* prefix_bits,
                const uint4* prefix_fields, const u64* body_bits, const uint4* body_fields, uint4* out) {
    const TemplatePart &prefix = shape->prefix, &body = shape->body, &rows = part ? body : prefix;
    const u32 copy = blockIdx.y;
    const BitValues shared{prefix_bits, prefix.mask, prefix.rank, prefix_fields};
    const BitValues own{body_bits + copy * body.words, body.mask, body.rank, body_fields + 2 * copy * body.fields};
    const u32 shared_inputs = shape->shared_inputs, shared_end = shape->shared;
    const u32 body_inputs = shape->body_inputs, body_aux = shape->body_aux;
    const u32 first_input = shared_inputs + copy * (body_aux - body_inputs);
    const u32* choices = shape->choices + static_cast<u64>(copy) * (body_inputs - shared_end);
    const int* col = rows.col;
    const unsigned short* coef_id = rows.coef_id;
    auto add = [&](Fr& acc, u32 k) {
        u32 column = col[k];
        const u32 id = coef_id[k];
        if (column >= shared_end && column < body_inputs) column = choices[column - shared_end];
        if (column >= body_aux)
            add_term(acc, table, id, own, column - body_aux);
        else if (column >= shared_inputs && column < shared_end)
            add_term(acc, table, id, shared, column - shared_inputs);
        else
            add_field(acc, table, id, load_fr(inputs, column < shared_inputs ? column : first_input + column - body_inputs));
    };
    const Schedule schedule{static_cast<u32>(rows.rows), short_row, rows.listed, static_cast<u32>(rows.by_warp),
                            static_cast<u32>(rows.by_block)};
    multiply_rows(schedule, rows.row_ptr, add, out + 2 * (part ? prefix.rows + copy * body.rows : 0));
}

// out[i] = a[i] b[i], all in the same form: Montgomery's, or canonical.
CUZK_KERNEL(256, 8) multiply_elements(const uint4* a, const uint4* b, u32 n, u32 canonical, uint4* out) {
    for (u32 i = global_thread(); i < n; i += global_threads()) {
        const Fr product = load_fr(a, i) * load_fr(b, i);
        store_fr(out, i, canonical ? product.to_mont() : product);
    }
}

}  // namespace cuzk

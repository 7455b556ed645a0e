// Sparse matrix times witness. One thread a row: rows of R1CS are short (PoRep: 2.4 nonzeros on average), neighbouring rows read
// neighbouring columns. Rows above LONG_ROW nonzeros are listed by the host and get a block each.
//
// The result has the form (std or Montgomery) of the field values; where bits occur, that of the table, so Montgomery.
#include "elements.cuh"

namespace cuzk {

constexpr u32 ROW_THREADS = 128;

// sum over the threads of a block; the result is thread 0's
CUZK_DEVICE Fr block_sum(Fr value) {
    __shared__ uint4 parts[2 * ROW_THREADS];
    for (u32 half = ROW_THREADS / 2; half > 0; half /= 2) {
        store_fr(parts, threadIdx.x, value);
        __syncthreads();
        if (threadIdx.x < half) value = value + load_fr(parts, threadIdx.x + half);
        __syncthreads();
    }
    return value;
}

struct FieldValues {
    const uint4* values;
};
CUZK_DEVICE void add_term(Fr& acc, const uint4* table, u32 id, const FieldValues& w, u32 wire) {
    add_field(acc, table, id, load_fr(w.values, wire));
}

// out[i] = row i, rows i < rows_blocks * ROW_THREADS; the blocks after those take the rows listed in `long_rows`.
template <class Id, class Witness>
CUZK_DEVICE void multiply_rows(const u64* row_ptr, const u32* col, const Id* coef_id, const uint4* table, const Witness& w, u32 rows,
                               u32 row_blocks, const u32* long_rows, u32 long_row, uint4* out) {
    Fr acc = Fr::zero();
    if (blockIdx.x < row_blocks) {
        u32 row = global_thread();
        if (row >= rows) return;
        u64 begin = row_ptr[row], end = row_ptr[row + 1];
        if (end - begin > long_row) return;
        for (u64 k = begin; k < end; k++) add_term(acc, table, coef_id[k], w, col[k]);
        store_fr(out, row, acc);
    } else {
        u32 row = long_rows[blockIdx.x - row_blocks];
        u64 begin = row_ptr[row], end = row_ptr[row + 1];
        for (u64 k = begin + threadIdx.x; k < end; k += ROW_THREADS) add_term(acc, table, coef_id[k], w, col[k]);
        acc = block_sum(acc);
        if (threadIdx.x == 0) store_fr(out, row, acc);
    }
}

#define CSR_KERNELS(suffix, Id)                                                                                                   \
    CUZK_KERNEL(ROW_THREADS, 8)                                                                                                   \
    matvec_fields_##suffix(const u64* row_ptr, const u32* col, const Id* coef_id, const uint4* table, const uint4* values,        \
                           u32 rows, u32 row_blocks, const u32* long_rows, u32 long_row, uint4* out) {                            \
        multiply_rows(row_ptr, col, coef_id, table, FieldValues{values}, rows, row_blocks, long_rows, long_row, out);             \
    }                                                                                                                             \
    CUZK_KERNEL(ROW_THREADS, 8)                                                                                                   \
    matvec_bits_##suffix(const u64* row_ptr, const u32* col, const Id* coef_id, const uint4* table, const u64* ones,              \
                         const u64* mask, const u32* rank, const uint4* fields, u32 rows, u32 row_blocks, const u32* long_rows,   \
                         u32 long_row, uint4* out) {                                                                              \
        multiply_rows(row_ptr, col, coef_id, table, BitValues{ones, mask, rank, fields}, rows, row_blocks, long_rows, long_row,   \
                      out);                                                                                                       \
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
    u64 rows, words, fields;  // words of a copy's bits, field elements of a copy
};

// Columns: [0, shared_inputs) inputs and [.., shared) aux of the prefix; [.., body_aux) inputs and the rest aux of the body's copy.
struct TemplateShape {
    TemplatePart prefix, body;
    u64 shared_inputs, shared, body_aux;
};

// out: the prefix's rows, then those of every copy. part 0: the prefix; part 1: copy blockIdx.y of the body.
// inputs: all inputs, ONE first. Bits and fields: the prefix's, and one after another those of the copies.
CUZK_KERNEL(ROW_THREADS, 8)
matvec_template(const TemplateShape* shape, u32 part, const uint4* table, const uint4* inputs, const u64* prefix_bits,
                const uint4* prefix_fields, const u64* body_bits, const uint4* body_fields, uint4* out) {
    const TemplatePart& rows = part ? shape->body : shape->prefix;
    const u32 row = global_thread(), copy = blockIdx.y;
    if (row >= rows.rows) return;
    const TemplatePart &prefix = shape->prefix, &body = shape->body;
    const BitValues shared{prefix_bits, prefix.mask, prefix.rank, prefix_fields};
    const BitValues own{body_bits + copy * body.words, body.mask, body.rank, body_fields + 2 * copy * body.fields};
    const u32 shared_inputs = shape->shared_inputs, shared_end = shape->shared, body_aux = shape->body_aux;
    const u32 first_input = shared_inputs + copy * (body_aux - shared_end);
    Fr acc = Fr::zero();
    for (u32 k = rows.row_ptr[row]; k < rows.row_ptr[row + 1]; k++) {
        const u32 column = rows.col[k], id = rows.coef_id[k];
        if (column >= body_aux)
            add_term(acc, table, id, own, column - body_aux);
        else if (column >= shared_end)
            add_field(acc, table, id, load_fr(inputs, first_input + column - shared_end));
        else if (column >= shared_inputs)
            add_term(acc, table, id, shared, column - shared_inputs);
        else
            add_field(acc, table, id, load_fr(inputs, column));
    }
    store_fr(out, (part ? shape->prefix.rows + copy * shape->body.rows : 0) + row, acc);
}

}  // namespace cuzk

// Runs CUDA kernels on a CPU, for tests: every thread of a block is a fiber, and a barrier or an exchange between lanes is a yield.
// Include before a kernel file: g++ -x c++ -include emulation.hpp kernel.cu. With -DCUZK_EMULATE32 the field arithmetic is the
// device's carry chains, without it the host's.
//
// Deliberately strict: a barrier or a whole-warp exchange that some threads never reach ends the process with a message.
#pragma once

#ifndef __x86_64__
#include <ucontext.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace cuzk {
using u32 = unsigned int;
using u64 = unsigned long long;

}  // namespace cuzk

struct Dim3 {
    unsigned x = 1, y = 1, z = 1;
};
struct uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#ifdef CUZK_EMULATE32
#include "ff/mont_emulate.hpp"
inline int lost_carries() { return cuzk::chain_overflows; }
#else
inline int lost_carries() { return 0; }
#endif

namespace emulation {

#ifdef __x86_64__
// Saves the callee's registers on the stack and continues on another one; ucontext makes two system calls for the same.
extern "C" void emulation_switch(void** save_sp, void* sp);
__asm__(
    ".text\n.local emulation_switch\n.type emulation_switch, @function\nemulation_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

struct Context {
    void* sp = nullptr;
    void start(char* stack, size_t size, void (*entry)()) {
        auto top = reinterpret_cast<unsigned long long>(stack + size) & ~15ull;
        void** p = reinterpret_cast<void**>(top);
        *--p = nullptr;
        *--p = reinterpret_cast<void*>(entry);
        for (int i = 0; i < 6; i++) *--p = nullptr;
        sp = p;
    }
};
inline void switch_to(Context& from, Context& to) { emulation_switch(&from.sp, to.sp); }
#else
struct Context {
    ucontext_t c;
    void start(char* stack, size_t size, void (*entry)()) {
        getcontext(&c);
        c.uc_stack.ss_sp = stack;
        c.uc_stack.ss_size = size;
        c.uc_link = nullptr;
        makecontext(&c, entry, 0);
    }
};
inline void switch_to(Context& from, Context& to) { swapcontext(&from.c, &to.c); }
#endif

struct Fiber {
    Context context;
    std::vector<char> stack;
    bool done = false;
    unsigned whole = 0, pair = 0;      // exchanges of the whole warp, of the pair of lanes
    unsigned words[2][2][24];          // [whole or pair][parity of the exchange][word]
};
struct Warp {
    unsigned arrived = 0, exchanges = 0;  // lanes at the exchange now under way; exchanges complete
};

inline std::vector<Fiber> fibers;
inline std::vector<Warp> warps;
inline Context scheduler;
inline unsigned current, threads, live, at_barrier, barriers;
inline Dim3 thread_index, block_index, block_dim, grid_dim;
inline std::vector<uint4> dynamic_shared;
inline void (*kernel)(const unsigned long long*);
inline const unsigned long long* arguments;

inline void yield() { switch_to(fibers[current].context, scheduler); }

inline void release_barrier() {
    if (at_barrier == live && live > 0) {
        at_barrier = 0;
        barriers++;
    }
}

inline void run_fiber() {
    kernel(arguments);
    fibers[current].done = true;
    live--;
    release_barrier();
    for (;;) yield();
}

inline void barrier() {
    unsigned mine = barriers;
    at_barrier++;
    release_barrier();
    while (barriers == mine) yield();
}

[[noreturn]] inline void fail(const char* what) {
    std::fprintf(stderr, "emulation: %s\n", what);
    std::abort();
}

// Offers `n` words to the lanes of `mask` (the warp, or a pair) and waits until all of them did; `read(lane)` gives theirs.
struct Exchange {
    unsigned first, slot, parity;
    const unsigned* read(unsigned lane) const { return fibers[first + lane].words[slot][parity]; }
};
inline Exchange exchange(unsigned mask, const unsigned* words, unsigned n) {
    Fiber& me = fibers[current];
    const bool whole = mask == 0xffffffffu;
    const unsigned first = current / 32 * 32;
    const unsigned count = whole ? ++me.whole : ++me.pair;
    Exchange e{first, whole ? 0u : 1u, count & 1};
    std::memcpy(me.words[e.slot][e.parity], words, 4 * n);
    if (whole) {
        Warp& warp = warps[current / 32];
        if (++warp.arrived == 32) {
            warp.arrived = 0;
            warp.exchanges++;
        }
        while (warp.exchanges < count) yield();
    } else {
        if (mask != 3u << (current & 30)) fail("an exchange between lanes that are neither a warp nor a pair");
        const Fiber& other = fibers[current ^ 1];
        while (other.pair < count) {
            if (other.done) fail("a lane left before an exchange that needs it");
            yield();
        }
    }
    return e;
}

inline void run_block() {
    live = threads;
    at_barrier = barriers = 0;
    warps.assign((threads + 31) / 32, Warp{});
    for (unsigned t = 0; t < threads; t++) {
        Fiber& f = fibers[t];
        f.done = false;
        f.whole = f.pair = 0;
        f.context.start(f.stack.data(), f.stack.size(), run_fiber);
    }
    unsigned long idle = 0;
    while (live > 0) {
        const unsigned before = live;
        for (unsigned t = 0; t < threads; t++) {
            if (fibers[t].done) continue;
            current = t;
            thread_index = {t, 0, 0};
            switch_to(scheduler, fibers[t].context);
        }
        idle = live == before ? idle + 1 : 0;
        if (idle > 5000000) fail("threads wait for each other");
    }
}

}  // namespace emulation

#define threadIdx emulation::thread_index
#define blockIdx emulation::block_index
#define blockDim emulation::block_dim
#define gridDim emulation::grid_dim
#define __shared__ static
#define CUZK_DEVICE inline
#define CUZK_DEVICE_CALL inline
// The kernel proper, and an entry that unpacks 64-bit arguments.
#define CUZK_KERNEL(threads, blocks_per_sm) extern "C" void
#define CUZK_DYNAMIC_SHARED(type, name) type* name = reinterpret_cast<type*>(emulation::dynamic_shared.data())

inline void __syncthreads() { emulation::barrier(); }
inline unsigned __ballot_sync(unsigned mask, bool p) {
    unsigned w = p, all = 0;
    auto e = emulation::exchange(mask, &w, 1);
    for (unsigned l = 0; l < 32; l++)
        if (mask >> l & 1) all |= (e.read(l)[0] & 1) << l;
    return all;
}
inline bool __any_sync(unsigned mask, unsigned p) { return __ballot_sync(mask, p != 0) != 0; }
inline bool __all_sync(unsigned mask, unsigned p) { return __ballot_sync(mask, p != 0) == mask; }
inline unsigned __shfl_sync(unsigned mask, unsigned v, int lane) { return emulation::exchange(mask, &v, 1).read(lane)[0]; }
inline unsigned long long __shfl_up_sync(unsigned mask, unsigned long long v, unsigned distance) {
    unsigned words[2], lane = threadIdx.x & 31, from = lane < distance ? lane : lane - distance;
    std::memcpy(words, &v, 8);
    std::memcpy(&v, emulation::exchange(mask, words, 2).read(from), 8);
    return v;
}
inline unsigned atomicAdd(unsigned* address, unsigned v) {
    unsigned old = *address;
    *address += v;
    return old;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
    return r;
}
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }

namespace cuzk {
template <int N>
inline void exchange_words(u32 mask, u32* out, const u32* in) {
    auto e = emulation::exchange(mask, in, N);
    std::memcpy(out, e.read((threadIdx.x & 31) ^ 1), 4 * N);
}
}  // namespace cuzk

// Runs a kernel over its grid. All parameters of all kernels are pointers or u32: integer registers and 8-byte stack slots.
extern "C" inline __attribute__((used)) int emulation_launch(void* function, unsigned gx, unsigned gy, unsigned block, unsigned shared_bytes,
                                                             const unsigned long long* arguments) {
    using namespace emulation;
    static void* target;
    target = function;
    kernel = [](const unsigned long long* a) {
        using F = void (*)(unsigned long long, unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                           unsigned long long, unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                           unsigned long long, unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                           unsigned long long);
        reinterpret_cast<F>(target)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
    };
    emulation::arguments = arguments;
    threads = block;
    if (fibers.size() < block) {
        fibers.resize(block);
        for (auto& f : fibers)
            if (f.stack.empty()) f.stack.resize(128 << 10);
    }
    dynamic_shared.assign(shared_bytes / 16 + 1, uint4{0xdeadbeef, 0xdeadbeef, 0xdeadbeef, 0xdeadbeef});
    block_dim = {block, 1, 1};
    grid_dim = {gx, gy, 1};
    int before = lost_carries();
    for (unsigned y = 0; y < gy; y++)
        for (unsigned x = 0; x < gx; x++) {
            block_index = {x, y, 0};
            run_block();
        }
    return lost_carries() - before;
}

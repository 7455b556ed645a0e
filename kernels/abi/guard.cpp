// Mapped files that shrink: a page behind the end of its file gives SIGBUS, which would end the process without a word. For
// mappings that are registered here the pages from there on become zeros, the mapping is marked, and who reads it asks afterwards.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>

#include "abi.hpp"

namespace {

struct Range {
    std::atomic<std::uintptr_t> begin{0}, end{0};  // end 0: the slot is free
    std::atomic<std::int64_t> faults{0};
};

constexpr int SLOTS = 4096;
Range ranges[SLOTS];
std::atomic<int> used{0};
std::mutex mutex;
bool installed = false;
struct sigaction before;

void pass_on() {
    // The instruction runs again and meets whoever was in charge before.
    sigaction(SIGBUS, &before, nullptr);
}

void on_bus_error(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    if (info->si_code <= 0) {  // sent by a process
        pass_on();
        raise(SIGBUS);
        return;
    }
    const int count = used.load(std::memory_order_acquire);
    for (int slot = 0; slot < count; ++slot) {
        const auto begin = ranges[slot].begin.load(std::memory_order_acquire), end = ranges[slot].end.load(std::memory_order_acquire);
        if (address < begin || address >= end) continue;
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        const auto first = address & ~(page - 1);
        void* zeros = mmap(reinterpret_cast<void*>(first), end - first, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
        if (zeros == MAP_FAILED) break;
        ranges[slot].faults.fetch_add(1, std::memory_order_release);
        return;
    }
    pass_on();
}

}  // namespace

// Registers size bytes from address on. Returns a slot, or NOTHING_FOUND when all are taken: such a mapping is not guarded.
CUZK_API std::int64_t cuzk_guard_add(std::uint64_t address, std::uint64_t size) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!installed) {
        struct sigaction action = {};
        action.sa_sigaction = on_bus_error;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        if (sigaction(SIGBUS, &action, &before) != 0) return cuzk::NOTHING_FOUND;
        installed = true;
    }
    for (int slot = 0; slot < SLOTS; ++slot) {
        Range& range = ranges[slot];
        if (range.end.load(std::memory_order_relaxed)) continue;
        range.faults.store(0);
        range.begin.store(address);
        range.end.store(address + size, std::memory_order_release);
        if (slot >= used.load()) used.store(slot + 1, std::memory_order_release);
        return slot;
    }
    return cuzk::NOTHING_FOUND;
}

// How often pages of the mapping were missing.
CUZK_API std::int64_t cuzk_guard_faults(std::uint64_t slot) {
    return slot < SLOTS ? ranges[slot].faults.load(std::memory_order_acquire) : std::int64_t{0};
}

CUZK_API std::int64_t cuzk_guard_remove(std::uint64_t slot) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (slot < SLOTS) ranges[slot].end.store(0, std::memory_order_release);
    return cuzk::DONE;
}

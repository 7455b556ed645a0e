// Threads for one bulk call: started, joined, gone. Tasks are taken from a shared counter, so uneven ones balance.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cuzk {

// Calls work(worker, task) for every task in [0, tasks); worker in [0, min(threads, tasks)) names the calling thread.
// The first exception stops further tasks and is thrown again here.
template <class Work>
inline void parallel_for(std::size_t threads, std::size_t tasks, Work&& work) {
    threads = std::min(threads, tasks);
    if (threads <= 1) {
        for (std::size_t t = 0; t < tasks; t++) work(std::size_t{0}, t);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    auto run = [&](std::size_t worker) {
        try {
            for (std::size_t t; (t = next.fetch_add(1)) < tasks;) work(worker, t);
        } catch (...) {
            next = tasks;
            std::lock_guard<std::mutex> lock(failure_mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    std::vector<std::thread> pool;
    pool.reserve(threads - 1);
    try {
        for (std::size_t w = 1; w < threads; w++) pool.emplace_back(run, w);
    } catch (const std::system_error&) {
        // The system gives no more threads: those that run share the work.
    }
    run(0);
    for (auto& t : pool) t.join();
    if (failure) std::rethrow_exception(failure);
}

// Splits [0, n) into pieces of at most `grain` and calls work(begin, end) for each.
template <class Work>
inline void parallel_ranges(std::size_t threads, std::size_t n, std::size_t grain, Work&& work) {
    if (n == 0) return;
    grain = std::max<std::size_t>(1, std::min(grain, (n + threads - 1) / threads));
    parallel_for(threads, (n + grain - 1) / grain, [&](std::size_t, std::size_t t) { work(t * grain, std::min(n, (t + 1) * grain)); });
}

constexpr std::int64_t NOTHING_FOUND = -1;

// Lowest index for which some thread reported something, or NOTHING_FOUND.
class FirstIndex {
  public:
    void report(std::size_t i) {
        std::size_t seen = index_.load();
        while (i < seen && !index_.compare_exchange_weak(seen, i)) {}
    }
    bool before(std::size_t i) const { return index_.load() < i; }
    std::int64_t result() const {
        std::size_t i = index_.load();
        return i == SIZE_MAX ? NOTHING_FOUND : static_cast<std::int64_t>(i);
    }

  private:
    std::atomic<std::size_t> index_{SIZE_MAX};
};

}  // namespace cuzk

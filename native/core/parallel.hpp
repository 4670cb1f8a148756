// Threads, born and joined per call: no pool survives to hang a forked child, and no runtime has
// to be shared with other libraries. A thread costs about 15 microseconds, so callers with little
// work ask for one.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace okforest {

// Hands out the tasks 0 .. n - 1 and keeps the first exception of any thread.
class TaskQueue {
 public:
  explicit TaskQueue(std::int64_t n_tasks) : n_tasks_(n_tasks) {}

  template <class Body>
  void work(Body&& body) {
    try {
      for (std::int64_t task; !stopped() && (task = next_++) < n_tasks_;) {
        body(task);
        ++done_;
      }
    } catch (...) {
      stop();
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void stop() { stopped_ = true; }
  const std::atomic<bool>& stopped() const { return stopped_; }
  std::int64_t done() const { return done_; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::int64_t n_tasks_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::int64_t> done_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

// Runs body(task) for every task, the calling thread helping.
template <class Body>
void parallel_for(std::int64_t n_tasks, int n_threads, Body&& body) {
  TaskQueue queue(n_tasks);
  std::vector<std::jthread> threads;
  const auto n_helpers = std::min<std::int64_t>(n_threads, n_tasks) - 1;
  for (std::int64_t i = 0; i < n_helpers; ++i) threads.emplace_back([&] { queue.work(body); });
  queue.work(body);
  threads.clear();
  queue.rethrow();
}

// Runs body(task, worker, stopped) for every task, workers being numbered from 0, while the calling
// thread only watches: it calls watch(n_done) twenty times a second and at the end, and stops
// everything once that returns false. Bodies look at `stopped` from time to time. Returns whether
// all tasks were done.
template <class Body, class Watch>
bool supervised_for(std::int64_t n_tasks, int n_threads, Body&& body, Watch&& watch) {
  TaskQueue queue(n_tasks);
  std::mutex mutex;
  std::condition_variable finished;
  std::int64_t n_running = std::min<std::int64_t>(n_threads, n_tasks);
  std::vector<std::jthread> threads;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(n_threads, n_tasks); ++i) {
    threads.emplace_back([&, i] {
      queue.work([&](std::int64_t task) { body(task, i, queue.stopped()); });
      std::lock_guard lock(mutex);
      if (--n_running == 0) finished.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  while (!finished.wait_for(lock, std::chrono::milliseconds(50), [&] { return n_running == 0; })) {
    lock.unlock();
    if (!watch(queue.done())) queue.stop();
    lock.lock();
  }
  lock.unlock();
  threads.clear();
  queue.rethrow();
  return !queue.stopped() && watch(queue.done());
}

}  // namespace okforest

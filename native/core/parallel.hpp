// Threads are started and joined within each call: no pool can hang a forked child, and no runtime
// is shared with other libraries. Starting a thread takes about 15 microseconds, so callers with
// little work use one. If the system refuses a thread, as it does at the process limit of a
// container, the work is done by those that have started.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/watch.hpp"

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

// Threads that the calling thread can wait for while it polls.
class Threads {
 public:
  // Runs body(i) in thread i of n, or of fewer if the system refuses to start more.
  template <class Body>
  Threads(std::int64_t n, const Body& body) : n_running_(std::max<std::int64_t>(n, 0)) {
    for (std::int64_t i = 0; i < n; ++i) {
      try {
        threads_.emplace_back([this, &body, i] {
          body(i);
          end(1);
        });
      } catch (const std::system_error&) {
        end(n - i);
        return;
      }
    }
  }

  bool empty() const { return threads_.empty(); }

  // Waits until all have finished, calling poll() now and then.
  template <class Poll>
  void wait(Poll&& poll) {
    std::unique_lock lock(mutex_);
    while (!finished_.wait_for(lock, kPollInterval, [&] { return n_running_ == 0; })) {
      lock.unlock();
      poll();
      lock.lock();
    }
  }

 private:
  void end(std::int64_t n_threads) {
    std::lock_guard lock(mutex_);
    n_running_ -= n_threads;
    if (n_running_ == 0) finished_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable finished_;
  std::int64_t n_running_;
  std::vector<std::jthread> threads_;  // last: joined before the rest is destroyed
};

// Runs body(task, pace) for every task, in the calling thread too. Bodies report their progress to
// the pace of their thread; throws Stopped if the watch stops them.
template <class Body>
void parallel_for(std::int64_t n_tasks, int n_threads, Watch& watch, const Body& body) {
  TaskQueue queue(n_tasks);
  const auto work = [&](std::int64_t) {
    Pace pace(watch);
    queue.work([&](std::int64_t task) { body(task, pace); });
  };
  {
    Threads helpers(std::min<std::int64_t>(n_threads, n_tasks) - 1, work);
    work(0);
    helpers.wait([&] { watch.poll(); });
  }
  queue.rethrow();
}

// Runs body(begin, end, pace) for the numbers 0 .. n - 1 in blocks.
template <class Body>
void parallel_blocks(std::int64_t n, std::int64_t block, int n_threads, Watch& watch,
                     const Body& body) {
  parallel_for((n + block - 1) / block, n_threads, watch, [&](std::int64_t task, Pace& pace) {
    body(task * block, std::min(n, (task + 1) * block), pace);
  });
}

// Runs body(task, worker, stopped) for every task, with workers numbered from 0, while the calling
// thread only supervises: it calls report(n_done) every poll interval and at the end, and stops the
// workers once that returns false. Bodies must check `stopped` regularly. If no worker can be
// started, the calling thread works, and reports after every task. Returns whether all tasks were
// done.
template <class Body, class Report>
bool supervised_for(std::int64_t n_tasks, int n_threads, const Body& body, Report&& report) {
  TaskQueue queue(n_tasks);
  const auto work = [&](std::int64_t worker) {
    queue.work([&](std::int64_t task) { body(task, worker, queue.stopped()); });
  };
  const auto supervise = [&] {
    if (!report(queue.done())) queue.stop();
  };
  {
    Threads workers(std::min<std::int64_t>(n_threads, n_tasks), work);
    if (workers.empty()) {
      queue.work([&](std::int64_t task) {
        supervise();
        body(task, 0, queue.stopped());
      });
    }
    workers.wait(supervise);
  }
  queue.rethrow();
  return !queue.stopped() && report(queue.done());
}

}  // namespace okforest

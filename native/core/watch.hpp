// Stopping a long call: while the calling thread works, it checks now and then whether to go on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

namespace okforest {

inline constexpr std::chrono::milliseconds kPollInterval{50};

// Thrown in every thread of a call that was stopped.
struct Stopped {};

class Watch {
 public:
  // `keep_going` is only called from the thread that makes the watch.
  explicit Watch(std::function<bool()> keep_going) : keep_going_(std::move(keep_going)) {}

  // In the calling thread, asks whether to keep going, at most once per poll interval. Throws
  // Stopped if the answer was no.
  void poll() {
    if (std::this_thread::get_id() == owner_ && Clock::now() - last_ >= kPollInterval) {
      last_ = Clock::now();
      if (!keep_going_()) stopped_ = true;
    }
    if (stopped_) throw Stopped{};
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::function<bool()> keep_going_;
  const std::thread::id owner_ = std::this_thread::get_id();
  Clock::time_point last_ = Clock::now();
  std::atomic<bool> stopped_ = false;
};

// Polls after some amount of work, so that short calls do not even read the clock. Each thread has
// its own.
class Pace {
 public:
  explicit Pace(Watch& watch) : watch_(watch) {}

  // Reports steps done, of a nanosecond to a microsecond each.
  void advance(std::int64_t n_steps) {
    n_steps_ += n_steps;
    if (n_steps_ < kStepsPerPoll) return;
    n_steps_ = 0;
    watch_.poll();
  }

 private:
  static constexpr std::int64_t kStepsPerPoll = 1 << 16;

  Watch& watch_;
  std::int64_t n_steps_ = 0;
};

}  // namespace okforest

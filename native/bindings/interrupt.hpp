// Ctrl-C during a call of the core, which runs without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

#include "core/watch.hpp"

namespace okforest {

namespace nb = nanobind;

// Calls Python from code that runs without the GIL, and keeps the exception that ends it.
class Signals {
 public:
  // Runs the handlers of pending signals, then `body`, with the GIL. Returns whether to keep going:
  // false if one of them raised an exception. For the calling thread only.
  template <class Body>
  bool poll(Body&& body) {
    nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      body();
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

// Runs body(watch) without the GIL, and returns its result. Raises the exception of a signal
// handler, such as KeyboardInterrupt, soon after the signal.
template <class Body>
auto interruptible(Body&& body) {
  Signals signals;
  Watch watch([&] { return signals.poll([] {}); });
  try {
    nb::gil_scoped_release nogil;
    return body(watch);
  } catch (const Stopped&) {
    signals.rethrow();
    throw;
  }
}

}  // namespace okforest

// The extension module okforest._core.
#include <nanobind/nanobind.h>

namespace okforest {
void bind_decode(nanobind::module_& m);
void bind_files(nanobind::module_& m);
void bind_grow(nanobind::module_& m);
void bind_histograms(nanobind::module_& m);
void bind_postings(nanobind::module_& m);
void bind_predict(nanobind::module_& m);
void bind_prune(nanobind::module_& m);
void bind_residuals(nanobind::module_& m);
void bind_subwindows(nanobind::module_& m);
}  // namespace okforest

NB_MODULE(_core, m) {
  m.doc() = "The compiled core of okforest. Use okforest.engine, which documents it.";
  okforest::bind_decode(m);
  okforest::bind_files(m);
  okforest::bind_grow(m);
  okforest::bind_histograms(m);
  okforest::bind_postings(m);
  okforest::bind_predict(m);
  okforest::bind_prune(m);
  okforest::bind_residuals(m);
  okforest::bind_subwindows(m);
}

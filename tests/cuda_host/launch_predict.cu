// Launches the kernels of predictions by name, on the host.
__attribute__((used)) static unsigned char* const shared = memory;  // tests look it up by name

extern "C" int launch(const char* name, int blocks, int blocks_y, int threads, const void* first,
                      const void*, const int*) {
  const auto run = [&](auto&& kernel) {
    host::launch({static_cast<unsigned>(blocks), static_cast<unsigned>(blocks_y)}, threads, kernel);
    return 0;
  };
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("follow_trees")) return run([&] { follow_trees(*static_cast<const Walk*>(first)); });
  if (is("average_leaves")) return run([&] { average_leaves(*static_cast<const Means*>(first)); });
  if (is("multiply_rows")) {
    return run([&] { multiply_rows(*static_cast<const SparseProduct*>(first)); });
  }
  return 1;
}

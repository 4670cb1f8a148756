// Launches kernels by name, on the host.
extern "C" int launch(const char* name, int blocks, int blocks_y, int threads, const void* first,
                      const void* second, const int* numbers) {
  const auto& plan = *static_cast<const Plan*>(first);
  const int a = numbers[0], b = numbers[1], c = numbers[2];
  const auto run = [&](auto&& kernel) {
    host::launch({static_cast<unsigned>(blocks), static_cast<unsigned>(blocks_y)}, threads, kernel);
    return 0;
  };
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("list_chunks")) return run([&] { list_chunks(plan, a, b); });
  if (is("draw_features")) return run([&] { draw_features(plan, a, b); });
  if (is("find_ranges")) return run([&] { find_ranges(plan, a, b); });
  if (is("sum_chunks")) return run([&] { sum_chunks(plan, a, b); });
  if (is("sum_chunks_exactly")) return run([&] { sum_chunks_exactly(plan, a, b); });
  if (is("choose_splits")) return run([&] { choose_splits(plan, a, b, c); });
  if (is("move_rows")) return run([&] { move_rows(plan, a, b); });
  if (is("grow_middle")) return run([&] { grow_middle(plan, a); });
  if (is("grow_small")) return run([&] { grow_small(plan, a); });
  if (is("number_nodes")) return run([&] { number_nodes(plan, a); });
  if (is("write_trees")) {
    return run([&] { write_trees(plan, *static_cast<const Arrays*>(second), a); });
  }
  if (is("pack_outputs")) {
    return run([&] { pack_outputs(*static_cast<const Packing*>(first), a); });
  }
  return 1;
}

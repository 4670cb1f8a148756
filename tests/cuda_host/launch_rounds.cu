// Launches the kernels of rounds by name, on the host.
extern "C" int launch(const char* name, int blocks, int blocks_y, int threads, const void* first,
                      const void* second, const int* numbers) {
  const auto& plan = *static_cast<const Plan*>(first);
  const auto& rounds = *static_cast<const Rounds*>(second);
  const int a = numbers[0], b = numbers[1];
  const auto run = [&](auto&& kernel) {
    host::launch({static_cast<unsigned>(blocks), static_cast<unsigned>(blocks_y)}, threads, kernel);
    return 0;
  };
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("begin_tree")) return run([&] { begin_tree(plan, rounds, a, b); });
  if (is("pick_node")) return run([&] { pick_node(plan, rounds); });
  if (is("divide_rows_of_node")) return run([&] { divide_rows_of_node(plan, rounds); });
  if (is("find_ranges")) return run([&] { find_ranges(plan, a, b); });
  if (is("sum_items")) return run([&] { sum_items(plan, rounds); });
  if (is("add_chunks")) return run([&] { add_chunks(plan, rounds); });
  if (is("measure_spread")) return run([&] { measure_spread(plan, rounds); });
  if (is("choose_for_items")) return run([&] { choose_for_items(plan, rounds); });
  if (is("finish_tree")) return run([&] { finish_tree(plan, rounds); });
  if (is("subtract_means")) return run([&] { subtract_means(plan, rounds); });
  return 1;
}

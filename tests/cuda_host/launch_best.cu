// Launches the kernels of best splits by name, on the host.
extern "C" int launch(const char* name, int blocks, int blocks_y, int threads, const void* first,
                      const void* second, const int*) {
  const auto& plan = *static_cast<const Plan*>(first);
  const auto& level = *static_cast<const Level*>(second);
  const auto run = [&](auto&& kernel) {
    host::launch({static_cast<unsigned>(blocks), static_cast<unsigned>(blocks_y)}, threads, kernel);
    return 0;
  };
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("sum_node_chunks")) return run([&] { sum_node_chunks(plan, level); });
  if (is("measure_nodes")) return run([&] { measure_nodes(plan, level); });
  if (is("draw_for_nodes")) return run([&] { draw_for_nodes(plan, level); });
  if (is("sum_feature_chunks")) return run([&] { sum_feature_chunks(plan, level); });
  if (is("add_feature_chunks")) return run([&] { add_feature_chunks(plan, level); });
  if (is("find_gains")) return run([&] { find_gains(plan, level); });
  if (is("choose_features")) return run([&] { choose_features(plan, level); });
  if (is("take_cuts")) return run([&] { take_cuts(plan, level); });
  if (is("try_features")) return run([&] { try_features(plan, level); });
  if (is("finish_nodes")) return run([&] { finish_nodes(plan, level); });
  if (is("make_children")) return run([&] { make_children(plan, level); });
  if (is("mark_rows")) return run([&] { mark_rows(plan, level); });
  if (is("count_lefts")) return run([&] { count_lefts(plan, level); });
  if (is("divide_lists")) return run([&] { divide_lists(plan, level); });
  return 1;
}
